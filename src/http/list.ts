/**
 * Lists as answers: a page, or everything in a stream. Memory is bounded however long the list is, how
 * large its plants are and how slow the client is: a stream reads a batch when its client has taken the
 * one before, and a batch is bounded in bytes.
 */
import { Readable } from 'node:stream';
import type { Caller } from '../access.ts';
import { defaultFields, plantFields, plantJson, type Plant, type PlantField } from '../plant.ts';
import type { PlantPage, PlantQuery, PlantStorage } from '../plant-storage.ts';
import { runInSlice } from '../time-slices.ts';
import type { Reservation } from './response-budget.ts';

/** A page of at most so many plants is read at once, and not in a slice of its own. */
const shortPagePlants = 100;

/**
 * Characters of a piece of a stream at least, except the last. Node keeps up to 64 KiB for a socket and
 * can lose the event that they are sent ("drain") if a response is written in smaller pieces.
 */
const pieceCharsMin = 64 * 1024;
/** Characters of a batch, give or take, and the fewest and most plants that it is read as. */
const batchChars = 72 * 1024;
const batchPlantsMin = 50; // of the largest size, they have about as many bytes
const batchPlantsMax = 1_000;
const firstBatchPlants = 128;

/** Ids of a long page that are kept while it is sent: 8 bytes each. */
const pageIdsMax = 100_000;

/** What is reserved for a stream: two batches and the copies that Node makes, and the ids of its page. */
const streamBytes = 256 * 1024;
const pageIdBytes = 8;
/** Longer answers are reserved for as well. */
const shortAnswerChars = 16 * 1024;

export interface ListQuery {
  limit?: number;
  after?: number;
  tag?: string;
  fields?: readonly PlantField[];
}

export interface List {
  body: string | Readable;
  /** The cursor of the next page; undefined if no plant follows, or no limit was given. */
  next: number | undefined;
}

export interface ListContext {
  storage: PlantStorage;
  caller: Caller;
  budget: Reservation;
  /** True once nobody waits for the list any more; then no more of it is read. */
  isGone: () => boolean;
}

type Range = Pick<PlantQuery, 'after' | 'upTo' | 'limit'>;
type Read = (range: Range, fields?: readonly PlantField[]) => Promise<PlantPage>;

export async function listPlants(
  { storage, caller, budget, isGone }: ListContext,
  { limit, after = 0, tag, fields = defaultFields }: ListQuery,
): Promise<List> {
  const read: Read = (range, wanted = fields) =>
    storage.listPlants(caller, { ...range, tag, fields: wanted, isAborted: isGone });
  const reserve = (json: string) => budget.reserve(Buffer.byteLength(json));
  if (limit !== undefined && limit <= shortPagePlants) {
    const { json, next } = await read({ after, limit });
    if (json.length > shortAnswerChars) reserve(json);
    return { body: `[${json}]`, next };
  }

  const batches = new Batches(read, fields, after, limit ?? Infinity);
  const idsBytes = Math.min(limit ?? 0, pageIdsMax) * pageIdBytes;
  // Lists wait for their turn. What a stream needs is checked before its first batch is read: that is most
  // of the work, and would be in vain.
  let json = await batches.read(() => budget.check(2 * streamBytes + idsBytes));
  if (!batches.isOver || json.length > shortAnswerChars) reserve(json);
  while (!batches.isOver && json.length < pieceCharsMin && !isGone()) {
    const more = withComma(await batches.read());
    reserve(more);
    json += more;
  }
  if (batches.isOver) {
    return { body: `[${json}]`, next: limit === undefined ? undefined : batches.after };
  }
  budget.reserve(streamBytes + idsBytes);
  const next = limit === undefined ? undefined : await batches.countPage(isGone);
  return { body: streamOf(json, batches), next };
}

/** Reads a list from one batch to the next. */
class Batches {
  readonly #read: Read;
  readonly #fields: readonly PlantField[];
  /** After which id the next batch begins; undefined once the list has ended. */
  after: number | undefined;
  /** Plants that can still be read. */
  #left: number;
  #plants = firstBatchPlants;
  /** The plants of a page that was counted. */
  #ids: readonly number[] | undefined;

