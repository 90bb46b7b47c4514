/**
 * Largest id of a plant: 2^53 - 1, the largest integer that JSON carries exactly everywhere (RFC 8259,
 * section 6). It stands apart from plant.ts for the thread that writes, which uses no schema: to load
 * their library would double the time that the thread takes to start.
 */
export const idMax = Number.MAX_SAFE_INTEGER;
