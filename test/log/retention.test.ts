/**
 * The removal of changes that are too old, in the background.
 */
import assert from 'node:assert/strict';
import { createRetention } from '../../src/log/retention.ts';
import type { Storage } from '../../src/storage.ts';
import { addToken } from '../support/app.ts';
import { serve } from '../support/command.ts';
import { itOnce, testDatabase } from '../support/storages.ts';
import { until } from '../support/until.ts';

const dayMs = 24 * 60 * 60 * 1_000;

const changesIn = async (storage: Storage) =>
  (await storage.log.list({ store: 'main', limit: 100 })).changes.length;

itOnce('a service removes what is too old while nobody writes', async (t) => {
  const database = await testDatabase(t);
  await using storage = await database.open();
  await addToken(storage, 'alice');
  await database.run(`UPDATE changes SET at = at - ${40 * dayMs}`);
  assert.equal(await changesIn(storage), 2);
  const service = await serve(t, ['--database', database.url, '--workers', '2']);
  await until('it is removed', async () => (await changesIn(storage)) === 0);
  assert.equal(await service.stop(), 0);
});

/** The part of a service that removes changes. */
function serviceOf(storage: Storage, keepMs = 30 * dayMs) {
  const ahead: number[] = [];
  const onClockAhead = (ms: number) => void ahead.push(ms);
  const onError = (error: unknown) => assert.fail(String(error));
  const options = { keepMs, processes: 1, onClockAhead, onError };
  const retention = createRetention(storage.log, options);
  return { ahead, round: () => retention.round(AbortSignal.timeout(60_000)) };
}

itOnce(
  'a clock that jumps removes nothing for a day, and nothing while another is right',
  async (t) => {
    const database = await testDatabase(t);
    await using storage = await database.open();
    await addToken(storage, 'alice');
    const startMs = Date.now();
    let monotonicMs = 0;
    t.mock.timers.enable({ apis: ['Date'], now: startMs });
    t.mock.method(performance, 'now', () => monotonicMs);
    const [wrong, right] = [serviceOf(storage), serviceOf(storage)];
    const go = (ms: number) => (monotonicMs += ms);
    /** A round of a service whose clock is ahead by this. */
    const roundAt = async ({ round }: typeof right, jumpMs: number) => {
      t.mock.timers.setTime(startMs + monotonicMs + jumpMs);
      await round();
      return changesIn(storage);
    };

    assert.equal(await roundAt(right, 0), 2);
    // One process has a wrong clock for three days, and another a right one.
    for (let hour = 0; hour < 72; hour++) {
      go(dayMs / 24);
      assert.equal(await roundAt(wrong, 40 * dayMs), 2);
      assert.equal(await roundAt(right, 0), 2);
    }
    assert.deepEqual(
      wrong.ahead.map((ms) => Math.round(ms / dayMs)),
      [40],
    );
    assert.deepEqual(right.ahead, []);
    // After all have stopped for 40 days, the clock is right, though nobody knows for a day. Restarts do not begin it again.
    go(40 * dayMs);
    const late = serviceOf(storage);
    for (const service of [late, late, serviceOf(storage)]) {
      assert.equal(await roundAt(service, 0), 2);
      assert.equal(service.ahead.length, 1);
      go(dayMs / 3);
    }
    go(1);
    const last = serviceOf(storage);
    assert.equal(await roundAt(last, 0), 0);
    // It jumps again, and then further. Without a log, no clock matters.
    await addToken(storage, 'bob');
    for (let jump = 0; jump < 3; jump++) {
      go(40 * dayMs);
      assert.equal(await roundAt(last, 0), 2);
      assert.equal(last.ahead.length, 1);
    }
    assert.equal(await roundAt(serviceOf(storage, 0), 0), 0);
  },
);
