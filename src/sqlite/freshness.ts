/**
 * The cache of grants. Each request first checks whether another connection has written. That detects revoked tokens
 * and changed roles.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { Grant } from '../access.ts';
import { Cache } from '../cache.ts';
import type { SchemaCheck } from './migrate.ts';
import { prepare, type Statement } from './statement.ts';

const maxGrants = 10_000;

export class Freshness {
  /** Cached until any token or user changes. */
  readonly grants = new Cache<Grant>(maxGrants);
  readonly #schema: SchemaCheck;
  /**
   * Differs after every commit of another connection, in any process
   * (sqlite.org/pragma.html#pragma_data_version). It takes a fraction of the time of any other read.
   */
  readonly #readDataVersion: Statement<[version: number]>;
  readonly #readGrantChanges: Statement<[count: number]>;
  #dataVersion: number | undefined;
  #grantChanges: number | undefined;

  /** `database` must never write: its own commits do not change data_version. */
  constructor(database: DatabaseSync, schema: SchemaCheck) {
    this.#schema = schema;
    this.#readDataVersion = prepare(database, 'PRAGMA data_version');
    this.#readGrantChanges = prepare(database, 'SELECT count FROM grant_changes');
  }

  /** Drops stale grants. Throws Refusal if a newer program has made the schema unusable. */
  refresh(): void {
    const dataVersion = this.#readDataVersion.get()?.[0];
    if (dataVersion === this.#dataVersion) return;
    this.#schema.check();
    const grantChanges = this.#readGrantChanges.get()?.[0];
    if (grantChanges !== this.#grantChanges) this.grants.clear();
    // Set last, so that the next call checks again if a read fails.
    this.#dataVersion = dataVersion;
    this.#grantChanges = grantChanges;
  }
}
