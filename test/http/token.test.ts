import assert from 'node:assert/strict';
import { describe } from 'node:test';
import type { Scope } from '../../src/access/access.ts';
import { startApp } from '../support/app.ts';
import { itOnce as it } from '../support/storages.ts';
import { idOf } from '../support/tokens.ts';

describe('GET /token', () => {
  it('shows who is calling, with which rights, and until when', async (t) => {
    const { call, token } = await startApp(t);
    const expiresAt = '2100-01-31T12:00:00.000Z';
    const alice = await token('alice', {
      store: 'north',
      role: 'manager',
      scopes: ['plants:read'],
      expiresAtMs: Date.parse(expiresAt),
    });
    const { status, headers, json } = await call('GET', '/token', { token: alice });
    assert.equal(status, 200);
    assert.equal(headers.get('content-type'), 'application/json');
    assert.equal(headers.get('cache-control'), 'no-store');
    assert.deepEqual(json, {
      id: idOf(alice),
      user: 'alice',
      store: 'north',
      role: 'manager',
      scopes: ['plants:read'],
      expiresAt,
    });
  });

  it('needs no scope, and has no expiresAt if the token never expires', async (t) => {
    const { call, token } = await startApp(t);
    for (const scope of ['plants:read', 'plants:write'] satisfies Scope[]) {
      const bob = await token('bob', { scopes: [scope] });
      const { json } = await call('GET', '/token', { token: bob });
      const rest = { user: 'bob', store: 'main', role: 'member', scopes: [scope] };
      assert.deepEqual(json, { id: idOf(bob), ...rest });
    }
  });

  it('refuses a missing token and parameters', async (t) => {
    const { call, token } = await startApp(t);
    const alice = await token('alice');
    const bare = await call('GET', '/token');
    assert.deepEqual([bare.status, bare.headers.get('www-authenticate')], [401, 'Bearer']);
    const { status, json } = await call('GET', '/token?fields=id', { token: alice });
    assert.equal(status, 400);
    assert.partialDeepStrictEqual(json, { errors: [{ parameter: 'fields' }] });
  });
});
