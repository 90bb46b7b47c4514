/**
 * The creates of a group with quotas. The group has locked the row of the store. Then this counts plants in a round
 * trip of its own, and creates only those that there is room for. Without quotas, nothing of this runs (decision 35).
 */
import type { ChangeOf } from '../changes.ts';
import { maxId } from '../ids.ts';
import { idsExhausted, idTaken, type Problem } from '../problem.ts';
import { quotaProblem, type Quotas } from '../quota.ts';
import { changeStatements } from './change-statements.ts';
import { prepared, type Connection } from './connection.ts';
import { settled } from './pool.ts';

export const limitSql = {
  // Counting stops at the quota.
  usersPlants: prepared<readonly [owner: number, plants: number]>(
    'count_plants_of_users',
    `
      SELECT owners.owner, counted.plants
      FROM unnest($2::bigint[]) AS owners (owner) CROSS JOIN LATERAL (
        SELECT count(*) AS plants FROM (
          SELECT id FROM plant_store.plants
          WHERE store = $1 AND plants.owner = owners.owner LIMIT $3
        ) AS limited
      ) AS counted`,
  ),
  storePlants: prepared<readonly [plants: number]>(
    'count_plants_of_store',
    `
      SELECT count(*) FROM (
        SELECT id FROM plant_store.plants WHERE store = $1 LIMIT $2
      ) AS limited`,
  ),
  takenIds: prepared<readonly [id: number]>(
    'taken_ids',
    `
      SELECT id FROM plant_store.plants
      WHERE store = $1 AND id = ANY ($2::bigint[])`,
  ),
  raiseLastId: prepared(
    'raise_last_id',
    `
      UPDATE plant_store.stores SET last_id = greatest(last_id, $2)
      WHERE store = $1`,
  ),
};

type Create = ChangeOf<'create'>;

const none = Promise.resolve([]);

export class LimitedCreates {
  readonly #store: number;
  /** By sequence number, in the order of arrival. */
  readonly #creates: ReadonlyMap<number, Create>;
  readonly #quotas: Quotas;
  readonly #plantsOf = new Map<number, number>();
  #storePlants = 0;
  #takenIds = new Set<number>();
  /** The id of each create, or why it is refused. */
  readonly #decisions = new Map<number, number | Problem>();
  /** The ids that the server returned; undefined before its response. */
  #created: ReadonlySet<number> | undefined;

  constructor(store: number, creates: ReadonlyMap<number, Create>, quotas: Quotas) {
    this.#store = store;
    this.#creates = creates;
    this.#quotas = quotas;
  }

  /** Call it after the store was locked and the deletes were sent. */
  async count(connection: Connection): Promise<void> {
    const { perUser, perStore } = this.#quotas;
    const creates = [...this.#creates.values()];
    const owners = [...new Set(creates.map(([, , owner]) => owner))];
    const ids = creates.flatMap(([, , , id]) => id ?? []);
    const { usersPlants, storePlants, takenIds } = limitSql;
    const [ofUsers, [[ofStore] = [0]], taken] = await settled([
      perUser === undefined ? none : connection.query(usersPlants, [this.#store, owners, perUser]),
      perStore === undefined ? none : connection.query(storePlants, [this.#store, perStore]),
      ids.length === 0 ? none : connection.query(takenIds, [this.#store, ids]),
    ]);
    for (const [owner, plants] of ofUsers) this.#plantsOf.set(owner, plants);
    this.#storePlants = ofStore;
    this.#takenIds = new Set(taken.map(([id]) => id));
  }

  /** Creates the plants that there is room for. Assigned ids are above `lastId`. */
  async send(connection: Connection, lastId: number): Promise<void> {
    this.#created = undefined;
    const admitted: Create[] = [];
    for (const [number, create] of this.#creates) {
      const decision = this.#decide(create, lastId);
      this.#decisions.set(number, decision);
      if (typeof decision !== 'number') continue;
      lastId = Math.max(lastId, decision);
      const [kind, store, owner, , name, tag] = create;
      admitted.push([kind, store, owner, decision, name, tag]);
    }
    if (admitted.length === 0) return;
    const { statement, values } = changeStatements.create;
    const changes = admitted.map((change, number) => ({ number, change, idsAfter: 0 }));
    const [rows] = await settled([
      connection.query(statement, values(this.#store, changes)),
      connection.query(limitSql.raiseLastId, [this.#store, lastId]),
    ]);
    this.#created = new Set(rows.map(([id]) => id));
  }

  /** The outcomes if the group was committed, even if the response of the server was lost. */
  *outcomes(): Iterable<readonly [number: number, id: number | Problem]> {
    for (const [number, decision] of this.#decisions) {
      const isCreated = typeof decision !== 'number' || this.#created?.has(decision) !== false;
      yield [number, isCreated ? decision : idTaken(decision)]; // another program has inserted the id
    }
  }

  /** Counts the plant if there is room for it. */
  #decide([, , owner, requestedId]: Create, lastId: number): number | Problem {
    const id = requestedId ?? lastId + 1;
    if (id > maxId) return idsExhausted();
    if (this.#takenIds.has(id)) return idTaken(id);
    const plants = this.#plantsOf.get(owner) ?? 0;
    const problem = quotaProblem(this.#quotas, (scope) =>
      scope === 'user' ? plants : this.#storePlants,
    );
    if (problem !== undefined) return problem;
    this.#takenIds.add(id);
    this.#plantsOf.set(owner, plants + 1);
    this.#storePlants++;
    return id;
  }
}
