/**
 * Translates the statements of `sql/`, which are in the dialect of PostgreSQL.
 */
import type { SQLInputValue } from 'node:sqlite';

/**
 * The key of a change: the number of its store in this file, and in the lowest 42 bits the position. SQL computes it,
 * because JavaScript cannot represent it. Both arguments are expressions in SQL, which gets each number as REAL.
 */
export const changeKey = (storeNumber: string, position: string) =>
  `(${storeNumber} << 42) + CAST(${position} AS INTEGER)`;

/** The first parameter is the store. */
export const numberOfStore = '(SELECT number FROM stores WHERE store = ?1)';

const translations: readonly (readonly [pattern: RegExp, replacement: string])[] = [
  [
    /changes\.store = \$1\s+AND changes\.position = ANY \((\$\d+)::bigint\[\]\)/g,
    `changes.key IN (SELECT ${changeKey(numberOfStore, 'value')} FROM json_each($1) AS given)`,
  ],
  [
    /changes\.store = \$1\s+AND changes\.position BETWEEN (\S+) AND (\S+)/g,
    `changes.key BETWEEN ${changeKey(numberOfStore, '$1')} AND ${changeKey(numberOfStore, '$2')}`,
  ],
  [
    /changes\.store = \$1\s+AND changes\.position = (\S+)/g,
    `changes.key = ${changeKey(numberOfStore, '$1')}`,
  ],
  [/ORDER BY changes\.position/g, 'ORDER BY changes.key'],
  [/plant_store\.named_stores/g, 'stores'],
  [/plant_store\./g, ''],
  [/\bstores\.grants\b/g, '(SELECT count FROM grant_changes)'],
  [/= ANY \(\$(\d+)::bytea\[\]\)/g, 'IN (SELECT unhex(value) FROM json_each(?$1) AS given)'],
  [/= ANY \(\$(\d+)::\w+\[\]\)/g, 'IN (SELECT value FROM json_each(?$1) AS given)'],
  [/\/\* (INDEXED BY \w+) \*\//g, '$1'], // without statistics, the plan would be another one
  [/::\w+/g, ''],
  [/\bgreatest\(/g, 'max('],
  // A bare parameter as the limit would make SQLite plan the statement again at each run.
  [/LIMIT \$(\d+)/g, 'LIMIT ?$1 + 0'],
  [/\$(\d+)/g, '?$1'],
];

export function toSqlite(text: string): string {
  return translations.reduce((result, [from, to]) => result.replaceAll(from, to), text);
}

/** Arrays become JSON, and bytes in them hexadecimal text. */
export function toSqliteValue(value: unknown): SQLInputValue {
  if (Array.isArray(value)) return JSON.stringify(value.map(hexOfBytes));
  return (value ?? null) as SQLInputValue; // a number, text or bytes
}

function hexOfBytes(value: unknown): unknown {
  return value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value;
}
