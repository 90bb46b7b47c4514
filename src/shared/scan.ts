/**
 * Reads what no index has, in steps of bounded cost. The event loop is free between two steps.
 */

/** What a page of a scan needs. */
export interface ScanQuery<Cursor> {
  /** The first step begins after it. */
  after: Cursor;
  limit: number;
  /** Called before each step. What it throws ends the scan, for example once the client has disconnected. */
  assertWanted?: (() => void) | undefined;
}

/** The rows that a step has found. */
export interface ScanStep<Row, Cursor> {
  rows: readonly Row[];
  /** The next step begins after it; undefined at the end. */
  scannedTo: Cursor | undefined;
}

/** Returns more than `limit` rows if others follow. So each step can stop after `limit` + 1 of those that are left. */
export async function scan<Row, Cursor>(
  { after, limit, assertWanted }: ScanQuery<Cursor>,
  readStep: (after: Cursor, limit: number) => Promise<ScanStep<Row, Cursor>>,
): Promise<Row[]> {
  const found: Row[] = [];
  let next: Cursor | undefined = after;
  while (next !== undefined && found.length <= limit) {
    assertWanted?.();
    const { rows, scannedTo }: ScanStep<Row, Cursor> = await readStep(next, limit - found.length);
    found.push(...rows);
    next = scannedTo;
  }
  return found;
}
