/**
 * The row of a store: its largest id, and version numbers that show whether a cached page of its plants is
 * still right. A transaction reads and writes the row once, however many plants it changes.
 */
import type { DatabaseSync } from 'node:sqlite';
import { soleOwner, type ReadAccess } from '../access.ts';
import { idMax } from '../ids.ts';
import { idsExhausted } from '../problem.ts';
import { prepare, type Statement } from './statement.ts';

/**
 * Beyond so many users of a store, some share a version. That costs reads, and no page is ever stale. So
 * versions are for comparing: they do not number the changes.
 */
const ownersMax = 256;
/** The most that Buffer counts in: a store does not see 2^48 changes, so no version comes back. */
const versionBytes = 6;
const wholeStoreAt = 0;

export const storeSql = {
  read: 'SELECT last_id, versions FROM stores WHERE store = ?',
  write: 'UPDATE stores SET last_id = ?2, versions = ?3 WHERE store = ?1',
  // As text: a BLOB becomes an object, which costs more than the read.
  version: `SELECT hex(substr(versions, ?2 + 1, ${versionBytes})) FROM stores WHERE store = ?1`,
  versions: 'SELECT hex(versions) FROM stores WHERE store = ?',
};

export class Stores {
  readonly #read: Statement<[lastId: number, versions: Uint8Array]>;
  readonly #write: Statement;
  readonly #version: Statement<[version: string]>;
  readonly #versions: Statement<[versions: string]>;
  /** Those of the open transaction. */
  readonly #rows = new Map<number, StoreRow>();

  constructor(database: DatabaseSync) {
    this.#read = prepare(database, storeSql.read);
    this.#write = prepare(database, storeSql.write);
    this.#version = prepare(database, storeSql.version);
    this.#versions = prepare(database, storeSql.versions);
  }

  /** Changes with every change of the plants that the caller can see. */
  version({ store, read }: ReadAccess): string {
    const owner = soleOwner(read);
    if (read === 'all' || owner !== undefined) {
      const at = owner === undefined ? wholeStoreAt : ownerAt(owner);
      const [version = ''] = this.#version.get(store, at) ?? [];
      return version;
    }
    const [versions = ''] = this.#versions.get(store) ?? [];
    const hexAt = (at: number) => versions.slice(2 * at, 2 * (at + versionBytes));
    return read.map((one) => hexAt(ownerAt(one))).join();
  }

  /** At the start of a transaction: the one before may have been rolled back. */
  begin(): void {
    this.#rows.clear();
  }

  row(store: number): StoreRow {
    let row = this.#rows.get(store);
    if (row === undefined) {
      const stored = this.#read.get(store) as [number, Uint8Array]; // users refer to their store
      row = new StoreRow(...stored);
      this.#rows.set(store, row);
    }
    return row;
  }

  /** The last statements of a transaction. */
  write(): void {
    for (const [store, { isChanged, lastId, versions }] of this.#rows) {
      if (isChanged) this.#write.run(store, lastId, versions);
    }
  }
}

class StoreRow {
  lastId: number;
  versions: Buffer;
  isChanged = false;

  constructor(lastId: number, { buffer, byteOffset, byteLength }: Uint8Array) {
    this.lastId = lastId;
    this.versions = Buffer.from(buffer, byteOffset, byteLength);
  }

  assignId(): number {
    if (this.lastId >= idMax) throw idsExhausted();
    this.useId(this.lastId + 1);
    return this.lastId;
  }

  useId(id: number): void {
    if (id <= this.lastId) return;
    this.lastId = id;
    this.isChanged = true;
  }

  /** A plant of the owner is new or gone. */
  changed(owner: number): void {
    this.isChanged = true;
    this.#raise(ownerAt(owner));
    this.#raise(wholeStoreAt);
  }

  #raise(at: number): void {
    const missing = at + versionBytes - this.versions.length;
    if (missing > 0) this.versions = Buffer.concat([this.versions, Buffer.alloc(missing)]);
    const version = this.versions.readUIntBE(at, versionBytes);
    this.versions.writeUIntBE(version + 1, at, versionBytes);
  }
}

/** Users are numbered from 1. */
function ownerAt(user: number): number {
  return versionBytes * (1 + ((user - 1) % ownersMax));
}
