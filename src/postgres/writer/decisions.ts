/**
 * The part of a store that a group of changes depends on. The row of the store is locked, so this part stays the same
 * until the group is committed, and all outcomes are decided here.
 */
import { reaches } from '../../access/access.ts';
import type { Change, ChangeKind, ChangeOf, ChangeResults } from '../../plants/changes.ts';
import { maxId } from '../../plants/ids.ts';
import { defect, idTaken, type Problem } from '../../problem.ts';
import { quotaProblem, type Quotas } from '../../plants/quota.ts';

/** The result of a change, or why it is refused. */
export type Outcome = ChangeResults[ChangeKind] | Problem;
export type Create = ChangeOf<'create'>;

interface StoreState {
  /** The largest id that the store has ever held. */
  lastId: number;
  /** Free ids, if too few are left above `lastId`. */
  randomIds: number[];
  /** By id, the owners of the plants that the changes name. */
  owners: Map<number, number>;
  /** The number of plants of each owner, if there is a quota. */
  userPlants: Map<number, number>;
  /** The number of plants in the store, if there is a quota. */
  storePlants: number;
}

export class Decisions {
  readonly #quotas: Quotas;
  readonly state: StoreState;
  /** What to write, by id. */
  readonly created = new Map<number, Create>();
  readonly deleted = new Set<number>();

  constructor(quotas: Quotas, state: StoreState) {
    this.#quotas = quotas;
    this.state = state;
  }

  /** Decides the outcome of the next change. */
  apply(change: Change): Outcome {
    return change[0] === 'create' ? this.#create(change) : this.#delete(change);
  }

  #create(create: Create): number | Problem {
    const { lastId, randomIds, owners, userPlants, storePlants } = this.state;
    const [, , owner, requestedId] = create;
    const id = requestedId ?? (lastId < maxId ? lastId + 1 : randomIds.pop());
    if (id === undefined) return defect(new Error('too few random ids'));
    if (owners.has(id)) return idTaken(id);
    const owned = userPlants.get(owner) ?? 0;
    const problem = quotaProblem(this.#quotas, (scope) => (scope === 'user' ? owned : storePlants));
    if (problem !== undefined) return problem;
    this.state.lastId = Math.max(lastId, id);
    owners.set(id, owner);
    this.#count(owner, 1);
    this.created.set(id, create);
    return id;
  }

  #delete([, , reach, id]: ChangeOf<'delete'>): boolean {
    const { owners } = this.state;
    const owner = owners.get(id);
    if (owner === undefined || !reaches(reach, owner)) return false;
    owners.delete(id);
    this.#count(owner, -1);
    if (!this.created.delete(id)) this.deleted.add(id);
    return true;
  }

  #count(owner: number, change: 1 | -1): void {
    const { userPlants } = this.state;
    userPlants.set(owner, (userPlants.get(owner) ?? 0) + change);
    this.state.storePlants += change;
  }
}
