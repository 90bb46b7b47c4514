/**
 * Times as text: RFC 3339, with any offset from UTC and any fraction of a second.
 */
const pattern =
  /^(\d{4}-\d\d-\d\d)t(?:[01]\d|2[0-3])(?::[0-5]\d){2}(?:\.\d+)?(?:z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/i;

/** Midnight UTC at the end of the year 9999. RFC 3339 cannot show later times. */
export const endOfTimeMs = 253_402_300_800_000;

/**
 * Milliseconds since the Unix epoch; undefined if it is not a valid time, or after the year 9999 in UTC. Leap seconds
 * are not supported.
 */
export function parseTimestamp(text: string): number | undefined {
  const [, day] = pattern.exec(text) ?? [];
  if (day === undefined) return undefined;
  const timeMs = Date.parse(text.toUpperCase());
  // Date.parse refuses a month 13, but takes February 30 as March 2.
  const isValid = timeMs < endOfTimeMs && new Date(day).toISOString().startsWith(day);
  return isValid ? timeMs : undefined;
}

/** Undefined for a time that does not apply. */
export function formatTimestamp(timeMs: number | undefined): string | undefined {
  return timeMs === undefined ? undefined : new Date(timeMs).toISOString();
}
