/**
 * The sizes of random tests. `x.long.ts` imports `x.test.ts`: the same tests, larger, and for a time.
 */
import type { TestContext } from 'node:test';

const isLong = process.argv[1]?.endsWith('.long.ts') ?? false;
const seconds = Number(process.env['PLANT_STORE_TEST_SECONDS'] ?? sizeOf({ usual: 0, long: 10 }));
/** Set PLANT_STORE_TEST_SEED to repeat a failure, as far as its timing allows. */
export const firstSeed = Number(process.env['PLANT_STORE_TEST_SEED'] ?? Date.now() % 2 ** 31);

export function sizeOf<Size>({ usual, long }: { usual: Size; long: Size }): Size {
  return isLong ? long : usual;
}

/**
 * Runs one round, or in the long tests rounds for PLANT_STORE_TEST_SECONDS. Each is a subtest with a seed of its own,
 * which is its name.
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
