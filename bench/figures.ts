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
export function medianRatio(above: readonly number[], below: readonly number[]): number {
  return median(above.map((value, round) => value / (below[round] ?? Number.NaN)));
}

/** A Markdown table with text aligned left and numbers aligned right. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const isNumber = (column: number) => rows.every((row) => /^[\d,.]+$|^–$/.test(row[column] ?? ''));
  const rule = header.map((_, column) => (isNumber(column) ? '---:' : '---'));
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |\n`;
  return [header, rule, ...rows].map(line).join('');
}

/** A ratio, or a dash if there is nothing to compare with. */
export function formatRatio(ratio: number): string {
  return Number.isNaN(ratio) ? '–' : formatMeasured(ratio);
}

/** Formats a measured number with two significant digits: rounds of seconds do not give more. */
export function formatMeasured(value: number): string {
  const digits = { minimumSignificantDigits: 2, maximumSignificantDigits: 2 };
  return value === 0 ? '0' : value.toLocaleString('en-US', digits);
}

/** Formats a number with about three significant digits, and with all digits of the integer part. */
export function formatNumber(value: number): string {
  const magnitude = Number(Math.abs(value).toPrecision(3)); // 99.97 is formatted as 100
  const digits = Math.min(3, Math.max(0, 2 - Math.floor(Math.log10(magnitude || 1))));
  return value.toLocaleString('en-US', {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}
