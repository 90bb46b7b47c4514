/**
 * Long random tests run for a time, and not for a number of operations.
 */
import type { TestContext } from 'node:test';

const seconds = Number(process.env['PLANT_STORE_TEST_SECONDS'] ?? 30);
/** Set PLANT_STORE_TEST_SEED to repeat a failure, as far as its timing allows. */
export const firstSeed = Number(process.env['PLANT_STORE_TEST_SEED'] ?? Date.now() % 2 ** 31);

/**
 * Runs rounds for PLANT_STORE_TEST_SECONDS, and at least one. Each is a subtest with a seed of its own, which is its
 * name.
 */
export async function rounds(
  t: TestContext,
  round: (t: TestContext, seed: number) => Promise<void>,
): Promise<void> {
  const endMs = performance.now() + seconds * 1_000;
  let seed = firstSeed;
  do {
    const own = seed++;
    await t.test(`PLANT_STORE_TEST_SEED=${own}`, (inner) => round(inner, own));
  } while (performance.now() < endMs);
  t.diagnostic(`${seed - firstSeed} rounds`);
}
