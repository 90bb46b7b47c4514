/**
 * Migrations of both engines: numbered SQL files. The first line of each states whether older versions of the
 * program can still use the database. A database stores its version and the oldest usable one in one number
 * (docs/decisions/0021-migrations.md).
 */
import { readdirSync, readFileSync } from 'node:fs';
import { Refusal } from '../refusal.ts';
import type { Finding } from './finding.ts';

interface Migration {
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
  /** Programs from this version on can use the schema. */
  usableFrom: number;
}

/** Stores both versions in one number. */
const maxVersions = 1_000;

export class Migrations {
  readonly #all: readonly Migration[];

  /**
   * Reads the migrations in a folder, in order. Throws if a number or a first line is wrong: such a program must
   * not change a database.
   */
  constructor(folder: URL) {
    const files = readdirSync(folder).filter((file) => file.endsWith('.sql'));
    this.#all = files.toSorted().map((file, at) => {
      const number = String(at + 1).padStart(3, '0');
      if (!file.startsWith(`${number}-`)) throw new Error(`${file}: its number must be ${number}`);
      const sql = readFileSync(new URL(file, folder), 'utf8');
      const [, older] = /^-- Older versions: (continue|refused)\n/.exec(sql) ?? [];
      if (older !== undefined) return { sql, refusesOlder: older === 'refused' };
      throw new Error(
        `${file}: the first line must be "-- Older versions: continue" or "-- Older versions: refused"`,
      );
    });
  }

  /** The newest version that this program supports. */
  get newest(): number {
    return this.#all.length;
  }

  /** The statements that change the schema of one version to that of another. */
  sqlBetween(from: number, to: number): string {
    return this.#all
      .slice(from, to)
      .map(({ sql }) => sql)
      .join('\n');
  }

  schemaOf(version: number): Schema {
    const refusesOlder = this.#all.slice(0, version).map((migration) => migration.refusesOlder);
    return { version, usableFrom: refusesOlder.lastIndexOf(true) + 1 };
  }

  /** Throws Refusal if this program must not use the database `name`. */
  refuseUnusable({ version, usableFrom }: Schema, name: string): void {
    if (usableFrom > this.newest) throw this.#newerSchema(Math.max(version, usableFrom), name);
  }

  /** Also refuses a newer schema that is usable: a copy would leave out its new columns. */
  refuseNewer(schema: Schema, name: string): void {
    this.refuseUnusable(schema, name);
    if (schema.version > this.newest) throw this.#newerSchema(schema.version, name);
  }

  /** For a program that does not migrate the database. */
  refuseOlder({ version }: Schema, name: string): void {
    if (version === 0 || version >= this.newest) return;
    throw new Refusal(
      `${name} has schema ${version} of an older Plant Store, and this version needs ${this.newest}. Use the version that ` +
        'wrote it, or upgrade it with "npx plant-store migrate". Restore a backup to another file first.',
    );
  }

  /** For the database `name`. Throws Refusal if this program must not use it. */
  findingOf(schema: Schema, name: string): Finding {
    const { version } = schema;
    this.refuseUnusable(schema, name);
    if (version === 0) throw new Refusal(`${name} has no tables. Choose another database.`);
    const detail = `it has schema ${version} of ${this.newest}`;
    return [version < this.newest ? 'warn' : 'ok', detail, 'npx plant-store migrate'];
  }

  #newerSchema(version: number, name: string): Refusal {
    return new Refusal(
      `${name} was written by a newer Plant Store (schema ${version}, this version supports up to ${this.newest}). ` +
        'Update Plant Store, or choose another database.',
    );
  }
}

/** The number that a database stores: 0 if it has no schema. */
export function encodeSchema({ version, usableFrom }: Schema): number {
  return usableFrom * maxVersions + version;
}

export function decodeSchema(number: number): Schema {
  return { version: number % maxVersions, usableFrom: Math.floor(number / maxVersions) };
}
