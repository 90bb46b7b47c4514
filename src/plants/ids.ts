/**
 * Largest id of a plant: 2^53 - 1, the largest integer that every JSON parser reads exactly (RFC 8259,
 * section 6). It is not in plant.ts, because loading the schema library doubles the start time of the
 * writer thread.
 */
export const maxId = Number.MAX_SAFE_INTEGER;

/** For a store that has had the largest id: one that is taken is drawn again. */
export function randomId(): number {
  const [high = 0, low = 0] = crypto.getRandomValues(new Uint32Array(2));
  return (high >>> 11) * 2 ** 32 + low || maxId;
}
