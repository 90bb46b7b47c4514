/**
 * What src/access/user-storage.ts and src/access/own-tokens.ts promise, as tests that every storage runs.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import {
  defaultScopes,
  stateOf,
  type Caller,
  type Grant,
  type Role,
  type Scope,
} from '../src/access/access.ts';
import { maxActiveTokens, maxEndedTokens, type OwnToken } from '../src/access/own-tokens.ts';
import type { TokenRecord } from '../src/access/identity-storage.ts';
import type { LogPosition } from '../src/log/change-log.ts';
import { isProblem } from '../src/problem.ts';
import type { Storage } from '../src/storage.ts';
import { tokenHashBytes, tokenId } from '../src/access/token.ts';
import type { StorageUnderTest } from './storage.contract.ts';
import { identify } from './support/tokens.ts';

export function userContract({ name, open, openAgain }: StorageUnderTest): void {
  describe(`${name}: tokens that users create`, () => {
    it('creates a token of the same user, which every process accepts', async (t) => {
      const storage = await open(t);
      const other = await openAgain(t);
      const alice = await user(storage, 'alice', { role: 'manager', store: 'north' });
      const hash = randomBytes(tokenHashBytes);
      const token = { hash, scopes: ['plants:read'], label: 'phone', ...times(20) } as const;
      const creator = await alice();
      assert.equal(creator.family, creator.tokenId);
      await storage.identity.createOwnToken(creator, token);
      const { store } = creator.caller;
      const grant = await other.identity.identify({ tokenHash: hash, store });
      const id = tokenId(hash, store);
      assert.partialDeepStrictEqual(grant, {
        tokenId: id,
        storeName: 'north',
        userName: 'alice',
        role: 'manager',
        family: creator.tokenId,
        expiresAtMs: 20,
      });
      assert.deepEqual([...(grant?.caller.scopes ?? [])], ['plants:read']);
      const listed = await other.identity.listTokens({ owner: creator.caller, limit: 10 });
      assert.equal(listed.find((one) => one.id === id)?.label, 'phone');
    });

    it('creates none with a token that is revoked', async (t) => {
      const storage = await open(t);
      const alice = await user(storage, 'alice');
      const grant = await alice();
      await storage.identity.createOwnToken(grant, newOwn(49));
      await (await openAgain(t)).identity.revokeToken(grant.tokenId, 5);
      await rejectsWith('invalid-token', storage.identity.createOwnToken(grant, newOwn(10)));
      assert.equal((await tokensOf(storage, 'alice')).length, 2);
    });

    it('leaves no token behind if all are revoked at the same moment', async (t) => {
      const storage = await open(t);
      const other = await openAgain(t);
      const alice = await user(storage, 'alice');
      const grant = await alice();
      for (let round = 0; round < 10; round++) {
        const asking = newOwn(1);
        await storage.identity.createOwnToken(grant, asking);
        const { store } = grant.caller;
        const by = await storage.identity.identify({ tokenHash: asking.hash, store });
        assert.ok(by);
        const ids = [by.tokenId];
        const created: string[] = [];
        await Promise.all([
          ...Array.from({ length: 5 }, async () => {
            const own = newOwn(1);
            try {
              await storage.identity.createOwnToken(by, own);
              created.push(tokenId(own.hash, store));
            } catch (error) {
              isEnded(error);
            }
          }),
          other.identity.revokeToken(by.tokenId, 2),
        ]);
        const listed = await tokensOf(storage, 'alice');
        const active = listed.filter((each) => stateOf(each, 3) === 'active').map(({ id }) => id);
        assert.deepEqual(new Set(active), new Set([grant.tokenId, ...created]));
        for (const id of [...ids, ...created]) await storage.identity.revokeToken(id, 2);
        await rejectsWith('invalid-token', storage.identity.createOwnToken(by, newOwn(3)));
      }
    });

    it('writes nothing more for a token that another process has revoked', async (t) => {
      const storage = await open(t);
      const other = await openAgain(t);
      const [alice, bob] = [await user(storage, 'alice'), await user(storage, 'bob')];
      const again = await user(storage, 'alice');
      const grant = await alice();
      const { caller, tokenId: id } = grant;
      const { caller: bobs, tokenId: bobsId } = await bob();
      await storage.plants.create(bobs, { name: 'first' });
      await storage.plants.create(caller, { name: 'second' });
      await other.identity.revokeToken(id, 2);
      const created: Promise<unknown>[] = [];
      const refused: Promise<unknown>[] = [];
      for (let round = 0; round < 5; round++) {
        refused.push(storage.plants.create(caller, { name: 'refused' }));
        created.push(storage.plants.create(bobs, { name: 'new' }));
        refused.push(storage.plants.delete(caller, 2));
        refused.push(storage.plants.create(caller, { name: 'refused', id: 100 + round }));
      }
      refused.push(
        storage.shares.set(
          caller.store,
          { owner: 'alice', user: 'bob', access: 'read' },
          1,
          caller,
        ),
        storage.shares.end(caller.store, [{ owner: 'bob', user: 'alice' }], caller),
        again().then((one) => storage.identity.revokeToken(one.tokenId, 3, grant)),
        storage.identity.revokeToken(id, 3, grant),
      );
      // Also if there is nothing to change.
      for (const unknown of [bobsId, bobsId.replace(/.{16}$/, '0'.repeat(16)), 'none'])
        refused.push(storage.identity.revokeToken(unknown, 3, grant));
      for (const write of [caller.write, [caller.user, bobs.user]])
        refused.push(storage.plants.delete({ ...caller, write }, 1_000));
      for (const owner of ['bob', 'nobody'])
        refused.push(storage.shares.end(caller.store, [{ owner, user: 'alice' }], caller));
      await Promise.all(refused.map((each) => rejectsWith('invalid-token', each)));
      const ids = (await Promise.all(created)).map((plant) => (plant as { id: number }).id);
      assert.deepEqual(
        ids.toSorted((a, b) => a - b),
        [3, 4, 5, 6, 7],
        'no id is lost',
      );
      assert.deepEqual(await plantIds(storage, (await again()).caller), [2]);
      assert.equal((await again()).revokedAtMs, undefined);
    });

    it('writes for a caller who was identified before other grants changed', async (t) => {
      const storage = await open(t);
      const other = await openAgain(t);
      const { caller } = await (await user(storage, 'alice'))();
      for (let round = 0; round < 5; round++) {
        const creating = Array.from({ length: 5 }, () =>
          storage.plants.create(caller, { name: 'a' }),
        );
        await Promise.all([...creating, user(other, `user ${round}`)]);
      }
      assert.deepEqual(
        await plantIds(storage, caller),
        Array.from({ length: 25 }, (_, at) => at + 1),
      );
    });

    it('creates no plant for a token after its revocation, however many are in progress', async (t) => {
      const storage = await open(t);
      const other = await openAgain(t);
      const manager = await (await user(storage, 'eve', { role: 'manager' }))();
      for (let round = 0; round < 5; round++) {
        const { caller, tokenId: id } = await (await user(storage, 'alice'))();
        let isRevoked = false;
        let created = 0;
        const before = (await plantIds(storage, manager.caller)).length;
        const creating = Array.from({ length: 8 }, async () => {
          for (let isRefused = false; !isRefused;) {
            const isLate = isRevoked;
            try {
              await storage.plants.create(caller, { name: 'a' });
              created++;
              assert.ok(!isLate, 'it was created after the revocation');
            } catch (error) {
              assert.ok(isProblem(error, 'invalid-token'), String(error));
              isRefused = true;
            }
          }
        });
        await other.identity.revokeToken(id, 2);
        isRevoked = true;
        await Promise.all(creating);
        assert.equal((await plantIds(storage, manager.caller)).length, before + created);
      }
    });

    it('revokes all tokens of a user together with those being created', async (t) => {
      const storage = await open(t);
      const other = await openAgain(t);
      for (let round = 0; round < 10; round++) {
        const alice = await user(storage, `alice ${round}`);
        const grant = await alice();
        await Promise.all([
          ...Array.from({ length: 5 }, () =>
            storage.identity.createOwnToken(grant, newOwn(1)).catch(isEnded),
          ),
          other.users.endAccess(grant.caller, 2, 10),
        ]);
        for (const each of await tokensOf(storage, `alice ${round}`)) {
          assert.equal(each.revokedAtMs, 2);
        }
      }
    });

    it('limits the active tokens of a user, even if many are created concurrently', async (t) => {
      const storage = await open(t);
      const other = await openAgain(t);
      const [alice, bob] = [await user(storage, 'alice'), await user(storage, 'bob')];
      const grant = await alice();
      const outcomes = await Promise.allSettled(
        Array.from({ length: maxActiveTokens + 20 }, (_, at) =>
          (at % 2 ? storage : other).identity.createOwnToken(grant, newOwn(1)),
        ),
      );
      const refused = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
      assert.equal(refused.length, 21);
      for (const { kind } of refused) assert.equal(kind, 'too-many-tokens');
      const tokens = await tokensOf(storage, 'alice');
      assert.equal(tokens.length, maxActiveTokens);
      await storage.identity.createOwnToken(await bob(), newOwn(1));
      await storage.identity.revokeToken(
        tokens.find(({ id }) => id !== grant.tokenId)?.id ?? '',
        1,
      );
      await storage.identity.createOwnToken(grant, newOwn(1));
      await user(storage, 'alice'); // operators have no limit
      assert.equal((await tokensOf(storage, 'alice')).length, maxActiveTokens + 2);
    });

    it('deletes the oldest ended tokens of a user when another is created', async (t) => {
      const storage = await open(t);
      const [alice, bob] = [await user(storage, 'alice'), await user(storage, 'bob')];
      const [grant, bobs] = [await alice(), await bob()];
      const idOf = (own: OwnToken) => tokenId(own.hash, grant.caller.store);
      const ended: string[] = [];
      for (let at = 0; at < maxEndedTokens + 5; at++) {
        const own = at % 2 ? { ...newOwn(at), expiresAtMs: at + 1 } : newOwn(at);
        await storage.identity.createOwnToken(grant, own);
        ended.push(idOf(own));
        if (at % 2 === 0) await storage.identity.revokeToken(idOf(own), at + 1);
      }
      const bobsToken = newOwn(0);
      await storage.identity.createOwnToken(bobs, bobsToken);
      await storage.identity.revokeToken(idOf(bobsToken), 1);
      const last = newOwn(1_000);
      await storage.identity.createOwnToken(grant, last);
      const remaining = [grant.tokenId, ...ended.slice(5), idOf(last)];
      assert.deepEqual(
        (await tokensOf(storage, 'alice')).map(({ id }) => id),
        remaining.toSorted(),
      );
      assert.equal((await tokensOf(storage, 'bob')).length, 2);
    });

    it('revokes for a user only their own tokens', async (t) => {
      const storage = await open(t);
      const [alice, bob] = [await user(storage, 'alice'), await user(storage, 'bob')];
      const namesake = await user(storage, 'alice', { store: 'elsewhere' });
      const own = await alice();
      const { tokenId: id } = own;
      for (const other of [bob, namesake]) {
        const grant = await other();
        assert.equal(await storage.identity.revokeToken(id, 1, grant), undefined);
        assert.equal(await storage.identity.revokeToken(grant.tokenId, 1, own), undefined);
        assert.equal((await other()).revokedAtMs, undefined);
      }
      assert.equal((await storage.identity.revokeToken(id, 7, own))?.revokedAtMs, 7);
      const later = await user(storage, 'alice');
      assert.equal((await storage.identity.revokeToken(id, 8, await later()))?.revokedAtMs, 7);
      assert.equal((await alice()).revokedAtMs, 7);
    });

    it('revokes with a token that was created with another one only what descends from it', async (t) => {
      const storage = await open(t);
      const root = await (await user(storage, 'alice'))();
      const twin = await (await user(storage, 'alice'))();
      const below = async (by: Grant, scopes: readonly Scope[] = ['plants:read']) => {
        const own = { ...newOwn(1), scopes };
        await storage.identity.createOwnToken(by, own);
        const grant = await storage.identity.identify({
          tokenHash: own.hash,
          store: by.caller.store,
        });
        assert.equal(grant?.family, root.tokenId);
        assert.ok(grant);
        return grant;
      };
      const [child, sibling] = [await below(root, defaultScopes), await below(root)];
      const grandchild = await below(child);
      let deepest = grandchild;
      for (let depth = 0; depth < 20; depth++) deepest = await below(deepest);
      const other = await openAgain(t);
      const stateAfter = async (by: Grant, { tokenId: id, tokenHash }: Grant) => {
        const refused = await other.identity.revokeToken(id, 1, by).then(
          () => false,
          ({ kind }: { kind: string }) => kind === 'token-restricted',
        );
        const { store } = by.caller;
        const { revokedAtMs } = (await storage.identity.identify({ tokenHash, store })) ?? {};
        assert.equal(revokedAtMs === undefined, refused);
        return refused ? 'refused' : 'revoked';
      };
      for (const [by, token] of [
        [child, root],
        [child, sibling],
        [child, twin],
        [grandchild, child],
        [grandchild, root],
        [deepest, grandchild],
      ] as const) {
        assert.equal(await stateAfter(by, token), 'refused');
      }
      assert.equal(await stateAfter(child, grandchild), 'revoked');
      assert.equal(await stateAfter(root, deepest), 'revoked');
      assert.equal(await stateAfter(sibling, sibling), 'revoked');
      assert.equal(await stateAfter(twin, child), 'revoked');
      assert.equal(await stateAfter(twin, root), 'revoked');
    });

    it('revokes with a token of an operator only those that have at most its scopes', async (t) => {
      const storage = await open(t);
      const grantOf = async (scopes: readonly Scope[]) => {
        const wanted = { store: 'main', user: 'alice', scopes, label: '', createdAtMs: 1 };
        const { token } = await storage.identity.createToken(wanted);
        const grant = await identify(storage, token);
        assert.ok(grant);
        return grant;
      };
      const [reader, writer] = [await grantOf(['plants:read']), await grantOf(defaultScopes)];
      await assert.rejects(storage.identity.revokeToken(writer.tokenId, 1, reader), {
        kind: 'insufficient-scope',
        scope: 'plants:write',
      });
      assert.equal((await storage.identity.revokeToken(reader.tokenId, 1, writer))?.revokedAtMs, 1);
    });

    it('lists the tokens of one user by hash, page by page', async (t) => {
      const storage = await open(t);
      await user(storage, 'bob');
      await user(storage, 'alice', { store: 'elsewhere' });
      const alice = await user(storage, 'alice');
      const { caller: owner, tokenId: first } = await alice();
      const ids = [first];
      for (let made = 0; made < 4; made++) {
        const own = newOwn(made);
        await storage.identity.createOwnToken(await alice(), own);
        ids.push(tokenId(own.hash, owner.store));
      }
      const seen: TokenRecord[] = [];
      for (;;) {
        const page = await storage.identity.listTokens({
          owner,
          after: seen.at(-1)?.position,
          limit: 2,
        });
        if (page.length === 0) break;
        seen.push(...page);
      }
      assert.deepEqual(
        seen.map(({ id }) => id),
        ids.toSorted(),
      );
      const nobody = { ...owner, user: owner.user + 100 };
      assert.deepEqual(await storage.identity.listTokens({ owner: nobody, limit: 10 }), []);
    });

    it('records the last use of tokens, and keeps cached grants', async (t) => {
      const storage = await open(t);
      const other = await openAgain(t);
      const [alice, bob] = [await user(storage, 'alice'), await user(storage, 'bob')];
      const lastUses = async () => {
        const tokens = [...(await tokensOf(other, 'alice')), ...(await tokensOf(other, 'bob'))];
        return tokens.map(({ lastUsedAtMs }) => lastUsedAtMs);
      };
      assert.deepEqual(await lastUses(), [undefined, undefined]);
      const cached = await alice();
      const use = async (grant: Grant, usedAtMs: number) => ({
        hash: grant.tokenHash,
        store: grant.caller.store,
        usedAtMs,
      });
      await other.identity.recordUses([await use(await bob(), 120_000), await use(cached, 60_000)]);
      assert.deepEqual(await lastUses(), [60_000, 120_000]);
      await storage.identity.recordUses([await use(cached, 180_000)]);
      await storage.identity.recordUses([
        await use(cached, 60_000),
        { ...(await use(cached, 9)), hash: randomBytes(tokenHashBytes) },
      ]);
      await storage.identity.recordUses([]);
      assert.deepEqual(await lastUses(), [180_000, 120_000]);
      assert.equal(await alice(), cached, 'the same object');
    });
  });

  describe(`${name}: users and stores`, () => {
    it('lists stores and users by name, page by page', async (t) => {
      const storage = await open(t);
      assert.deepEqual(await storage.users.listStores({ limit: 10 }), []);
      const alice = await user(storage, 'alice', { role: 'manager' });
      await user(storage, 'Zoë');
      await user(storage, 'bob', { expiresAtMs: 1 });
      await user(storage, 'carol', { store: 'north' });
      await storage.identity.createOwnToken(await alice(), newOwn(1));
      await storage.plants.create((await alice()).caller, { name: 'a', id: 7 });
      const stores = [
        { store: 'main', users: 3, lastId: 7 },
        { store: 'north', users: 1, lastId: 0 },
      ];
      assert.deepEqual(await storage.users.listStores({ limit: 10 }), stores);
      assert.deepEqual(await storage.users.listStores({ limit: 1 }), stores.slice(0, 1));
      assert.deepEqual(
        await storage.users.listStores({ after: 'main', limit: 1 }),
        stores.slice(1),
      );
      const store = 'main';
      const users = [
        { store, user: 'Zoë', role: 'member', activeTokens: 1 },
        { store, user: 'alice', role: 'manager', activeTokens: 2 },
        { store, user: 'bob', role: 'member', activeTokens: 0 },
      ];
      assert.deepEqual(await storage.users.list('main', { limit: 10 }), users);
      assert.deepEqual(await storage.users.list('main', { limit: 2 }), users.slice(0, 2));
      assert.deepEqual(await storage.users.list('main', { after: 'alice', limit: 2 }), [users[2]]);
      assert.deepEqual(await storage.users.list('nowhere', { limit: 10 }), []);
    });

    it('moves plants to another owner in batches, on every connection', async (t) => {
      const storage = await open(t);
      const other = await openAgain(t);
      const [alice, bob] = [await user(storage, 'alice'), await user(storage, 'bob')];
      const manager = await user(storage, 'eve', { role: 'manager' });
      const [{ caller: from }, { caller: to }] = [await alice(), await bob()];
      for (const id of [5, 1, 3, 4]) await storage.plants.create(from, { name: `n${id}`, id });
      await storage.plants.create(to, { name: 'his', id: 2 });
      assert.equal(await storage.users.countPlants(from, 3), 3);
      assert.equal(await storage.users.countPlants(from, 10), 4);
      const seen = async (at: Storage) => {
        const lists = [alice, bob, manager].map(async (who) =>
          plantIds(at, (await who(at)).caller),
        );
        return Promise.all(lists);
      };
      const all = [1, 2, 3, 4, 5];
      for (const at of [storage, other, storage]) {
        assert.deepEqual(await seen(at), [[1, 3, 4, 5], [2], all]);
      }
      assert.equal(await other.users.movePlants(from, to.user, 3), 3);
      for (const at of [storage, other]) assert.deepEqual(await seen(at), [[5], [1, 2, 3, 4], all]);
      assert.equal(await storage.users.movePlants(from, to.user, 3), 1);
      assert.equal(await storage.users.movePlants(from, to.user, 3), 0);
      for (const at of [storage, other]) assert.deepEqual(await seen(at), [[], all, all]);
      assert.deepEqual((await storage.plants.find(to, 5))?.name, 'n5');
    });

    it('ends the tokens and shares of a user, and removes only one without plants', async (t) => {
      const storage = await open(t);
      const other = await openAgain(t);
      const [alice, bob] = [await user(storage, 'alice'), await user(storage, 'bob')];
      const { caller } = await alice();
      const { store } = caller;
      for (const each of ['bob', 'carol', 'dave']) {
        await storage.shares.set(store, { owner: 'alice', user: each, access: 'read' }, 1);
      }
      for (const [at, owner] of ['bob', 'carol', 'dave'].entries()) {
        await user(storage, owner);
        await storage.shares.set(store, { owner, user: 'alice', access: 'write' }, at);
      }
      await storage.plants.create(caller, { name: 'a', id: 1 });
      assert.deepEqual(await plantIds(other, (await bob(other)).caller), [1]);
      assert.equal(await storage.users.remove(caller, 5), false);

      assert.equal(await storage.users.endAccess(caller, 4, 2), 5);
      assert.equal(await storage.users.endAccess(caller, 5, 2), 1);
      assert.equal(await storage.users.endAccess(caller, 6, 2), 0);
      assert.equal((await alice(other)).revokedAtMs, 4);
      assert.deepEqual(await plantIds(other, (await bob(other)).caller), []);
      const before = (await positions(storage)).at(-1);
      assert.equal(await storage.users.remove(caller, 5), false, 'there is a plant');
      await storage.users.movePlants(caller, (await bob()).caller.user, 10);
      const moved = (await positions(storage)).at(-1);
      assert.equal(moved?.version, (before?.version ?? 0) + 1, 'a refused removal is no change');
      assert.deepEqual(await plantIds(other, (await bob(other)).caller), [1]);
      assert.equal(await storage.users.remove(caller, 5), true);
      assert.equal(await storage.users.remove(caller, 6), true);

      const found = { store, user: caller.user, isRemoved: true };
      assert.deepEqual(await storage.users.find('main', 'alice'), found);
      assert.equal(
        (await storage.identity.findNames({ store: 'main', user: 'alice' })).role,
        undefined,
      );
      const names = (await storage.users.list('main', { limit: 10 })).map((each) => each.user);
      assert.deepEqual(names, ['bob', 'carol', 'dave']);
      assert.equal((await storage.users.listStores({ limit: 1 }))[0]?.users, 3);
      assert.equal(await storage.users.find('main', 'nobody'), undefined);
      assert.equal(await storage.users.find('nowhere', 'alice'), undefined);
    });

    it('ends a token that is created while its user is removed', async (t) => {
      const storage = await open(t);
      const { caller } = await (await user(storage, 'alice'))();
      await storage.users.endAccess(caller, 4, 10);
      const late = await user(storage, 'alice');
      assert.equal((await late()).revokedAtMs, undefined);
      assert.equal(await storage.users.remove(caller, 5), true);
      assert.equal((await late()).revokedAtMs, 5);
      await user(storage, 'alice');
      assert.equal((await late()).revokedAtMs, 5, 'also after there is a new user of that name');
    });

    it('gives no plants to a user who was removed, and lets them share none', async (t) => {
      const storage = await open(t);
      const [alice, bob] = [await user(storage, 'alice'), await user(storage, 'bob')];
      const [{ caller }, { caller: to }] = [await alice(), await bob()];
      await storage.plants.create(caller, { name: 'a', id: 1 });
      await storage.users.endAccess(to, 4, 10);
      assert.equal(await storage.users.remove(to, 5), true);
      assert.equal(await storage.users.movePlants(caller, to.user, 10), 0);
      assert.deepEqual(await plantIds(storage, (await alice()).caller), [1]);
      const share = { owner: 'bob', user: 'alice', access: 'read' } as const;
      await assert.rejects(storage.shares.set(to.store, share, 6), { kind: 'invalid-token' });
      assert.deepEqual(await storage.shares.of(to.store, 'alice'), { given: [], received: [] });
    });

    it('removes a user again without a change for a later one of the name', async (t) => {
      const storage = await open(t);
      const { caller: alice } = await (await user(storage, 'alice'))();
      const create = async (who: Caller) => {
        const { id, isReplay } = await storage.plants.create(who, { name: 'a' }, { key: 'key' });
        return [id, isReplay];
      };
      assert.deepEqual(await create(alice), [1, false]);
      await storage.plants.delete(alice, 1);
      for (let time = 0; time < 2; time++) assert.ok(await storage.users.remove(alice, 1));
      const claims = {
        storeName: 'main',
        userName: 'alice',
        role: undefined,
        scopes: defaultScopes,
        issuedAtMs: Date.now(),
        expiresAtMs: Infinity,
      };
      // A JWT: a new token would be a change of its own.
      const grant = await storage.identity.identify({ tokenHash: Buffer.alloc(32), claims });
      assert.ok(grant);
      const { caller: again } = grant;
      assert.deepEqual(await create(again), [2, false]);
      assert.deepEqual(await create(again), [2, true]);
      assert.ok(await storage.plants.delete(again, 2));
      assert.equal((await storage.plants.restore(again, 2))?.id, 2);
    });

    it('makes a removed user a new one with a new token', async (t) => {
      const storage = await open(t);
      for (const role of [undefined, 'manager'] as const) {
        const alice = await user(storage, 'alice', { role: 'manager' });
        const { caller } = await alice();
        await storage.plants.create(caller, { name: 'a' });
        await storage.shares.set(caller.store, { owner: 'alice', user: 'bob', access: 'read' }, 1);
        await user(storage, 'bob');
        await storage.shares.set(caller.store, { owner: 'bob', user: 'alice', access: 'read' }, 1);
        const to = await storage.users.find('main', 'bob');
        await storage.users.endAccess(caller, 4, 10);
        await storage.users.movePlants(caller, to?.user ?? 0, 10);
        await storage.users.remove(caller, 5);

        const again = await user(storage, 'alice', { role });
        const grant = await again();
        assert.equal(grant.role, role ?? 'member');
        if (role === undefined) assert.deepEqual(await plantIds(storage, grant.caller), []);
        assert.deepEqual(grant.caller.read, role ? 'all' : [caller.user]);
        assert.equal((await alice()).revokedAtMs, 4);
        assert.equal((await storage.users.find('main', 'alice'))?.isRemoved, false);
        const listed = await storage.users.list('main', { limit: 1 });
        assert.deepEqual(listed, [
          { store: 'main', user: 'alice', role: role ?? 'member', activeTokens: 1 },
        ]);
      }
    });
  });
}

function isEnded(error: unknown): void {
  assert.ok(isProblem(error, 'invalid-token'), String(error));
}

async function rejectsWith(kind: string, promise: Promise<unknown>): Promise<void> {
  await assert.rejects(promise, { name: 'Problem', kind });
}

const times = (expiresAtMs?: number) => ({ createdAtMs: 1, expiresAtMs });

function newOwn(createdAtMs: number) {
  const hash = randomBytes(tokenHashBytes);
  return { hash, scopes: defaultScopes, label: '', createdAtMs, expiresAtMs: undefined };
}

async function positions(storage: Storage): Promise<LogPosition[]> {
  const { changes } = await storage.log.list({ store: 'main', limit: 1_000 });
  return changes.map(({ position }) => position);
}

async function tokensOf(storage: Storage, name: string): Promise<TokenRecord[]> {
  const owner = await storage.users.find('main', name);
  assert.ok(owner);
  return storage.identity.listTokens({ owner, limit: 1_000 });
}

/** Creates a token, and returns a function that identifies its user. */
async function user(
  storage: Storage,
  name: string,
  {
    role,
    store = 'main',
    expiresAtMs,
  }: { role?: Role | undefined; store?: string; expiresAtMs?: number } = {},
): Promise<(at?: Storage) => Promise<Grant>> {
  const scopes = defaultScopes;
  const { token } = await storage.identity.createToken({
    store,
    user: name,
    role,
    scopes,
    label: '',
    ...times(expiresAtMs),
  });
  return async (at = storage) => {
    const grant = await identify(at, token);
    assert.ok(grant);
    return grant;
  };
}

async function plantIds(storage: Storage, caller: Caller): Promise<number[]> {
  const page = await storage.plants.list(caller, { after: 0, limit: 1_000_000, fields: ['id'] });
  return (JSON.parse(`[${page.json}]`) as { id: number }[]).map(({ id }) => id); // as requested
}
