/**
 * Providers that change their keys, and all faults of providers, also from the start.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { makeKey } from '../support/provider.ts';
import { until } from '../support/until.ts';
import { faults, promptMs, sentMegabytes, start, testFault, unknown } from './faults.ts';

describe('a provider that rotates its keys', { concurrency: true }, () => {
  it('has no token refused while requests run', async (t) => {
    const { provider, ask } = await start(t);
    const end = new AbortController();
    const statuses: number[] = [];
    const runClient = async () => {
      while (!end.signal.aborted) {
        const { status } = await ask(await provider.sign());
        statuses.push(status);
      }
    };
    const runAttacker = async () => {
      while (!end.signal.aborted)
        assert.equal((await ask(await provider.sign({}, unknown))).status, 401);
    };
    const clients = [runClient(), runClient(), runClient(), runAttacker()];
    for (const kid of ['second', 'third']) {
      const count = statuses.length;
      const next = await makeKey(kid);
      provider.publish([next, ...provider.keys]);
      provider.keys = [next, ...provider.keys];
      await until('tokens of the new key were used', () => statuses.length > count + 20);
    }
    end.abort();
    await Promise.all(clients);
    assert.deepEqual(new Set(statuses), new Set([200]));
  });

  it('has tokens verified again under another key of the same id', async (t) => {
    const { ask, provider } = await start(t);
    const status = async (one: string) => (await ask(one)).status;
    const token = await provider.sign();
    assert.equal(await status(token), 200);
    const [key] = provider.keys;
    const other = await makeKey(key?.kid ?? '');
    provider.publish([other, await makeKey('second')]);
    await until('the keys were fetched', async () => {
      await status(await provider.sign({}, { kid: 'unknown' })); // causes a fetch
      return (await status(token)) === 401;
    });
    assert.equal(await status(await provider.sign({}, {}, other)), 200);
  });
});

/** At most some services at a time, because each has threads and connections of its own. */
const concurrency = 3;

describe('a provider', { concurrency }, () => {
  for (const fault of Object.keys(faults)) testFault(fault);

  for (const fault of ['that hangs', 'that sends 100 MB', 'that sends garbage']) {
    it(`${fault} from the start does not stop the service`, async (t) => {
      const { provider, ask, token } = await start(t);
      provider.instead = await faults[fault]?.(provider, await makeKey('evil'));
      const theirs = await provider.sign();
      assert.equal((await ask(await token('alice'))).status, 200);
      const { status, ms } = await ask(theirs);
      assert.equal(status, 503);
      assert.ok(ms < 3_000 + promptMs, `${ms} ms`);
      assert.ok(sentMegabytes < 20, `${sentMegabytes} MB were read`);
      provider.instead = undefined;
      await until('the provider is asked again', async () => (await ask(theirs)).status === 200);
    });
  }
});
