/**
 * The creates of a group that assigns their ids itself: with quotas, on Citus (decisions 15 and 36), and if the store has
 * had the largest id. The group locks the row of the store and counts plants in a round trip of its own. Then it creates
 * the plants that there is room for.
 */
import type { ChangeOf } from '../changes.ts';
import { maxId, randomId } from '../ids.ts';
import { defect, idTaken, type Problem } from '../problem.ts';
import { quotaProblem, type Quotas } from '../quota.ts';
import { changeStatements, createWithIds } from './change-statements.ts';
import { prepared, type Connection } from './connection.ts';
import type { GroupOptions } from './group.ts';
import { rangeOf } from './plant-statements.ts';
import { settled } from './settled.ts';

export const limitSql = {
  userPlants: prepared<readonly [owner: number, plants: number]>(
    'count_plants_of_users',
    `
      SELECT owners.owner, counted.plants
      FROM unnest($2::bigint[]) AS owners (owner) CROSS JOIN LATERAL (
        SELECT count(*) AS plants FROM (
          SELECT id FROM plant_store.plants
          WHERE ${rangeOf('owner', 'owners.owner', '0', String(maxId))} LIMIT $3
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
};

type Create = ChangeOf<'create'>;

const none = Promise.resolve([]);

export class NumberedCreates {
  readonly #store: number;
  /** By sequence number, in the order of arrival. */
  readonly #creates: ReadonlyMap<number, Create>;
  readonly #quotas: Quotas | undefined;
  readonly #isCitus: boolean;
  readonly #userPlants = new Map<number, number>();
  #storePlants = 0;
  #takenIds = new Set<number>();
  /** Free ids, if no number is left above `lastId`. */
  #randomIds: number[] = [];
  /** The id of each create, or why it is refused. */
  readonly #decisions = new Map<number, number | Problem>();
  /** The ids that the server returned; undefined before its response. */
  #created: ReadonlySet<number> | undefined;

  constructor(
    store: number,
    creates: ReadonlyMap<number, Create>,
    { quotas, isCitus }: GroupOptions,
  ) {
    this.#store = store;
    this.#creates = creates;
    this.#quotas = quotas;
    this.#isCitus = isCitus;
  }

  get hasQuotas(): boolean {
    return this.#quotas !== undefined;
  }

  /** The largest id that a create requests; 0 if none does. */
  get largestId(): number {
    return Math.max(0, ...this.#creates.values().map(([, , , id = 0]) => id));
  }

  /** Number of creates for which the store assigns the id. */
  get assignedCount(): number {
    return [...this.#creates.values()].filter(([, , , id]) => id === undefined).length;
  }

  /** The plants of the store after this group; undefined if they are not known exactly. */
  get storePlants(): number | undefined {
    const perStore = this.#quotas?.perStore;
    return perStore === undefined || this.#storePlants > perStore ? undefined : this.#storePlants;
  }

  /** Call it after the store was locked and the deletes were sent. */
  async check(connection: Connection): Promise<void> {
    const perUser = this.#quotas?.perUser;
    const creates = [...this.#creates.values()];
    const owners = [...new Set(creates.map(([, , owner]) => owner))];
    const ids = creates.flatMap(([, , , id]) => id ?? []);
    const { userPlants, takenIds } = limitSql;
    const [counts, taken] = await settled([
      perUser === undefined || owners.length === 0
        ? none
        : connection.query(userPlants, [this.#store, owners, perUser]),
      ids.length === 0 ? none : connection.query(takenIds, [this.#store, ids]),
    ]);
    for (const [owner, plants] of counts) this.#userPlants.set(owner, plants);
    this.#takenIds = new Set(taken.map(([id]) => id));
  }

  /** Assigned ids are above `lastId` as long as there are any. */
  async drawIds(connection: Connection, lastId: number): Promise<void> {
    this.#randomIds = [];
    if (Math.max(lastId, this.largestId) + this.assignedCount <= maxId) return;
    const used = new Set(this.#takenIds);
    for (const [, , , id = 0] of this.#creates.values()) used.add(id);
    while (this.#randomIds.length < this.assignedCount) {
      const drawn = Array.from({ length: this.assignedCount }, randomId);
      const taken = await connection.query(limitSql.takenIds, [this.#store, drawn]);
      for (const [id] of taken) used.add(id);
      this.#randomIds = [...new Set(drawn).difference(used)];
    }
  }

  /** `known` is how many plants the store has; undefined if they must be counted. */
  async countStore(connection: Connection, known: number | undefined): Promise<void> {
    const perStore = this.#quotas?.perStore;
    if (perStore === undefined) return;
    this.#storePlants = known ?? (await this.#countStore(connection, perStore + 1));
  }

  /** Decides which plants there is room for. Assigned ids are above `lastId`. Returns the largest id afterwards. */
  decide(lastId: number): number {
    for (const [number, create] of this.#creates) {
      const decision = this.#decide(create, lastId);
      this.#decisions.set(number, decision);
      if (typeof decision === 'number') lastId = Math.max(lastId, decision);
    }
    return lastId;
  }

  async send(connection: Connection, grants: number): Promise<void> {
    this.#created = undefined;
    const changes = [...this.#creates].flatMap(
      ([number, [kind, store, owner, , name, tag, by]]) => {
        const id = this.#decisions.get(number);
        if (typeof id !== 'number') return [];
        return { number, change: [kind, store, owner, id, name, tag, by] as const, idsAfter: 0 };
      },
    );
    if (this.#isCitus) {
      const creates = changes.map(({ change }) => change);
      this.#created = await createWithIds(connection, this.#store, creates);
      return;
    }
    if (changes.length === 0) return;
    const { statement, values } = changeStatements.create;
    const rows = await connection.query(statement, values(this.#store, grants, changes));
    this.#created = new Set(rows.map(([id]) => id));
  }

  /** The outcomes if the group was committed, even if the response of the server was lost. */
  *outcomes(): Iterable<readonly [number: number, id: number | Problem]> {
    for (const [number, decision] of this.#decisions) {
      const isCreated = typeof decision !== 'number' || this.#created?.has(decision) !== false;
      yield [number, isCreated ? decision : idTaken(decision)]; // another program has inserted the id
    }
  }

  async #countStore(connection: Connection, limit: number): Promise<number> {
    const [[plants] = [0]] = await connection.query(limitSql.storePlants, [this.#store, limit]);
    return plants;
  }

  /** Counts the plant if there is room for it. */
  #decide([, , owner, requestedId]: Create, lastId: number): number | Problem {
    const id = requestedId ?? (lastId < maxId ? lastId + 1 : this.#randomIds.pop());
    if (id === undefined) return defect(new Error('too few random ids'));
    if (this.#takenIds.has(id)) return idTaken(id);
    const plants = this.#userPlants.get(owner) ?? 0;
    const problem =
      this.#quotas &&
      quotaProblem(this.#quotas, (scope) => (scope === 'user' ? plants : this.#storePlants));
    if (problem !== undefined) return problem;
    this.#takenIds.add(id);
    this.#userPlants.set(owner, plants + 1);
    this.#storePlants++;
    return id;
  }
}
