/**
 * Largest id of a plant: 2^53 - 1, the largest integer that every JSON parser reads exactly (RFC 8259,
 * section 6). It is not in plant.ts, because loading the schema library doubles the start time of the
 * writer thread.
 */
export const maxId = Number.MAX_SAFE_INTEGER;
