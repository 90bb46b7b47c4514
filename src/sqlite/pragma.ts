import type { DatabaseSync } from 'node:sqlite';

/** The value of a pragma (sqlite.org/pragma.html). */
export function readPragma(database: DatabaseSync, name: string): unknown {
  return Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0];
}
