/**
 * All requests of clients to one store and what their responses show of plants, and a check of whether that is
 * consistent.
 */
import { check, type Specification, type Step } from './linearizability.ts';

/** The content of a plant. Its owner is in no response, but decides who sees the plant. */
export interface Content {
  readonly name: string;
  readonly tag: string;
}

export type Effect =
  /** The client chose the id. */
  | { readonly kind: 'create'; readonly content: Content }
  /** The store assigned the id, so it had never held it before. */
  | { readonly kind: 'assign'; readonly content: Content }
  /** A create was refused because the store holds the id. */
  | { readonly kind: 'taken' }
  /** With a condition, the plant must have that content. */
  | { readonly kind: 'update'; readonly content: Content; readonly condition?: Content | undefined }
  | { readonly kind: 'delete'; readonly condition?: Content | undefined }
  /** An update or a delete was refused because the plant does not have the content of its condition. */
  | { readonly kind: 'changed'; readonly condition: Content }
  /** The content is unknown if the response was lost. */
  | { readonly kind: 'restore'; readonly content?: Content }
  /** A restore was refused because a plant within reach has the id, or because there is nothing to restore. */
  | { readonly kind: 'held' }
  | { readonly kind: 'nothing' }
  /** A read, or a change with a 404 response. With a tag, a plant with another tag counts as missing. */
  | {
      readonly kind: 'see';
      readonly content: Content | undefined;
      readonly tag?: string | undefined;
    };

/** Names are unique: no two creates or updates have the same. */
export interface OfPlant extends Step<Effect> {
  /** Undefined if the response with the assigned id was lost. */
  readonly id: number | undefined;
}

export interface List {
  readonly after: number;
  readonly limit: number;
  readonly tag?: string | undefined;
  /** The last id of the page if more plants follow, otherwise Infinity. */
  readonly upTo: number;
  readonly plants: readonly Listed[];
}

export interface Listed extends Content {
  readonly id: number;
}

export type Operation = OfPlant | (Omit<Step<unknown>, 'effect'> & { readonly list: List });

export function ofPlants(history: readonly Operation[]): OfPlant[] {
  return history.flatMap((one) => ('list' in one ? [] : one));
}

/** Describes each inconsistency. The store must have been empty before. */
export function faultsOf(history: readonly Operation[]): string[] {
  const { steps, unseen } = stepsOf(history);
  const heldBefore = heldIds(history);
  const failed = new Map<number, string>();
  for (const [id, ofPlant] of steps) {
    const fault = check(plant, ofPlant);
    if (fault !== undefined) failed.set(id, fault);
  }
  const unexplained = withoutLost(steps, [...failed.keys()], unseen, heldBefore);
  return [
    ...invalidLists(history),
    ...lowIds(steps, heldBefore),
    ...unexplained.map((id) => `the plant ${id} is not linearizable:\n${failed.get(id)}`),
  ];
}

/** What the store holds with the id, and the plant that was deleted last. */
interface State {
  readonly held?: Plant | undefined;
  readonly deleted?: Plant | undefined;
}

interface Plant {
  readonly content: Content;
  readonly owner: string;
}

/** A plant that did not exist before. */
export const plant: Specification<State, Effect> = {
  initial: {},
  isRead: ({ kind }) => ['taken', 'see', 'changed', 'held', 'nothing'].includes(kind),
  apply({ who, effect }, state) {
    const { held, deleted } = state;
    const isInReach = (one: Plant | undefined): one is Plant =>
      one !== undefined && (who.isManager || one.owner === who.name);
    const seen = isInReach(held) ? held : undefined;
    const meets = (condition: Content | undefined) =>
      condition === undefined || isSame(condition, seen?.content);
    switch (effect.kind) {
      case 'create':
      case 'assign': {
        const isFree = held === undefined && (effect.kind === 'create' || deleted === undefined);
        return isFree ? { held: { content: effect.content, owner: who.name }, deleted } : undefined;
      }
      case 'taken':
        return held === undefined ? undefined : state;
      case 'update':
        if (seen === undefined || !meets(effect.condition)) return undefined;
        return { held: { content: effect.content, owner: seen.owner }, deleted };
      case 'delete':
        return seen !== undefined && meets(effect.condition) ? { deleted: seen } : undefined;
      case 'changed':
        return seen !== undefined && !meets(effect.condition) ? state : undefined;
      case 'restore': {
        if (held !== undefined || !isInReach(deleted)) return undefined;
        const isRight = effect.content === undefined || isSame(effect.content, deleted.content);
        return isRight ? { held: deleted } : undefined;
      }
      case 'held':
        return isInReach(held) ? state : undefined;
      case 'nothing':
        return isInReach(held ?? deleted) ? undefined : state;
      case 'see': {
        const isShown = effect.tag === undefined || seen?.content.tag === effect.tag;
        return isSame(effect.content, isShown ? seen?.content : undefined) ? state : undefined;
      }
    }
  },
};

