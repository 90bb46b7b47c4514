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

  it('shows a change of role in the next response, and refuses a revoked token', async (t) => {
    const { call, token, storage } = await startApp(t);
    const alice = await token('alice');
    const role = async () => {
      const { json } = await call('GET', '/token', { token: alice });
      return (json as { role: string }).role; // the service has sent it
    };
    assert.equal(await role(), 'member');
    await token('alice', { role: 'manager' });
    assert.equal(await role(), 'manager');
    await storage.identity.revokeToken(idOf(alice), Date.now());
    const { status, headers, text } = await call('GET', '/token', { token: alice });
    const challenge = headers.get('www-authenticate');
    assert.deepEqual([status, challenge], [401, 'Bearer error="invalid_token"']);
    assert.match(text, /The token is revoked/);
  });

  it('refuses a missing token, parameters, a body and other methods', async (t) => {
    const { call, token } = await startApp(t);
    const alice = await token('alice');
    const bare = await call('GET', '/token');
    assert.deepEqual([bare.status, bare.headers.get('www-authenticate')], [401, 'Bearer']);
    const { status, json } = await call('GET', '/token?fields=id', { token: alice });
    assert.equal(status, 400);
    assert.partialDeepStrictEqual(json, { errors: [{ parameter: 'fields' }] });
    assert.equal((await call('PUT', '/token', { token: alice })).status, 405);
    const options = await call('OPTIONS', '/token');
    assert.deepEqual(
      [options.status, options.headers.get('allow')],
      [204, 'DELETE, GET, HEAD, OPTIONS'],
    );
  });

  it('HEAD responds like GET without the body', async (t) => {
    const { call, token } = await startApp(t);
    const alice = await token('alice');
    const get = await call('GET', '/token', { token: alice });
    const head = await call('HEAD', '/token', { token: alice });
    assert.deepEqual([head.status, head.text], [200, '']);
    assert.equal(head.headers.get('content-length'), get.headers.get('content-length'));
  });
});
