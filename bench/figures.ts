/**
 * Medians of figures, and Markdown tables of them.
 */

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const below = sorted[Math.ceil(middle) - 1] ?? Number.NaN;
  const above = sorted[Math.floor(middle)] ?? Number.NaN;
  return (below + above) / 2;
}

/** The median of one figure of all items. */
export function medianOf<T>(all: readonly T[], figure: (each: T) => number): number {
  return median(all.map(figure));
}

/**
 * The median of the ratios of each round. Both sides of a round run within the same seconds, so a slow phase of
 * the machine affects both and the ratio holds.
 */
export function medianRatio<T>(
  above: readonly T[],
  below: readonly T[],
  figure: (each: T) => number,
): number {
  const ratios = above.flatMap((each, round) => {
    const other = below[round];
    return other === undefined ? [] : [figure(each) / figure(other)];
  });
  return median(ratios);
}

/** A Markdown table with text aligned left and numbers aligned right. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const isNumber = (column: number) => rows.every((row) => /^[\d,.]+$|^–$/.test(row[column] ?? ''));
  const rule = header.map((_, column) => (isNumber(column) ? '---:' : '---'));
  return [header, rule, ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

/** Formats a measured number with two significant digits: rounds of seconds do not give more. NaN becomes a dash. */
export function formatMeasured(value: number): string {
  if (Number.isNaN(value)) return '–';
  const digits = { minimumSignificantDigits: 2, maximumSignificantDigits: 2 };
  return value === 0 ? '0' : value.toLocaleString('en-US', digits);
}
