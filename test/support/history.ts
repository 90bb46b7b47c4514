/**
 * All requests of clients to one store and their responses, and a check of whether they are consistent.
 */
import {
  check,
  type Content,
  type Effect,
  type Person,
  type Step,
  type Verdict,
} from './linearizability.ts';

/**
 * A request and its response. Names are unique: no two creates or updates have the same. The condition of an update or a
 * delete is the content whose entity tag it had.
 */
export type Exchange =
  /** `wanted` is the id that the client chose, and `id` is the plant's. */
  | { kind: 'created'; content: Content; wanted: number | undefined; id: number }
  | { kind: 'taken'; id: number }
  | { kind: 'updated'; id: number; content: Content; condition: Content | undefined }
  | { kind: 'deleted'; id: number; condition: Content | undefined }
  /** The condition did not hold. */
  | { kind: 'changed'; id: number; condition: Content }
  | { kind: 'restored'; id: number; content: Content }
  /** A restore with a 409 or a 404 response. */
  | { kind: 'held'; id: number }
  | { kind: 'nothing'; id: number }
  | { kind: 'found'; id: number; content: Content }
  /** A read, update or delete with a 404 response. */
  | { kind: 'missing'; id: number }
  /** `upTo` is the last id of the page if more plants follow, otherwise Infinity. */
  | { kind: 'listed'; after: number; limit: number; tag?: string; upTo: number; plants: Listed[] }
  /** The outcome of these is unknown: the response was lost, or is `outcome-unknown`. */
  | { kind: 'lost create'; content: Content; wanted: number | undefined }
  | { kind: 'lost update'; id: number; content: Content; condition: Content | undefined }
  | { kind: 'lost delete'; id: number; condition: Content | undefined }
  | { kind: 'lost restore'; id: number };

export interface Listed extends Content {
  id: number;
}

/** Times are of one monotonic clock. The `end` of an unknown outcome does not matter. */
export interface Operation {
  readonly who: Person;
  readonly call: number;
  readonly end: number;
  readonly exchange: Exchange;
}

type Lost = Operation & { exchange: { kind: 'lost create' } };

/** Describes each inconsistency. The store must have been empty before. */
export function faultsOf(history: readonly Operation[]): string[] {
  const { steps, unseen } = stepsOf(history);
  const faults = [...invalidLists(history), ...lowIds(history, steps)];
  const failed = new Map<number, Verdict>();
  for (const [id, plantSteps] of steps) {
    const verdict = check(plantSteps);
    if (verdict !== undefined) failed.set(id, verdict);
  }
  for (const id of withoutLost(history, steps, [...failed.keys()], unseen)) {
    faults.push(`the plant ${id} is not linearizable:\n${failed.get(id)}`);
  }
  return faults;
}

/** The steps of each plant in the history, and the lost creates whose id never appears. */
export function stepsOf(history: readonly Operation[]): {
  steps: Map<number, Step[]>;
  unseen: Lost[];
} {
  const idOfName = new Map<string, number>();
  const steps = new Map<number, Step[]>();
  for (const { exchange } of history) {
    if ('id' in exchange) steps.set(exchange.id, []);
    if (exchange.kind === 'found' || exchange.kind === 'restored') {
      idOfName.set(exchange.content.name, exchange.id);
    }
    if (exchange.kind !== 'listed') continue;
    for (const { id, name } of exchange.plants) {
      steps.set(id, []);
      idOfName.set(name, id);
    }
  }

  const unseen: Lost[] = [];
  for (const operation of history) {
    const { exchange } = operation;
    const add = (id: number, effect: Effect, end = operation.end) => {
      const { who, call } = operation;
      const plantSteps = steps.get(id);
      if (plantSteps === undefined) steps.set(id, [{ who, call, end, effect }]);
      else plantSteps.push({ who, call, end, effect });
    };
    switch (exchange.kind) {
      case 'created': {
        const { content, wanted, id } = exchange;
        add(id, { kind: wanted === undefined ? 'assign' : 'create', content });
        break;
      }
      case 'taken':
      case 'found':
      case 'missing':
      case 'updated':
      case 'deleted':
      case 'changed':
      case 'restored':
      case 'held':
      case 'nothing':
        add(exchange.id, effectOf(exchange));
        break;
      case 'listed': {
        const { after, upTo, tag, plants } = exchange;
        const contents = new Map(plants.map(({ id, ...content }) => [id, content]));
        for (const id of steps.keys()) {
          if (id <= after || id > upTo) continue;
          const content = contents.get(id);
          add(id, { kind: 'see', content, ...(tag !== undefined && { tag }) });
        }
        break;
      }
      case 'lost update': {
        const { content, condition } = exchange;
        add(exchange.id, { kind: 'update', content, condition }, Infinity);
        break;
      }
      case 'lost delete':
        add(exchange.id, { kind: 'delete', condition: exchange.condition }, Infinity);
        break;
      case 'lost restore':
        add(exchange.id, { kind: 'restore' }, Infinity);
        break;
      case 'lost create': {
        const { content, wanted } = exchange;
        const id = wanted ?? idOfName.get(content.name);
        if (id === undefined)
          unseen.push(operation as Lost); // its kind is checked above
        else add(id, { kind: wanted === undefined ? 'assign' : 'create', content }, Infinity);
      }
    }
  }
  return { steps, unseen };
}

