import assert from 'node:assert/strict';
import { after, before, type TestContext } from 'node:test';

type Scope = Pick<TestContext, 'after'>;

/**
 * What the tests of a file or a suite share, such as a service that they do not stop. It is created before the first
 * test, and what it registers to run `after` it runs after the last one.
 */
export function shared<T extends object>(create: (t: Scope) => Promise<T>): () => T {
  const cleanUps: (() => unknown)[] = [];
  let value: T | undefined;
  before(async () => {
    // A hook that is added here would run at the end of this one.
    value = await create({ after: (cleanUp) => cleanUps.push(cleanUp as () => unknown) }); // none uses its arguments
  });
  after(async () => {
    for (const cleanUp of cleanUps.toReversed()) await cleanUp();
  });
  return () => {
    assert.ok(value);
    return value;
  };
}
