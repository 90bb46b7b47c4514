/**
 * The row of a store: its largest id, and versions that show whether a cached count of plants is stale. A transaction
 * reads and writes the row once, however many plants it changes.
 */
import type { DatabaseSync } from 'node:sqlite';
import { maxId } from '../ids.ts';
import { prepare, type Statement } from './statement.ts';

/**
 * Maximum number of owner versions in a store. With more users, some share a version. Their plants are then counted
 * again more often than needed, but no count is stale.
 */
const maxOwnerVersions = 256;
/** The widest integer that Buffer supports. No store reaches 2^48 changes, so no version is used twice. */
const versionBytes = 6;
const storeVersionOffset = 0;

export const storeSql = {
  read: 'SELECT last_id, versions FROM stores WHERE store = ?',
  write: 'UPDATE stores SET last_id = ?2, versions = ?3 WHERE store = ?1',
};

export class Stores {
  readonly #read: Statement<[lastId: number, versions: Uint8Array]>;
  readonly #write: Statement;
  /** The rows that the open transaction has loaded. */
  readonly #rows = new Map<number, StoreRow>();

  constructor(database: DatabaseSync) {
    this.#read = prepare(database, storeSql.read);
    this.#write = prepare(database, storeSql.write);
  }

  /** Call it at the start of a transaction: the previous one can have been rolled back. */
  reset(): void {
    this.#rows.clear();
  }

  loadRow(store: number): StoreRow {
    let row = this.#rows.get(store);
    if (row === undefined) {
      const stored = this.#read.get(store) as [number, Uint8Array]; // it exists, because users refer to their store
      row = new StoreRow(...stored);
      this.#rows.set(store, row);
    }
    return row;
  }

  /** Writes changed rows. Call it at the end of a transaction. */
  flush(): void {
    for (const [store, { isChanged, lastId, versions }] of this.#rows) {
      if (isChanged) this.#write.run(store, lastId, versions);
    }
  }
}

export class StoreRow {
  lastId: number;
  versions: Buffer;
  isChanged = false;

  constructor(lastId: number, { buffer, byteOffset, byteLength }: Uint8Array) {
    this.lastId = lastId;
    this.versions = Buffer.from(buffer, byteOffset, byteLength);
  }

  /** Undefined if the store has had the largest id. */
  get nextId(): number | undefined {
    return this.lastId < maxId ? this.lastId + 1 : undefined;
  }

  raiseLastId(id: number): void {
    if (id <= this.lastId) return;
    this.lastId = id;
    this.isChanged = true;
  }

  /** Differs after every change to plants of the owner, or of the store if `owner` is undefined. */
  version(owner?: number): number {
    const offset = owner === undefined ? storeVersionOffset : ownerVersionOffset(owner);
    return offset < this.versions.length ? this.versions.readUIntBE(offset, versionBytes) : 0;
  }

  /** Call it after a plant of the owner was created or deleted. */
  incrementVersions(owner: number): void {
    this.isChanged = true;
    this.#increment(ownerVersionOffset(owner));
    this.#increment(storeVersionOffset);
  }

  #increment(offset: number): void {
    const missingBytes = offset + versionBytes - this.versions.length;
    if (missingBytes > 0)
      this.versions = Buffer.concat([this.versions, Buffer.alloc(missingBytes)]);
    const version = this.versions.readUIntBE(offset, versionBytes);
    this.versions.writeUIntBE(version + 1, offset, versionBytes);
  }
}

/** Users are numbered from 1. */
function ownerVersionOffset(user: number): number {
  return versionBytes * (1 + ((user - 1) % maxOwnerVersions));
}
