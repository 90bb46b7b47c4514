/**
 * Migrations of both engines: numbered SQL files. The first line of each states whether older versions of the
 * program can still use the database. A database stores its version and the oldest usable one in one number
 * (docs/decisions/0021-migrations.md).
 */
import { readdirSync, readFileSync } from 'node:fs';
import { Refusal } from '../refusal.ts';

export interface Migration {
  /** Without the first line. */
  sql: string;
  /**
   * Whether older programs must not use a database with this migration. Running ones then return 503 to every
   * request. They check after each foreign commit on SQLite, and once a second on PostgreSQL.
   */
  refusesOlder: boolean;
}

export interface Schema {
  /** Number of migrations applied. */
  version: number;
  /** Programs from this version on can use the schema. A migration that refuses older ones raises this first. */
  usableFrom: number;
}

/** Stores both versions in one number. */
const maxVersions = 1_000;

/**
 * Reads the migrations in a folder, in order. Throws if a number or a first line is wrong: such a program must
 * not change a database.
 */
export function readMigrations(folder: URL): Migration[] {
  const files = readdirSync(folder).filter((file) => file.endsWith('.sql'));
  return files.toSorted().map((file, at) => {
    const number = String(at + 1).padStart(3, '0');
    if (!file.startsWith(`${number}-`)) throw new Error(`${file}: its number must be ${number}`);
    const text = readFileSync(new URL(file, folder), 'utf8');
    const [firstLine, older] = /^-- Older versions: (continue|refused)\n/.exec(text) ?? [];
    if (firstLine === undefined) {
      throw new Error(
        `${file}: the first line must be "-- Older versions: continue" or "-- Older versions: refused"`,
      );
    }
    return { sql: text.slice(firstLine.length), refusesOlder: older === 'refused' };
  });
}

export function schemaAfter({ version, usableFrom }: Schema, { refusesOlder }: Migration): Schema {
  return { version: version + 1, usableFrom: refusesOlder ? version + 1 : usableFrom };
}

/** The number that a database stores: 0 if it has no schema. */
export function encodeSchema({ version, usableFrom }: Schema): number {
  return usableFrom * maxVersions + version;
}

export function decodeSchema(number: number): Schema {
  return { version: number % maxVersions, usableFrom: Math.floor(number / maxVersions) };
}

/** Throws Refusal if a program with `newest` migrations must not use the database `name`. */
export function refuseUnusable({ version, usableFrom }: Schema, newest: number, name: string) {
  if (usableFrom > newest) throw newerSchema(Math.max(version, usableFrom), newest, name);
}

/** Also refuses a newer schema that is usable: a copy would leave out its new columns. */
export function refuseNewer(schema: Schema, newest: number, name: string): void {
  refuseUnusable(schema, newest, name);
  if (schema.version > newest) throw newerSchema(schema.version, newest, name);
}

function newerSchema(version: number, newest: number, name: string): Refusal {
  return new Refusal(
    `${name} was written by a newer Plant Store (schema ${version}, this version supports up to ${newest}).`,
    { kind: 'newer-schema' },
  );
}
