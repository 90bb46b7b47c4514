/**
 * What an import reports.
 */

/** What happened to a row. `reason` describes a refusal, and its fix. */
export interface ImportOutcome {
  /** The number of the row, from 1. */
  row: number;
  /** The line on which it begins. A row of a JSON array has none. */
  line?: number | undefined;
  status: 'added' | 'already added' | 'refused';
  id?: number | undefined;
  reason?: string | undefined;
}

/** Where a row is in the file: "line 4", or "row 3" if it has no line. */
export function placeOf({ row, line }: Pick<ImportOutcome, 'row' | 'line'>): string {
  return line === undefined ? `row ${row}` : `line ${line}`;
}

/** "Added 3 plants; 1 row was refused." */
export function summaryOf(
  { added, 'already added': before, refused }: Readonly<Record<ImportOutcome['status'], number>>,
  format: (count: number) => string = String,
): string {
  const parts = [`Added ${format(added)} ${added === 1 ? 'plant' : 'plants'}`];
  if (before > 0) parts.push(`${format(before)} ${before === 1 ? 'was' : 'were'} already added`);
  if (refused > 0)
    parts.push(`${format(refused)} ${refused === 1 ? 'row was' : 'rows were'} refused`);
  return `${parts.join('; ')}.`;
}
