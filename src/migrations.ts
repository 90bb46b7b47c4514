/**
 * Migrations as both engines have them: numbered SQL files, each marked with what becomes of programs
 * that do not know it yet. A database keeps one number (numberOf), so that a program can tell whether it
 * may use a newer schema (docs/decisions/0021-migrations.md).
 */
import { readdirSync, readFileSync } from 'node:fs';
import { Refusal } from './refusal.ts';

export interface Migration {
  /** Without the mark. */
  sql: string;
  /**
   * Whether programs that do not know the migration must not use a database that has it. One that runs stays, and
   * returns 503 to all: on SQLite it checks each commit (`SchemaCheck`), on PostgreSQL once a second.
   */
  refusesOlder: boolean;
}

/** What is known of a database's schema. */
export interface Schema {
  /** How many migrations it has. */
  version: number;
  /** The oldest version whose programs may use it; above `version` while a migration refuses them. */
  usableFrom: number;
}

/** Programs before 0.1.0 compare the number with their own version and refuse a greater one. */
const versionsMax = 1_000;

/**
 * The migrations in a folder, in order. Throws for one that is not numbered in order or not marked: a
 * program with such a file is not fit to touch a database.
 */
export function migrationsIn(folder: URL): Migration[] {
  const files = readdirSync(folder).filter((file) => file.endsWith('.sql'));
  return files.toSorted().map((file, at) => {
    const number = String(at + 1).padStart(3, '0');
    if (!file.startsWith(`${number}-`)) throw new Error(`${file}: its number must be ${number}`);
    const text = readFileSync(new URL(file, folder), 'utf8');
    const [mark, older] = /^-- Older versions: (continue|refused)\n/.exec(text) ?? [];
    if (mark === undefined) {
      throw new Error(
        `${file}: the first line must be "-- Older versions: continue" or "-- Older versions: refused"`,
      );
    }
    return { sql: text.slice(mark.length), refusesOlder: older === 'refused' };
  });
}

/** The schema after one more migration. */
export function schemaAfter({ version, usableFrom }: Schema, { refusesOlder }: Migration): Schema {
  return { version: version + 1, usableFrom: refusesOlder ? version + 1 : usableFrom };
}

/**
 * The number of a schema: its version if no older program may use it, as programs before 0.1.0 have
 * it. Otherwise a greater number, which those refuse.
 */
export function numberOf({ version, usableFrom }: Schema): number {
  return version === usableFrom ? version : usableFrom * versionsMax + version;
}

export function schemaOf(number: number): Schema {
  return number < versionsMax
    ? { version: number, usableFrom: number }
    : { version: number % versionsMax, usableFrom: Math.floor(number / versionsMax) };
}

/** Throws Refusal if a program that has `newest` migrations must not use `name`, which has the schema. */
export function refuseUnusable({ version, usableFrom }: Schema, newest: number, name: string) {
  if (usableFrom > newest) throw newerSchema(Math.max(version, usableFrom), newest, name);
}

/** The same if the program does not know all that is there, be it usable: for copies of everything. */
export function refuseNewer(schema: Schema, newest: number, name: string): void {
  refuseUnusable(schema, newest, name);
  if (schema.version > newest) throw newerSchema(schema.version, newest, name);
}

function newerSchema(version: number, newest: number, name: string): Refusal {
  return new Refusal(
    `${name} was written by a newer Plant Store (schema ${version}, this one knows ${newest}).`,
    { kind: 'newer-schema' },
  );
}