  constructor(read: Read, fields: readonly PlantField[], after: number, limit: number) {
    this.#read = read;
    this.#fields = fields;
    this.after = after;
    this.#left = limit;
  }

  get isOver(): boolean {
    return this.after === undefined || this.#left === 0;
  }

  /** The next plants as JSON; empty if they have been deleted. */
  async read(check = () => {}): Promise<string> {
    for (;;) {
      const limit = Math.min(this.#left, this.#plants);
      const ids = this.#ids?.slice(0, limit);
      const range = { after: this.after ?? 0, upTo: ids?.at(-1), limit };
      const { json, next } = await runInSlice(() => {
        check();
        return this.#read(range);
      });
      this.#plants = plantsOf(batchChars, json.length / limit);
      if (json.length > 2 * batchChars && limit > batchPlantsMin) continue; // fewer at a time
      this.#left -= limit;
      if (ids === undefined) {
        this.after = next;
        return json;
      }
      this.after = range.upTo;
      this.#ids = this.#ids?.slice(limit);
      return next === undefined ? json : this.#readThose(new Set(ids), range);
    }
  }

  /**
   * Finds where a page ends, because its Link must be known before its first plant is sent. Returns the
   * cursor of the next page; undefined if no plant follows.
   *
   * Others can create plants inside the page while it is sent. It has those that were counted: more would
   * be above the limit. If others follow it, a page ends after the ids that are kept.
   */
  async countPage(isGone: () => boolean): Promise<number | undefined> {
    const ids: number[] = [];
    let next = this.after;
    for (let left = this.#left; left > 0 && next !== undefined && !isGone();) {
      const range: Range = { after: next, limit: Math.min(left, batchPlantsMax) };
      const page: PlantPage = await runInSlice(() => this.#read(range, ['id']));
      const found = JSON.parse(`[${page.json}]`) as Pick<Plant, 'id'>[]; // as it was asked for
      if (ids.length < pageIdsMax) ids.push(...found.map(({ id }) => id));
      left -= range.limit;
      ({ next } = page);
    }
    const isLong = ids.length >= pageIdsMax;
    if (isLong && next === undefined) return undefined; // to the end of the list, whoever is in it
    this.#ids = ids;
    this.#left = ids.length;
    return isLong ? ids.at(-1) : next;
  }

  /** What is left of these plants, where there are others between them by now. */
  async #readThose(ids: ReadonlySet<number>, { after, upTo }: Range): Promise<string> {
    const those: Plant[] = [];
    for (let next: number | undefined = after; next !== undefined;) {
      const range: Range = { after: next, upTo, limit: batchPlantsMin };
      const page: PlantPage = await runInSlice(() => this.#read(range, plantFields));
      const found = JSON.parse(`[${page.json}]`) as Plant[]; // all fields were asked for
      those.push(...found.filter(({ id }) => ids.has(id)));
      ({ next } = page);
    }
    return those.map((plant) => plantJson(plant, this.#fields)).join();
  }
}

function plantsOf(chars: number, charsEach: number): number {
  return Math.min(batchPlantsMax, Math.max(batchPlantsMin, Math.floor(chars / charsEach)));
}

/** As text: bytes would be a tenth faster, and take more memory until they are collected. */
function streamOf(first: string, batches: Batches): Readable {
  let json = `[${first}`;
  return new Readable({
    objectMode: true,
    highWaterMark: 0, // nothing is read before the client has taken what was
    async read() {
      try {
        while (json.length < pieceCharsMin && !batches.isOver) {
          json += withComma(await batches.read());
        }
        this.push(batches.isOver ? `${json}]` : json);
        json = '';
        if (batches.isOver) this.push(null);
      } catch (error) {
        this.destroy(
          error instanceof Error ? error : new Error('the list broke off', { cause: error }),
        );
      }
    },
  });
}

/** The first plants of a list are there, so that a comma goes before all others. */
function withComma(json: string): string {
  return json === '' ? '' : `,${json}`;
}
