/**
 * Largest id of a plant: 2^53 - 1, the largest integer that every JSON parser reads exactly (RFC 8259,
 * section 6). It is not in plant.ts, because loading the schema library doubles the start time of the
 * writer thread.
 */
export const maxId = Number.MAX_SAFE_INTEGER;

/** A new plant without an id gets the number after every id that the store has held, or else a random free one. */
export function assignId(lastId: number, randomFreeId: () => number): number {
  return canCountOn(lastId, 1) ? lastId + 1 : randomFreeId();
}

/** Whether so many more plants get numbers, even if the store has held this id. */
export function canCountOn(lastId: number, plants: number): boolean {
  return lastId + plants <= maxId;
}

/** One that is taken is drawn again. */
export function randomId(): number {
  const [high = 0, low = 0] = crypto.getRandomValues(new Uint32Array(2));
  return (high >>> 11) * 2 ** 32 + low || maxId;
}
