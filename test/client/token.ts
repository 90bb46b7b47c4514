/**
 * A function in place of the token, for tokens that expire.
 */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { PlantStore, type PlantStoreOptions } from '../../src/client/client.ts';
import { cutAfter, cutBefore, respond } from '../support/gateway.ts';
import { connect } from './service.ts';

async function setUp(t: TestContext, options: Partial<PlantStoreOptions> = {}) {
  const { app, gateway, token, tokenOf } = await connect(t);
  const tokens = [token, await tokenOf('alice')] as const;
  const clientOf = (source: PlantStoreOptions['token']) =>
    new PlantStore({
      url: gateway.address,
      token: source,
      beforeRetry: async () => {},
      ...options,
    });
  /** What the requests so far were sent with. */
  const sent = () => gateway.requests.map(({ headers }) => headers.authorization?.slice(7));
  return { app, gateway, tokens, clientOf, sent };
}

const refuse = respond(401, '', {});

describe('a function as the token', () => {
  it('is called for each call, not for each request', async (t) => {
    const { gateway, tokens, clientOf, sent } = await setUp(t);
    const unused = [...tokens];
    const store = clientOf(() => unused.shift() ?? assert.fail('it is called again'));
    gateway.plan.push(cutBefore);
    await store.token();
    await store.token();
    assert.deepEqual(sent(), [tokens[0], tokens[0], tokens[1]]);
  });

  it('gets the refused token after a 401, and the call succeeds with another one', async (t) => {
    const { app, tokens, clientOf, sent } = await setUp(t, { maxRetries: 0 });
    const [old, next] = tokens;
    await new PlantStore({ url: app.address, token: old }).revokeOwnToken();
    const asked: (string | undefined)[] = [];
    const store = clientOf(async (refused) => {
      asked.push(refused);
      return refused === undefined ? old : next;
    });
    assert.equal((await store.create({ name: 'Ficus' })).id, 1);
    assert.deepEqual(await Array.fromAsync(store.list()), [{ name: 'Ficus', tag: '' }]);
    assert.deepEqual(asked, [undefined, old, undefined, old]);
    assert.deepEqual(sent(), [old, next, old, next]);
  });

  it('is asked once more in a call, even if every token is refused', async (t) => {
    const { gateway, tokens, clientOf, sent } = await setUp(t);
    const [old, next] = tokens;
    const store = clientOf((refused) => (refused === undefined ? old : next));
    for (const call of [() => store.token(), () => store.delete(1)]) {
      gateway.requests.length = 0;
      gateway.plan.push(refuse, cutBefore, refuse);
      await assert.rejects(call, { status: 401 });
      assert.deepEqual(sent(), [old, next, next]);
    }
  });

  it('has the 401 thrown if it has no other token', async (t) => {
    const { clientOf, sent } = await setUp(t);
    const store = clientOf(() => 'plant_unknown');
    await assert.rejects(store.token(), { kind: 'invalid-token' });
    assert.equal(sent().length, 1);
  });

  it('never has another token revoked than the one in use', async (t) => {
    const { gateway, app, tokens, clientOf, sent } = await setUp(t);
    const [old, next] = tokens;
    const store = clientOf((refused) => (refused === undefined ? old : next));
    gateway.plan.push(cutAfter);
    await store.revokeOwnToken(); // its response was lost, and the second request got 401
    await assert.rejects(store.revokeOwnToken(), { kind: 'invalid-token' });
    assert.deepEqual(sent(), [old, old, old]);
    assert.equal((await new PlantStore({ url: app.address, token: next }).token()).user, 'alice');
  });

  it('ends the call with its own error, and nothing is sent', async (t) => {
    const { clientOf, sent } = await setUp(t);
    const failure = new Error('signed out');
    await assert.rejects(clientOf(() => Promise.reject(failure)).create({ name: 'a' }), failure);
    for (const token of [undefined, '', 'plant_secret\nx', 7]) {
      const store = clientOf(() => token as string);
      const expected = { name: 'TypeError', message: /^(?!.*secret).*`token`/ };
      await assert.rejects(store.token(), expected);
    }
    assert.deepEqual(sent(), []);
  });

  it('is part of the time of the call, and of what a signal ends', async (t) => {
    const { clientOf, sent } = await setUp(t, { timeoutMs: 50 });
    const never = clientOf(() => new Promise(() => {}));
    const timeout = { kind: 'timeout', outcomeUnknown: false }; // nothing was sent
    await assert.rejects(never.create({ name: 'Ficus' }), timeout);
    const reason = new Error('the user left');
    const abort = new AbortController();
    const call = never.token({ signal: abort.signal });
    abort.abort(reason);
    await assert.rejects(call, reason);
    assert.deepEqual(sent(), []);
  });
});