type OfOnePlant = Exclude<Exchange, { kind: 'created' | 'listed' | `lost ${string}` }>;

function effectOf(exchange: OfOnePlant): Effect {
  switch (exchange.kind) {
    case 'taken':
    case 'held':
    case 'nothing':
      return { kind: exchange.kind };
    case 'changed':
      return { kind: 'changed', condition: exchange.condition };
    case 'updated':
      return { kind: 'update', content: exchange.content, condition: exchange.condition };
    case 'deleted':
      return { kind: 'delete', condition: exchange.condition };
    case 'restored':
      return { kind: 'restore', content: exchange.content };
    case 'found':
      return { kind: 'see', content: exchange.content };
    case 'missing':
      return { kind: 'see', content: undefined };
  }
}

function invalidLists(history: readonly Operation[]): string[] {
  return history.flatMap(({ exchange }) => {
    if (exchange.kind !== 'listed') return [];
    const { after, limit, plants } = exchange;
    const isInOrder = plants.every(({ id }, at) => id > (plants[at - 1]?.id ?? after));
    if (isInOrder && plants.length <= limit) return [];
    return [`a list is out of order or out of range: ${JSON.stringify(exchange)}`];
  });
}

/** Creates with an assigned id that is not above every id that the store was known to have held. */
function lowIds(history: readonly Operation[], steps: ReadonlyMap<number, Step[]>): string[] {
  const heldBefore = heldIds(history);
  const faults: string[] = [];
  for (const [id, plantSteps] of steps) {
    for (const { call, effect } of plantSteps) {
      if (effect.kind !== 'assign' || id > heldBefore(call)) continue;
      const { name } = effect.content;
      faults.push(`${name} was assigned ${id}, though the store had held ${heldBefore(call)}`);
    }
  }
  return faults;
}

/** Whether the store held a plant with the id. */
function showsPlant(exchange: Exchange): exchange is OfOnePlant | (Exchange & { kind: 'created' }) {
  const { kind } = exchange;
  return kind !== 'missing' && kind !== 'nothing' && kind !== 'listed' && !kind.startsWith('lost');
}

/** The largest id that the store was known to have held at a time; 0 if none. */
function heldIds(history: readonly Operation[]): (time: number) => number {
  const held: { end: number; id: number }[] = [];
  for (const { end, exchange } of history) {
    if (exchange.kind === 'listed') {
      held.push({ end, id: exchange.plants.at(-1)?.id ?? 0 });
    } else if (showsPlant(exchange)) {
      held.push({ end, id: exchange.id });
    }
  }
  held.sort((a, b) => a.end - b.end);
  let max = 0;
  for (const entry of held) entry.id = max = Math.max(max, entry.id);
  return (time) => {
    let [low, high] = [0, held.length]; // a binary search for the last entry before `time`
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((held[middle]?.end ?? Infinity) < time) low = middle + 1;
      else high = middle;
    }
    return held[low - 1]?.id ?? 0;
  };
}

/**
 * The failed plants that no lost create explains. The store assigns each id to one create, so this is a
 * bipartite matching of plants and lost creates.
 */
function withoutLost(
  history: readonly Operation[],
  steps: ReadonlyMap<number, Step[]>,
  failed: readonly number[],
  unseen: readonly Lost[],
): number[] {
  const heldBefore = heldIds(history);
  const explains = ({ who, call, exchange }: Lost, id: number) => {
    if (id <= heldBefore(call)) return false;
    const effect: Effect = { kind: 'assign', content: exchange.content };
    return check([...(steps.get(id) ?? []), { who, call, end: Infinity, effect }]) === undefined;
  };
  const plantOf = new Map<Lost, number>();
  const pair = (id: number, visited: Set<Lost>): boolean => {
    for (const lost of unseen) {
      if (visited.has(lost) || !explains(lost, id)) continue;
      visited.add(lost);
      const other = plantOf.get(lost);
      if (other !== undefined && !pair(other, visited)) continue;
      plantOf.set(lost, id);
      return true;
    }
    return false;
  };
  return failed.filter((id) => !pair(id, new Set()));
}
