/**
 * Times as text: RFC 3339, with any offset from UTC and any fraction of a second.
 */
const pattern = /^(\d{4})-(\d\d)-(\d\d)t(\d\d):(\d\d):(\d\d)(\.\d+)?(?:z|([+-])(\d\d):(\d\d))$/i;

/** Midnight UTC at the end of the year 9999. RFC 3339 cannot show later times. */
const endOfTimeMs = 253_402_300_800_000;

/**
 * Milliseconds since the Unix epoch; undefined if it is not a valid time, or after the year 9999 in UTC. Leap seconds
 * are not supported.
 */
export function parseTimestamp(text: string): number | undefined {
  const match = pattern.exec(text);
  if (match === null) return undefined;
  const [, , , , , , , fraction = '', sign = '+', offsetHours = '0', offsetMinutes = '0'] = match;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match
    .slice(1, 7)
    .map(Number);
  const isTimeValid = hour < 24 && minute < 60 && second < 60;
  const isOffsetValid = Number(offsetHours) < 24 && Number(offsetMinutes) < 60;
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day); // Date.UTC would take the year 50 as 1950
  const isDateValid = date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
  if (!isTimeValid || !isOffsetValid || !isDateValid) return undefined;
  const localMs = date.setUTCHours(
    hour,
    minute,
    second,
    Number(fraction.slice(1, 4).padEnd(3, '0')),
  );
  const offsetMs = (Number(offsetHours) * 60 + Number(offsetMinutes)) * 60_000;
  const timeMs = sign === '-' ? localMs + offsetMs : localMs - offsetMs;
  return timeMs < endOfTimeMs ? timeMs : undefined;
}

/** Undefined for a time that does not apply. */
export function formatTimestamp(timeMs: number | undefined): string | undefined {
  return timeMs === undefined ? undefined : new Date(timeMs).toISOString();
}