function isSame(one: Content | undefined, other: Content | undefined): boolean {
  return one?.name === other?.name && one?.tag === other?.tag;
}

/** The steps of each plant in the history, and the lost creates whose id never appears. */
function stepsOf(history: readonly Operation[]) {
  const steps = new Map<number, Step<Effect>[]>();
  const idOfName = new Map<string, number>();
  const shown = history.flatMap((one): { id: number; name?: string | undefined }[] => {
    if ('list' in one) return [...one.list.plants];
    const { id, effect } = one;
    return id === undefined
      ? []
      : [{ id, name: isRead(effect) ? effect.content?.name : undefined }];
  });
  for (const { id, name } of shown) {
    steps.set(id, []);
    if (name !== undefined) idOfName.set(name, id);
  }
  const unseen: OfPlant[] = [];
  for (const one of history) {
    const { who, call, end } = one;
    if ('list' in one) {
      const { after, upTo, tag, plants } = one.list;
      const contents = new Map(plants.map(({ id, ...content }) => [id, content]));
      for (const [id, ofPlant] of steps) {
        if (id <= after || id > upTo) continue;
        ofPlant.push({ who, call, end, effect: { kind: 'see', content: contents.get(id), tag } });
      }
    } else {
      const { effect } = one;
      const id =
        one.id ?? (effect.kind === 'assign' ? idOfName.get(effect.content.name) : undefined);
      if (id === undefined) unseen.push(one);
      else steps.get(id)?.push({ who, call, end, effect });
    }
  }
  return { steps, unseen };
}

/** Whether the response has the content. */
function isRead(effect: Effect): effect is Effect & { kind: 'see' | 'restore' } {
  return effect.kind === 'see' || effect.kind === 'restore';
}

function invalidLists(history: readonly Operation[]): string[] {
  return history.flatMap((one) => {
    if (!('list' in one)) return [];
    const { after, limit, plants } = one.list;
    const isInOrder = plants.every(({ id }, at) => id > (plants[at - 1]?.id ?? after));
    if (isInOrder && plants.length <= limit) return [];
    return [`a list is out of order or out of range: ${JSON.stringify(one)}`];
  });
}

type HeldBefore = (time: number) => number;

/** Creates with an assigned id that is not above every id that the store was known to have held. */
function lowIds(steps: ReadonlyMap<number, Step<Effect>[]>, heldBefore: HeldBefore): string[] {
  return [...steps].flatMap(([id, ofPlant]) =>
    ofPlant.flatMap(({ call, effect }) => {
      if (effect.kind !== 'assign' || id > heldBefore(call)) return [];
      const { name } = effect.content;
      return `${name} was assigned ${id}, though the store had held ${heldBefore(call)}`;
    }),
  );
}

/** The largest id that the store was known to have held at a time; 0 if none. */
function heldIds(history: readonly Operation[]): HeldBefore {
  const held = history
    .map((one) => ({ end: one.end, id: 'list' in one ? one.list.plants.at(-1)?.id : heldId(one) }))
    .toSorted((a, b) => a.end - b.end);
  const ends = held.map(({ end }) => end);
  let max = 0;
  const largest = held.map(({ id = 0 }) => (max = Math.max(max, id)));
  return (time) => {
    let [low, high] = [0, ends.length]; // a binary search for the last response before `time`
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((ends[middle] ?? Infinity) < time) low = middle + 1;
      else high = middle;
    }
    return largest[low - 1] ?? 0;
  };
}

/** The id if the response shows that the store held it. */
function heldId({ id, end, effect }: OfPlant): number | undefined {
  const isMissing = effect.kind === 'nothing' || (effect.kind === 'see' && !effect.content);
  return isMissing || end === Infinity ? undefined : id;
}

/**
 * The failed plants that no lost create explains. The store assigns each id to one create, so this is a
 * bipartite matching of plants and lost creates.
 */
function withoutLost(
  steps: ReadonlyMap<number, Step<Effect>[]>,
  failed: readonly number[],
  unseen: readonly OfPlant[],
  heldBefore: HeldBefore,
): number[] {
  const explains = (lost: OfPlant, id: number) =>
    id > heldBefore(lost.call) && check(plant, [...(steps.get(id) ?? []), lost]) === undefined;
  const plantOf = new Map<OfPlant, number>();
  const pair = (id: number, visited: Set<OfPlant>): boolean => {
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
