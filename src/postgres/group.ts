/**
 * One transaction of changes to the plants of a store, and what became of each of them.
 */
import { idMax } from '../ids.ts';
import type { Reach } from '../access.ts';
import { tagOf, type NewPlant, type Plant } from '../plant.ts';
import { defect, idsExhausted, idTaken, outcomeUnknown } from '../problem.ts';
import { prepared, type Connection } from './connection.ts';
import { problemOf } from './errors.ts';
import { settled } from './pool.ts';

type IdRow = readonly [id: number];

export const groupSql = {
  // First of all, because it locks the row of the store: groups of several replicas take turns.
  begin: prepared<readonly [lastId: number, version: number]>(
    'begin_group',
    `
      UPDATE plant_store.stores
      SET last_id = least(greatest(last_id, $2), ${idMax}) + $3, version = version + 1, writer = $4
      WHERE store = $1
      RETURNING last_id - $3 AS last_id, version`,
  ),
  // A plant is named once for each owner that it may have; an owner that is null does not count.
  delete: prepared<IdRow>(
    'delete_plants',
    `
      DELETE FROM plant_store.plants AS plants
      USING unnest($2::bigint[], $3::bigint[]) AS gone (id, owner)
      WHERE plants.store = $1 AND plants.id = gone.id
        AND (gone.owner IS NULL OR plants.owner = gone.owner)
      RETURNING plants.id`,
  ),
  // The last of the ids that the store has given out by now are those of this group: `ahead` is how
  // far before the last one. Above the largest there can be, there are none.
  insert: prepared<IdRow>(
    'insert_plants',
    `
      INSERT INTO plant_store.plants (store, id, owner, tag, name)
      SELECT stores.store, coalesce(new.id, stores.last_id - new.ahead), new.owner, new.tag, new.name
      FROM plant_store.stores CROSS JOIN
           unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::text[])
             AS new (id, ahead, owner, tag, name)
      WHERE stores.store = $1 AND coalesce(new.id, stores.last_id - new.ahead) <= ${idMax}
      ON CONFLICT DO NOTHING
      RETURNING id`,
  ),
  // Locked, so that the answer comes only when the group that may still be under way is over.
  askLast: prepared<readonly [lastId: number, version: number, writer: string]>(
    'ask_last',
    `
      SELECT last_id - $2 AS last_id, version, writer
      FROM plant_store.stores WHERE store = $1 FOR UPDATE`,
  ),
};

export type Write =
  { kind: 'create'; owner: number; plant: NewPlant } | { kind: 'delete'; reach: Reach; id: number };

/** A write, and who waits for it. */
export interface Waiting {
  write: Write;
  sinceMs: number;
  resolve: (value: Plant | boolean) => void;
  reject: (error: unknown) => void;
}

type Create = Waiting & { write: Write & { kind: 'create' } };
type Delete = Waiting & { write: Write & { kind: 'delete' } };

export class Group {
  readonly store: number;
  /** When the first of its writes came. */
  readonly sinceMs: number;
  /** How many writes it has. */
  readonly size: number;
  /** The largest id before this group, and the version with it, once the server has said so. */
  last: { id: number; version: number } | undefined;
  readonly #creates: readonly Create[];
  readonly #deletes: readonly Delete[];
  /** How many of the creates leave their id to the store. */
  readonly assigned: number;
  /** What the server said that it did; undefined as long as it has not. */
  #created: ReadonlySet<number> | undefined;
  #deleted: ReadonlySet<number> | undefined;

  /** In the order in which they came; no two of the writes name the same id. */
  constructor(store: number, writes: readonly Waiting[]) {
    this.store = store;
    this.sinceMs = writes[0]?.sinceMs ?? 0;
    this.size = writes.length;
    this.#creates = writes.filter((one): one is Create => one.write.kind === 'create');
    this.#deletes = writes.filter((one): one is Delete => one.write.kind === 'delete');
    this.assigned = this.#creates.filter(({ write }) => write.plant.id === undefined).length;
  }

  /**
   * One round trip. Rejects with the error of the server. `writer` is written beside the version of the
   * store and never twice: whoever finds it there knows that the group came through.
   */
  async commit(connection: Connection, writer: string): Promise<void> {
    [this.last, this.#created, this.#deleted] = [undefined, undefined, undefined];
    const [, , , , done] = await settled([
      connection.command('BEGIN'),
      this.#begin(connection, writer),
      this.#delete(connection),
      this.#insert(connection),
      connection.command('COMMIT'),
    ]);
    if (done !== 'COMMIT') throw defect(new Error(`the server answered COMMIT with ${done}`));
  }

  /** Settles each write, the group being committed. */
  tell(): void {
    const lost = () => outcomeUnknown(new Error('the answer of the server was lost'));
    let next = this.last?.id ?? Number.NaN;
    for (const { write, resolve, reject } of this.#creates) {
      const { id: wanted, name } = write.plant;
      const tag = tagOf(write.plant);
      const id = wanted ?? ++next;
      if (id > idMax) reject(idsExhausted());
      else if (this.#created?.has(id) ?? wanted === undefined) resolve({ id, name, tag });
      else reject(this.#created === undefined ? lost() : idTaken(id));
    }
    for (const { write, resolve, reject } of this.#deletes) {
      if (this.#deleted === undefined) reject(lost());
      else resolve(this.#deleted.has(write.id));
    }
  }

  /** Rejects all: nothing was changed, or there is a defect. */
  tellFailed(error: unknown): void {
    this.#reject(problemOf(error));
  }

  /** Rejects all: nobody knows. */
  tellUnknown(error: unknown): void {
    this.#reject(outcomeUnknown(error));
  }

  #reject(error: unknown): void {
    for (const { reject } of [...this.#creates, ...this.#deletes]) reject(error);
  }

  async #begin(connection: Connection, writer: string): Promise<void> {
    const own = this.#creates.map(({ write }) => write.plant.id ?? 0);
    const values = [this.store, Math.max(0, ...own), this.assigned, writer];
    const [row] = await connection.query(groupSql.begin, values);
    if (row === undefined) throw defect(new Error(`there is no store ${this.store}`));
    const [id, version] = row;
    this.last = { id, version };
  }

  async #delete(connection: Connection): Promise<void> {
    const writes = this.#deletes.map(({ write }) => write);
    if (writes.length === 0) return;
    const ids: number[] = [];
    const owners: (number | null)[] = [];
    for (const { id, reach } of writes) {
      for (const owner of reach === 'all' ? [null] : reach) {
        ids.push(id);
        owners.push(owner);
      }
    }
    this.#deleted = idsOf(await connection.query(groupSql.delete, [this.store, ids, owners]));
  }

  async #insert(connection: Connection): Promise<void> {
    const writes = this.#creates.map(({ write }) => write);
    if (writes.length === 0) return;
    let ahead = this.assigned;
    const rows = await connection.query(groupSql.insert, [
      this.store,
      writes.map(({ plant }) => plant.id),
      writes.map(({ plant }) => (plant.id === undefined ? --ahead : 0)),
      writes.map(({ owner }) => owner),
      writes.map(({ plant }) => tagOf(plant)),
      writes.map(({ plant }) => plant.name),
    ]);
    this.#created = idsOf(rows);
  }
}

function idsOf(rows: readonly IdRow[]): ReadonlySet<number> {
  return new Set(rows.map(([id]) => id));
}
