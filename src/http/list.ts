/**
 * Lists as answers: a page, or everything in a stream that holds one page of plants in memory,
 * however long the list is and however slow the client.
 */
import { Readable } from 'node:stream';
import type { Caller } from '../access.ts';
import type { Plant, PlantField } from '../plant.ts';
import type { PlantQuery, Storage } from '../storage.ts';

/** Plants that are read at once: about 50 KB of JSON, and well under a millisecond of the loop. */
const batchPlants = 1_000;

export interface ListQuery {
  limit?: number;
  after?: number;
  tag?: string;
  fields?: PlantField[];
}

export interface List {
  body: string | Readable;
  /** The cursor of the next page; undefined where no plant follows, or no limit was given. */
  next: number | undefined;
}

/** `headOnly`: no more is read than it takes to answer without a body. */
export async function listPlants(
  storage: Storage,
  caller: Caller,
  query: ListQuery,
  headOnly: boolean,
): Promise<List> {
  const { limit, after = 0, tag, fields } = query;
  if (limit !== undefined && limit < batchPlants) {
    const plants = await storage.listPlants(caller, { after, limit: limit + 1, tag });
    const page = plants.slice(0, limit);
    return {
      body: toJson(page, fields),
      next: plants.length > limit ? page.at(-1)?.id : undefined,
    };
  }

  const end =
    limit === undefined ? undefined : await endOfPage(storage, caller, { after, limit, tag });
  const first = await storage.listPlants(caller, { after, limit: batchPlants, tag });
  const next = end?.moreFollow ? end.lastId : undefined;
  if (headOnly) return { body: '', next };
  if (first.length < batchPlants) return { body: toJson(first, fields), next };
  const rest = batches(
    storage,
    caller,
    { after, limit: limit ?? Infinity, tag },
    first,
    end?.lastId,
  );
  return { body: Readable.from(jsonOf(rest, fields), { objectMode: false }), next };
}

/** One plant, or an array of them, as JSON with the fields asked for in that order. */
export function toJson(
  plants: Plant | Plant[],
  fields: readonly PlantField[] = defaultFields,
): string {
  const picked = Array.isArray(plants)
    ? plants.map((plant) => pick(plant, fields))
    : pick(plants, fields);
  return JSON.stringify(picked);
}

const defaultFields: readonly PlantField[] = ['name', 'tag'];

function pick(plant: Plant, fields: readonly PlantField[]): Partial<Plant> {
  return Object.fromEntries(fields.map((field) => [field, plant[field]]));
}

/**
 * Where a page too long to hold ends. The answer's Link must be known before its first plant is
 * sent, so the ids are walked once before.
 */
async function endOfPage(storage: Storage, caller: Caller, { after, limit, tag }: PlantQuery) {
  let lastId = after;
  for (let left = limit; left > 0;) {
    const count = Math.min(left, batchPlants);
    const plants = await storage.listPlants(caller, { after: lastId, limit: count, tag });
    lastId = plants.at(-1)?.id ?? lastId;
    left -= plants.length;
    if (plants.length < count) return { lastId, moreFollow: false };
    await turnOfOthers();
  }
  const following = await storage.listPlants(caller, { after: lastId, limit: 1, tag });
  return { lastId, moreFollow: following.length > 0 };
}

/** The list in batches: `first`, which is read already, and what comes after it up to `lastId`. */
async function* batches(
  storage: Storage,
  caller: Caller,
  { limit, tag }: PlantQuery,
  first: Plant[],
  lastId = Infinity,
): AsyncGenerator<Plant[]> {
  let left = limit;
  for (let batch = first; ;) {
    const after = batch.at(-1)?.id ?? Infinity;
    const wanted = after <= lastId ? batch : batch.filter(({ id }) => id <= lastId);
    left -= wanted.length;
    // Plants with ids of their own came in among those that were counted. To leave out any could
    // leave out one that the next page skips, so the transfer breaks off, for the client to repeat.
    if (left < 0) throw new Error('plants were created inside a page while it was being sent');
    yield wanted;
    if (batch.length < batchPlants || after >= lastId) return;
    await turnOfOthers();
    batch = await storage.listPlants(caller, { after, limit: batchPlants, tag });
  }
}

async function* jsonOf(
  batchesOfPlants: AsyncIterable<Plant[]>,
  fields: readonly PlantField[] | undefined,
): AsyncGenerator<string> {
  let opening = '[';
  for await (const batch of batchesOfPlants) {
    if (batch.length === 0) continue;
    yield opening + toJson(batch, fields).slice(1, -1);
    opening = ',';
  }
  yield opening === '[' ? '[]' : ']';
}

/** A storage may answer without ever leaving the event loop's turn; other requests want theirs. */
function turnOfOthers(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
