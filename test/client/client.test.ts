/**
 * The client on a real service, and its modules: one service for all these tests.
 */
/* oxlint-disable import/no-unassigned-import -- during an `await import`, Node can end the hooks that all tests share */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import {
  PlantStore,
  type DeletedPlant,
  type Plant,
  type PlantField,
  type ResponseInfo,
  type Share,
  type Token,
} from '../../src/client/client.ts';
import { scopes as sharing } from '../../src/access/access.ts';
import { clientTypesFile, clientTypesText } from '../../tools/client-types.ts';
import { startApp } from '../support/app.ts';
import { cutAfter, startGateway } from '../support/gateway.ts';
import { connect } from './service.ts';
import './retries.ts';
import './abort.ts';
import './errors.ts';
import './token.ts';
import './paths.ts';
import './import.ts';
import './read-rows.ts';
import './csv.ts';
import './follow.ts';
import './webhook.ts';

it('src/client/types.ts matches openapi.json; run "npm run openapi" after a change', async () => {
  assert.equal(readFileSync(clientTypesFile, 'utf8'), await clientTypesText());
});

describe('PlantStore', () => {
  it('creates, gets and deletes a plant', async (t) => {
    const { store } = await connect(t);
    const monstera = { name: '🌵 "Monstera"', tag: 'a,b&c=d e' };
    assert.deepEqual(await store.create(monstera), {
      id: 1,
      plant: monstera,
      isReplay: false,
    });
    assert.deepEqual(await store.create({ name: 'Ficus', id: 40 }), {
      id: 40,
      plant: { name: 'Ficus', tag: '' },
      isReplay: false,
    });
    assert.deepEqual(await store.get(1), monstera);
    assert.deepEqual(await Array.fromAsync(store.list({ tag: monstera.tag })), [monstera]);
    assert.equal(await store.delete(1), undefined);
    await assert.rejects(store.get(1), { kind: 'plant-not-found', status: 404 });
    await assert.rejects(store.delete(1), { kind: 'plant-not-found', outcomeUnknown: false });
  });

  it('returns the selected fields, in their order and with their types', async (t) => {
    const { store } = await connect(t);
    const created = await store.create({ name: 'Ficus', tag: 'indoor' }, { fields: ['tag', 'id'] });
    assert.equal(JSON.stringify(created.plant), '{"tag":"indoor","id":1}');
    const id: number = created.plant.id;
    // @ts-expect-error: the name is not selected
    assert.equal(created.plant.name, undefined);

    const { name } = await store.get(id, { fields: ['name'] });
    assert.equal(name satisfies string, 'Ficus');
    // @ts-expect-error: by default there is no id
    assert.equal((await store.get(id)).id, undefined);
    // @ts-expect-error: there is no such field
    await assert.rejects(store.get(id, { fields: ['nmae'] }), { kind: 'invalid-request' });
    await assert.rejects(store.get(id, { fields: [] }), { kind: 'invalid-request' });

    for await (const plant of store.list({ fields: ['id', 'name', 'tag'] })) {
      assert.deepEqual(plant satisfies Pick<Plant, 'id' | 'name' | 'tag'>, {
        id: 1,
        name: 'Ficus',
        tag: 'indoor',
      });
    }
    const chosen: PlantField[] = ['id'];
    for await (const plant of store.list({ fields: chosen })) {
      // @ts-expect-error: the compiler does not know what is selected
      assert.equal(plant.id satisfies number, 1);
    }
  });

  it('updates, deletes and restores a plant, on condition that it has not changed', async (t) => {
    const { store } = await connect(t);
    const { id } = await store.create({ name: 'Ficus' });
    const { plant, etag } = await store.getWithETag(id, { fields: ['name', 'owner', 'access'] });
    assert.deepEqual(plant, { name: 'Ficus', owner: 'alice', access: 'write' });
    const changed = await store.update(id, { tag: 'indoor' }, { ifMatch: etag });
    assert.deepEqual(changed, { name: 'Ficus', tag: 'indoor' });
    const failed = { kind: 'precondition-failed', outcomeUnknown: false };
    await assert.rejects(store.update(id, { name: 'Fern' }, { ifMatch: etag }), failed);
    await assert.rejects(store.delete(id, { ifMatch: etag }), failed);
    await store.delete(id, { ifMatch: (await store.getWithETag(id)).etag });
    assert.deepEqual(await store.restore(id, { fields: ['id', 'tag'] }), { id, tag: 'indoor' });
    assert.deepEqual(
      (await store.history(id)).map(({ event }) => event),
      ['restored', 'deleted', 'updated', 'created'],
    );
    const [latest] = await store.history(id, { limit: 1 });
    const { at, ...others } = latest ?? {};
    assert.deepEqual(others, { event: 'restored', user: 'alice' });
    assert.ok(Date.now() - Date.parse(at ?? '') < 60_000);
  });

  it('lists deleted plants page by page', async (t) => {
    const { store } = await connect(t);
    for (const name of ['a', 'b', 'c']) await store.delete((await store.create({ name })).id);
    await store.restore(2);
    for (const pageSize of [1, 2, undefined]) {
      const deleted: DeletedPlant[] = await Array.fromAsync(store.listDeleted({ pageSize }));
      const both = { tag: '', owner: 'alice', deletedBy: 'alice' };
      assert.partialDeepStrictEqual(deleted, [
        { id: 3, name: 'c', ...both },
        { id: 1, name: 'a', ...both },
      ]);
      assert.equal(deleted.length, 2);
    }
  });

  it('creates, lists and revokes tokens of the user, and shows what one grants', async (t) => {
    const { app, store } = await connect(t);
    const twin = await store.createToken();
    const { token, ...phone } = await store.createToken({
      scopes: ['plants:read'],
      label: 'phone',
    });
    const listed = await store.listTokens();
    assert.equal(listed.length, 3);
    assert.deepEqual(
      listed.find(({ id }) => id === phone.id),
      phone,
    );
    assert.equal(listed.find(({ current }) => current)?.id, (await store.token()).id);

    const reader = new PlantStore({ url: app.address, token });
    const granted: Token = await reader.token();
    assert.deepEqual([granted.id, granted.user, granted.role], [phone.id, 'alice', 'member']);
    assert.deepEqual([granted.store, granted.scopes], [(await store.token()).store, phone.scopes]);
    await assert.rejects(reader.create({ name: 'Ficus' }), { kind: 'insufficient-scope' });
    assert.equal(await store.revokeToken(phone.id), undefined);
    await store.revokeToken(phone.id);
    await assert.rejects(reader.token(), { kind: 'invalid-token' });
    const scopes = ['shares:write'] as const;
    await assert.rejects(store.createToken({ scopes: [...scopes] }), {
      kind: 'insufficient-scope',
    });

    assert.equal(await store.revokeOwnToken(), undefined);
    await assert.rejects(store.revokeOwnToken(), { kind: 'invalid-token', outcomeUnknown: false });
    const states = await new PlantStore({ url: app.address, token: twin.token }).listTokens();
    assert.deepEqual(states.map(({ state }) => state).toSorted(), ['active', 'revoked', 'revoked']);
  });

  it('shares with a user of any name, changes what they can do, and ends it', async (t) => {
    const { store: alice, clientOf } = await connect(t, { scopes: sharing });
    for (const user of ['bob', 'a/b?c#d', ' ä + 🌵 %2F ']) {
      const other = await clientOf(user, { scopes: sharing });
      await alice.share(user, 'read');
      assert.deepEqual(await alice.listShares(), {
        given: [{ user, access: 'read' }],
        received: [],
      });
      await alice.share(user, 'write');
      const received: Share[] = [{ user: 'alice', access: 'write' }];
      assert.deepEqual(await other.listShares(), { given: [], received });
      await other.unshare('alice');
      assert.deepEqual(await alice.listShares(), { given: [], received: [] });
    }
  });

  it('shares with everyone in the store, changes what they can do, and ends it', async (t) => {
    const { store: alice, clientOf } = await connect(t, { scopes: sharing });
    const bob = await clientOf('bob');
    assert.equal(await alice.teamShare(), undefined);
    for (const access of ['read', 'write'] as const) {
      await alice.shareWithTeam(access);
      assert.equal(await alice.teamShare(), access);
      const { received } = await bob.listShares();
      assert.deepEqual(received, [{ user: 'alice', access, team: true }]);
    }
    await alice.unshareWithTeam();
    assert.equal(await alice.teamShare(), undefined);
    await assert.rejects(alice.unshareWithTeam(), { kind: 'share-not-found' });
  });

  it('manages the users of a store, and invites others', async (t) => {
    const { app, gateway, plan, store: alice, clientOf, tokenOf } = await connect(t);
    const token = await tokenOf('ann', { role: 'manager', scopes: sharing });
    const ann = new PlantStore({ url: gateway.address, token, beforeRetry: async () => {} });
    await alice.create({ name: 'Fern' });
    plan.push(cutAfter); // a repeated request creates the same invitation
    const once = { idempotencyKey: 'carol' };
    const invitation = await ann.createTokenFor('c/a rol', { invitation: { uses: 2 } }, once);
    const guest = new PlantStore({ url: app.address, token: invitation.token });
    const joined = await guest.createToken({}, once);
    assert.equal((await guest.createToken({}, once)).token, joined.token);
    assert.deepEqual((await guest.token()).invitation, { uses: 1 });
    const carol = new PlantStore({ url: app.address, token: joined.token });
    const users = await Array.fromAsync(ann.listUsers({ pageSize: 1 }));
    assert.partialDeepStrictEqual(users, [
      { user: 'alice', role: 'member', plants: 1 },
      { user: 'ann', role: 'manager', plants: 0 },
      { user: 'c/a rol', role: 'member', plants: 0 },
    ]);
    const { owner, read } = await ann.explainAccess('c/a rol', 1);
    assert.deepEqual([owner, read], ['alice', { allowed: false, rule: 'no-access' }]);

    await assert.rejects(ann.setRole('ann', 'member'), { kind: 'last-manager' });
    await ann.setRole('c/a rol', 'manager');
    assert.equal((await carol.token()).role, 'manager');
    await assert.rejects(ann.removeUser('alice'), { kind: 'user-owns-plants' });
    plan.push(cutAfter);
    await ann.removeUser('alice', { plantsTo: 'c/a rol' });
    await assert.rejects(alice.token(), { kind: 'invalid-token' });
    assert.deepEqual(await carol.get(1, { fields: ['owner'] }), { owner: 'c/a rol' });
    await assert.rejects((await clientOf('dave')).listUsers().next(), {
      kind: 'insufficient-scope',
    });
  });

  it('lists every plant once, over any number of pages', async (t) => {
    const app = await startApp(t);
    const gateway = await startGateway(t, app.address);
    const store = new PlantStore({ url: gateway.address, token: await app.token('alice') });
    assert.deepEqual(await Array.fromAsync(store.list()), []);
    const plants = Array.from({ length: 2_500 }, (_, index) => ({
      id: index + 1,
      name: `Plant ${index}`,
      tag: index % 2 === 0 ? 'even' : 'odd',
    }));
    await app.database.fill(plants);

    gateway.requests.length = 0;
    const all = await Array.fromAsync(store.list({ fields: ['id', 'name', 'tag'] }));
    assert.deepEqual(all, plants);
    assert.equal(gateway.requests.length, 3); // 1,000 plants in each, by default

    const found = store.list({ tag: 'odd', q: 'PLÁNT 777', pageSize: 1, fields: ['id'] });
    assert.deepEqual(await Array.fromAsync(found), [{ id: 778 }]);
    const sorted = store.list({ sort: '-name', q: 'plant 77', pageSize: 7, fields: ['id'] });
    assert.deepEqual(
      (await Array.fromAsync(sorted)).map(({ id }) => id),
      [780, 779, 778, 777, 776, 775, 774, 773, 772, 771, 78],
    );
    assert.deepEqual([await store.count(), await store.count({ tag: 'odd' })], [2_500, 1_250]);
    assert.equal(await store.count({ q: 'PLÁNT 77' }), 11);
    const odd = store.list({ tag: 'odd', after: 2_400, pageSize: 7, fields: ['id'] });
    const ids = (await Array.fromAsync(odd)).map(({ id }) => id);
    assert.deepEqual(
      ids,
      plants.filter(({ id, tag }) => tag === 'odd' && id > 2_400).map(({ id }) => id),
    );

    const lengths = await Array.fromAsync(store.pages({ pageSize: 900 }), (page) => page.length);
    assert.deepEqual(lengths, [900, 900, 700]);
  });

  it('lists the first plants as an array, with no more requests than needed', async (t) => {
    const { store, lines } = await connect(t);
    for (const name of ['a', 'b', 'c']) await store.create({ name, tag: name === 'b' ? 'x' : '' });
    const names = async (max: number, tag?: string) =>
      (await store.listUpTo(max, { tag, fields: ['name'] })).map(({ name }) => name);
    assert.deepEqual(await names(2), ['a', 'b']);
    assert.deepEqual([await names(1_001), await names(9, 'x')], [['a', 'b', 'c'], ['b']]);
    assert.deepEqual(lines().slice(3), [
      'GET /plants?limit=2&fields=name',
      'GET /plants?limit=1000&fields=name',
      'GET /plants?limit=9&tag=x&fields=name',
    ]);
    for (const max of [0, 1.5, NaN]) await assert.rejects(names(max), { name: 'RangeError' });
  });

  it('shows the responses of a call, with the receipt of a change', async (t) => {
    const { store, plan } = await connect(t, { beforeRetry: async () => {} });
    const responses: ResponseInfo[] = [];
    const options = { onResponse: (response: ResponseInfo) => void responses.push(response) };
    for (const call of [
      () => store.create({ name: 'a' }, options),
      () => store.update(1, { name: 'b' }, options),
      () => store.delete(1, options),
      () => store.restore(1, options),
    ]) {
      await call();
    }
    const [first = NaN, ...others] = responses.map(({ position = NaN }) => position - 1);
    assert.deepEqual(others, [first + 1, first + 2, first + 3]);
    for (const { headers, requestId } of responses) {
      assert.equal(headers.get('x-request-id'), requestId);
      assert.match(requestId ?? '', /^[\da-f-]{36}$/);
    }
    responses.length = 0;
    plan.push(cutAfter);
    await store.create({ name: 'c', id: 40 }, options);
    const listed = await Array.fromAsync(store.list({ pageSize: 1, ...options }));
    assert.equal(listed.length, 2);
    const positions = responses.map(({ position }) => position);
    assert.deepEqual(positions, [undefined, undefined, undefined]); // a lost receipt, and two pages
  });

  it('requests a page only when the loop needs it, and none for a `limit`', async (t) => {
    const { store, requests } = await connect(t);
    for (const name of ['a', 'b', 'c']) await store.create({ name });
    requests.length = 0;
    for await (const { name } of store.list({ pageSize: 1 })) if (name === 'b') break;
    assert.equal(requests.length, 2);
    // @ts-expect-error: a list has no limit
    const list = store.list({ limit: 1 });
    await assert.rejects(list.next(), { name: 'TypeError', message: /`pageSize`/ });
    assert.equal(requests.length, 2);
  });

  it('works at an address with a path prefix, with or without a slash at its end', async (t) => {
    // The public address is another one, and Link and Location name it.
    const app = await startApp(t, { baseUrl: 'https://plants.example/other' });
    const gateway = await startGateway(t, app.address, { prefix: '/green/house' });
    const token = await app.token('alice');
    const store = new PlantStore({ url: gateway.address, token });
    for (const name of ['a', 'b', 'c']) await store.create({ name });
    assert.equal((await store.create({ name: 'd' })).id, 4);
    const listed = await Array.fromAsync(store.list({ pageSize: 2, fields: ['name'] }));
    assert.deepEqual(
      listed.map(({ name }) => name),
      ['a', 'b', 'c', 'd'],
    );
    await store.delete(1);
    const same = new PlantStore({ url: `${gateway.address}/`, token });
    assert.equal((await same.get(2)).name, 'b');
    assert.equal((await same.token()).user, 'alice');
  });

  it('refuses options that are not valid, and does not repeat secrets', () => {
    const url = 'http://127.0.0.1:8080';
    const token = 'plant_secret';
    const secret = (error: Error) => !error.message.includes('secret');
    for (const bad of ['', 'plant_secret\nx', 'plant_secrét', 'plant secret']) {
      assert.throws(() => new PlantStore({ url, token: bad }), secret);
    }
    // @ts-expect-error: a variable of the environment can be missing
    assert.throws(() => new PlantStore({ url, token: process.env['NONE'] }), TypeError);
    for (const bad of ['', '/plants', 'localhost:8080', 'ftp://plants.example']) {
      assert.throws(() => new PlantStore({ url: bad, token }), TypeError);
    }
    for (const [bad, message] of [
      ['http://alice@127.0.0.1:8080', /user name or a password/],
      ['http://:secret@127.0.0.1:8080', /user name or a password/],
      ['http://127.0.0.1:8080/?limit=1', /query or a fragment/],
      ['http://127.0.0.1:8080/#token=plant_secret', /query or a fragment/],
    ] as const) {
      const isClear = (error: Error) =>
        error instanceof TypeError && message.test(error.message) && secret(error);
      assert.throws(() => new PlantStore({ url: bad, token }), isClear);
      assert.throws(() => new PlantStore({ url: new URL(bad), token }), isClear);
    }
    for (const timeoutMs of [0, -1, 0.5, NaN, Infinity, 2 ** 31]) {
      assert.throws(() => new PlantStore({ url, token, timeoutMs }), RangeError);
    }
    for (const maxRetries of [-1, 0.5, NaN]) {
      assert.throws(() => new PlantStore({ url, token, maxRetries }), RangeError);
    }
  });
});
