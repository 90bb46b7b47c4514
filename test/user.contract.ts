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
  type Identity,
  type Scope,
} from '../src/access/access.ts';
import type { TokenRecord } from '../src/access/identity-storage.ts';
import { maxActiveTokens, maxEndedTokens } from '../src/access/own-tokens.ts';
import { tokenHashBytes, tokenId } from '../src/access/token.ts';
import { isProblem } from '../src/problem.ts';
import type { Storage } from '../src/storage.ts';
import { findUser, idsOf, ownScene, rejectsWith, type Scene } from './support/scene.ts';
import type { StorageName } from './support/storages.ts';

export function userContract(engine: StorageName, scene: () => Scene): void {
  describe(`${engine}: tokens that users create`, () => {
    it('are of the same user, and every process accepts them', async () => {
      const { storage, other, store, grant } = scene();
      const creator = await grant('alice', { role: 'manager' });
      assert.equal(creator.family, creator.tokenId);
      const { id, tokenHash } = await createOwn(storage, creator, {
        scopes: ['plants:read'],
        label: 'phone',
        expiresAtMs: 20,
      });
      const found = await other.identity.identify({ tokenHash, store: creator.caller.store });
      assert.partialDeepStrictEqual(found, {
        tokenId: id,
        storeName: store,
        userName: 'alice',
        role: 'manager',
        family: creator.tokenId,
        expiresAtMs: 20,
      });
      assert.deepEqual([...(found?.caller.scopes ?? [])], ['plants:read']);
      const listed = await tokensOf(other, creator.caller);
      assert.equal(listed.find((one) => one.id === id)?.label, 'phone');
    });

    it('are all in the list, or refused, if their creator is revoked at the same moment', async () => {
      const { storage, other, grant } = scene();
      const alice = await grant('alice');
      for (let round = 0; round < 10; round++) {
        const by = await grantBelow(storage, alice);
        const created: string[] = [];
        await Promise.all([
          ...Array.from({ length: 5 }, async () => {
            const own = await createOwn(storage, by).catch(isEnded);
            if (own) created.push(own.id);
          }),
          other.identity.revokeToken(by.tokenId, 2),
        ]);
        const listed = await tokensOf(storage, alice.caller);
        const active = listed.filter((each) => stateOf(each, 3) === 'active').map(({ id }) => id);
        assert.deepEqual(new Set(active), new Set([alice.tokenId, ...created]));
        for (const id of created) await storage.identity.revokeToken(id, 2);
        await rejectsWith('invalid-token', createOwn(storage, by));
      }
    });

    it('are revoked with all tokens of the user, even while they are being created', async () => {
      const { storage, other, grant } = scene();
      for (let round = 0; round < 10; round++) {
        const alice = await grant(`alice ${round}`);
        await Promise.all([
          ...Array.from({ length: 5 }, () => createOwn(storage, alice).catch(isEnded)),
          other.users.endAccess(alice.caller, 2, 10),
        ]);
        for (const each of await tokensOf(storage, alice.caller)) assert.equal(each.revokedAtMs, 2);
      }
    });

    it('have a maximum of active ones, even if many are created concurrently', async () => {
      const { storage, other, grant } = scene();
      const [alice, bob] = [await grant('alice'), await grant('bob')];
      const create = (length: number) =>
        Promise.allSettled(
          Array.from({ length }, (_, at) => createOwn(at % 2 ? storage : other, alice)),
        );
      for (let count = 1; count < maxActiveTokens - 9; count += 10) await create(10);
      const outcomes = await create(30);
      const refused = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
      assert.equal(refused.length, 21);
      for (const { kind } of refused) assert.equal(kind, 'too-many-tokens');
      const tokens = await tokensOf(storage, alice.caller);
      assert.equal(tokens.length, maxActiveTokens);
      await createOwn(storage, bob);
      const revoked = tokens.find(({ id }) => id !== alice.tokenId)?.id ?? '';
      await storage.identity.revokeToken(revoked, 1);
      await createOwn(storage, alice);
      await grant('alice'); // operators have no limit
      assert.equal((await tokensOf(storage, alice.caller)).length, maxActiveTokens + 2);
    });

    it('replace the oldest ended tokens of the user', async () => {
      const { storage, grant } = scene();
      const [alice, bob] = [await grant('alice'), await grant('bob')];
      const ended: string[] = [];
      for (let at = 0; at < maxEndedTokens + 5; at++) {
        const expires = at % 2 === 1;
        const times = { createdAtMs: at, ...(expires && { expiresAtMs: at + 1 }) };
        const { id } = await createOwn(storage, alice, times);
        ended.push(id);
        if (!expires) await storage.identity.revokeToken(id, at + 1);
      }
      const { id: bobs } = await createOwn(storage, bob, { createdAtMs: 0 });
      await storage.identity.revokeToken(bobs, 1);
      const { id: last } = await createOwn(storage, alice, { createdAtMs: 1_000 });
      const remaining = [alice.tokenId, ...ended.slice(5), last];
      assert.deepEqual(
        (await tokensOf(storage, alice.caller)).map(({ id }) => id),
        remaining.toSorted(),
      );
      assert.equal((await tokensOf(storage, bob.caller)).length, 2);
    });

    it('are revoked only by their own user', async () => {
      const { storage, store, token, grant } = scene();
      const alice = await token('alice');
      const [own, id] = [await alice.grant(), alice.id];
      for (const other of [
        await token('bob'),
        await token('alice', { store: `${store} elsewhere` }),
      ]) {
        const stranger = await other.grant();
        assert.equal(await storage.identity.revokeToken(id, 1, stranger), undefined);
        assert.equal(await storage.identity.revokeToken(other.id, 1, own), undefined);
        assert.equal((await other.grant()).revokedAtMs, undefined);
      }
      assert.equal((await storage.identity.revokeToken(id, 7, own))?.revokedAtMs, 7);
      const later = await grant('alice');
      assert.equal((await storage.identity.revokeToken(id, 8, later))?.revokedAtMs, 7);
      assert.equal((await alice.grant()).revokedAtMs, 7);
    });

    it('can revoke only what descends from them', async () => {
      const { storage, other, grant } = scene();
      const [root, twin] = [await grant('alice'), await grant('alice')];
      const below = async (by: Grant, scopes?: readonly Scope[]) => {
        const found = await grantBelow(storage, by, scopes);
        assert.equal(found.family, root.tokenId);
        return found;
      };
      const [child, sibling] = [await below(root, defaultScopes), await below(root)];
      const grandchild = await below(child);
      let deepest = grandchild;
      for (let depth = 0; depth < 20; depth++) deepest = await below(deepest);
      for (const [by, { tokenId: id, tokenHash }, expected] of [
        [child, root, 'token-restricted'],
        [child, sibling, 'token-restricted'],
        [child, twin, 'token-restricted'],
        [grandchild, child, 'token-restricted'],
        [grandchild, root, 'token-restricted'],
        [deepest, grandchild, 'token-restricted'],
        [child, grandchild, 'revoked'],
        [root, deepest, 'revoked'],
        [sibling, sibling, 'revoked'],
        [twin, child, 'revoked'],
        [twin, root, 'revoked'],
      ] as const) {
        const outcome = await other.identity.revokeToken(id, 1, by).then(
          () => 'revoked',
          ({ kind }: { kind: string }) => kind,
        );
        assert.equal(outcome, expected);
        const found = await storage.identity.identify({ tokenHash, store: by.caller.store });
        assert.equal(found?.revokedAtMs, outcome === 'revoked' ? 1 : undefined);
      }
    });

    it('can revoke tokens of an operator that have at most their scopes', async () => {
      const { storage, grant } = scene();
      const reader = await grant('alice', { scopes: ['plants:read'] });
      const writer = await grant('alice', { scopes: defaultScopes });
      await assert.rejects(storage.identity.revokeToken(writer.tokenId, 1, reader), {
        kind: 'insufficient-scope',
        scope: 'plants:write',
      });
      assert.equal((await storage.identity.revokeToken(reader.tokenId, 1, writer))?.revokedAtMs, 1);
    });

    it('are listed with all tokens of one user by hash, page by page', async () => {
      const { storage, store, grant } = scene();
      await grant('bob');
      await grant('alice', { store: `${store} elsewhere` });
      const alice = await grant('alice');
      const { caller: owner, tokenId: first } = alice;
      const { store: number, user } = owner;
      const ids = [first];
      for (let made = 0; made < 4; made++) ids.push((await createOwn(storage, alice)).id);
      const seen: TokenRecord[] = [];
      for (;;) {
        const query = { store: number, user, after: seen.at(-1)?.id, limit: 2 };
        const page = await storage.identity.listTokens(query);
        if (page.length === 0) break;
        seen.push(...page);
      }
      assert.deepEqual(
        seen.map(({ id }) => id),
        ids.toSorted(),
      );
      assert.deepEqual(await tokensOf(storage, { ...owner, user: owner.user + 100 }), []);
    });

    it('show their last use, which leaves cached grants valid', async () => {
      const { storage, other, token, grant } = scene();
      const [alice, bob] = [await token('alice'), await grant('bob')];
      const cached = await alice.grant();
      const lastUses = async () => {
        const lists = [cached, bob].map(async ({ caller }) => tokensOf(other, caller));
        return (await Promise.all(lists)).flat().map(({ lastUsedAtMs }) => lastUsedAtMs);
      };
      const record = async (usedAtMs: number, ...tokens: readonly Uint8Array[]) =>
        storage.identity.recordUses(cached.caller.store, usedAtMs, tokens);
      assert.deepEqual(await lastUses(), [undefined, undefined]);
      await record(120_000, bob.tokenHash);
      await record(60_000, cached.tokenHash);
      assert.deepEqual(await lastUses(), [60_000, 120_000]);
      await record(180_000, cached.tokenHash);
      await record(60_000, cached.tokenHash, randomBytes(tokenHashBytes));
      await record(60_000);
      assert.deepEqual(await lastUses(), [180_000, 120_000]);
      assert.equal(await alice.grant(), cached, 'the same object');
    });
  });

  describe(`${engine}: writes`, () => {
    it('are refused for a token that another process has revoked', async () => {
      const { storage, other, token, grant } = scene();
      const [revoked, bob] = [await grant('alice'), await grant('bob')];
      const again = await token('alice');
      const [{ caller, tokenId: id }, { caller: bobs, tokenId: bobsId }] = [revoked, bob];
      await storage.plants.create(bobs, { name: 'first' });
      await storage.plants.create(caller, { name: 'second' });
      await other.identity.revokeToken(id, 2);
      const created: Promise<{ id: number }>[] = [];
      const refused: Promise<unknown>[] = [];
      for (let round = 0; round < 5; round++) {
        refused.push(storage.plants.create(caller, { name: 'refused' }));
        created.push(storage.plants.create(bobs, { name: 'new' }));
        refused.push(storage.plants.delete(caller, 2));
        refused.push(storage.plants.create(caller, { name: 'refused', id: 100 + round }));
      }
      const share = { owner: 'alice', user: 'bob', access: 'read' } as const;
      refused.push(
        storage.shares.set(caller.store, share, 1, caller),
        storage.plants.update(caller, 2, { name: 'refused' }),
        storage.plants.restore(caller, 2),
      );
      // Also if there is nothing to change.
      const none = bobsId.replace(/.{16}$/, '0'.repeat(16));
      for (const one of [again.id, id, bobsId, none, 'none'])
        refused.push(storage.identity.revokeToken(one, 3, revoked));
      for (const write of [caller.write, [caller.user, bobs.user]])
        refused.push(storage.plants.delete({ ...caller, write }, 1_000));
      for (const owner of ['bob', 'nobody'])
        refused.push(storage.shares.end(caller.store, [{ owner, user: 'alice' }], caller));
      await Promise.all(refused.map((each) => rejectsWith('invalid-token', each)));
      const ids = (await Promise.all(created)).map((plant) => plant.id);
      assert.deepEqual(
        ids.toSorted((a, b) => a - b),
        [3, 4, 5, 6, 7],
        'no id is lost',
      );
      assert.deepEqual(await idsOf(storage, await again.caller()), [2]);
      assert.equal((await again.grant()).revokedAtMs, undefined);
    });

    it('succeed for a caller who was identified before other grants changed', async () => {
      const { storage, other, caller, store } = scene();
      const alice = await caller('alice');
      const newUser = { store, scopes: defaultScopes, label: '', createdAtMs: 1 };
      for (let round = 0; round < 5; round++) {
        const creating = Array.from({ length: 5 }, () =>
          storage.plants.create(alice, { name: 'a' }),
        );
        const user = `user ${round}`;
        await Promise.all([...creating, other.identity.createToken({ ...newUser, user })]);
      }
      assert.deepEqual(
        await idsOf(storage, alice),
        Array.from({ length: 25 }, (_, at) => at + 1),
      );
    });

    it('create no plant for a token after its revocation, however many are in progress', async () => {
      const { storage, other, caller, grant } = scene();
      const manager = await caller('eve', 'manager');
      for (let round = 0; round < 5; round++) {
        const alice = await grant('alice');
        let isRevoked = false;
        let created = 0;
        const before = (await idsOf(storage, manager, { limit: 100_000 })).length;
        const creating = Array.from({ length: 8 }, async () => {
          for (let isRefused = false; !isRefused;) {
            const isLate = isRevoked;
            try {
              await storage.plants.create(alice.caller, { name: 'a' });
              created++;
              assert.ok(!isLate, 'it was created after the revocation');
            } catch (error) {
              isEnded(error);
              isRefused = true;
            }
          }
        });
        await other.identity.revokeToken(alice.tokenId, 2);
        isRevoked = true;
        await Promise.all(creating);
        assert.equal((await idsOf(storage, manager, { limit: 100_000 })).length, before + created);
      }
    });
  });

  describe(`${engine}: users and stores`, () => {
    it('are listed by name, page by page', async (t) => {
      const { storage, store, grant } = await ownScene(t, engine);
      const { users } = storage;
      assert.deepEqual(await users.listStores({ limit: 10 }), []);
      const alice = await grant('alice', { role: 'manager' });
      await grant('Zoë');
      await grant('bob', { expiresAtMs: 1 });
      await grant('carol', { store: `${store} north` });
      await createOwn(storage, alice);
      await storage.plants.create(alice.caller, { name: 'a', id: 7 });
      const stores = [
        { store, users: 3, lastId: 7 },
        { store: `${store} north`, users: 1, lastId: 0 },
      ];
      assert.deepEqual(await users.listStores({ limit: 10 }), stores);
      assert.deepEqual(await users.listStores({ limit: 1 }), stores.slice(0, 1));
      assert.deepEqual(await users.listStores({ after: store, limit: 1 }), stores.slice(1));
      const all = [
        { user: 'Zoë', id: 2, role: 'member', activeTokens: 1 },
        { user: 'alice', id: 1, role: 'manager', activeTokens: 2 },
        { user: 'bob', id: 3, role: 'member', activeTokens: 0 },
      ].map((each) => ({ store, ...each, lastUsedAtMs: undefined, invitations: undefined }));
      assert.deepEqual(await users.list(store, { limit: 10 }), all);
      assert.deepEqual(await users.list(store, { limit: 2 }), all.slice(0, 2));
      assert.deepEqual(await users.list(store, { after: 'alice', limit: 2 }), [all[2]]);
      assert.deepEqual(await users.list('nowhere', { limit: 10 }), []);
    });

    it('have plants that are moved to another owner in batches, on every connection', async () => {
      const { storage, other, token } = scene();
      const [alice, bob] = [await token('alice'), await token('bob')];
      const manager = await token('eve', { role: 'manager' });
      const [from, to] = [await alice.caller(), await bob.caller()];
      for (const id of [5, 1, 3, 4]) await storage.plants.create(from, { name: `n${id}`, id });
      await storage.plants.create(to, { name: 'his', id: 2 });
      const assertSeen = async (...expected: number[][]) => {
        for (const at of [storage, other, storage]) {
          const lists = [alice, bob, manager].map(async (who) => idsOf(at, await who.caller(at)));
          assert.deepEqual(await Promise.all(lists), expected);
        }
      };
      const all = [1, 2, 3, 4, 5];
      await assertSeen([1, 3, 4, 5], [2], all);
      assert.equal(await other.users.movePlants(from, to.user, 3), 3);
      await assertSeen([5], [1, 2, 3, 4], all);
      assert.equal(await storage.users.movePlants(from, to.user, 3), 1);
      assert.equal(await storage.users.movePlants(from, to.user, 3), 0);
      await assertSeen([], all, all);
      assert.deepEqual((await storage.plants.find(to, 5))?.name, 'n5');
    });

    it('lose the tokens and shares of a user, who is removed once without plants', async () => {
      const { storage, other, store: name, token, grant, share } = scene();
      const [alice, bob] = [await token('alice'), await token('bob')];
      const caller = await alice.caller();
      const { store } = caller;
      const others = ['bob', 'carol', 'dave'];
      for (const each of others) await share('alice', each, 'read', 1);
      for (const [at, owner] of others.entries()) {
        await grant(owner);
        await share(owner, 'alice', 'write', at);
      }
      await storage.plants.create(caller, { name: 'a', id: 1 });
      const bobs = async () => idsOf(other, await bob.caller(other));
      assert.deepEqual(await bobs(), [1]);
      assert.equal(await storage.users.remove(caller, 5), false);

      for (const [atMs, ended] of [
        [4, 5],
        [5, 1],
        [6, 0],
      ] as const)
        assert.equal(await storage.users.endAccess(caller, atMs, 2), ended);
      assert.equal((await alice.grant(other)).revokedAtMs, 4);
      assert.deepEqual(await bobs(), []);
      const version = async () => {
        const { changes } = await storage.log.list({ store: name, limit: 1_000 });
        return changes.at(-1)?.position ?? 0;
      };
      const before = await version();
      assert.equal(await storage.users.remove(caller, 5), false, 'there is a plant');
      await storage.users.movePlants(caller, (await bob.caller()).user, 10);
      assert.equal(await version(), before + 1, 'a refused removal is no change');
      assert.deepEqual(await bobs(), [1]);
      for (const atMs of [5, 6]) assert.equal(await storage.users.remove(caller, atMs), true);

      const removed = { store, user: caller.user, role: undefined };
      assert.deepEqual(await storage.users.find(name, 'alice'), { store, user: removed });
      const left = (await storage.users.list(name, { limit: 10 })).map((each) => each.user);
      assert.deepEqual(left, others);
      const stores = await storage.users.listStores({ limit: 1_000 });
      assert.equal(stores.find((each) => each.store === name)?.users, 3);
      assert.deepEqual(await storage.users.find(name, 'nobody'), { store, user: undefined });
      const none = { store: undefined, user: undefined };
      assert.deepEqual(await storage.users.find('nowhere', 'alice'), none);
    });

    it('have no token left that was created while its user was removed', async () => {
      const { storage, token } = scene();
      const caller = await (await token('alice')).caller();
      await storage.users.endAccess(caller, 4, 10);
      const late = await token('alice');
      assert.equal((await late.grant()).revokedAtMs, undefined);
      assert.equal(await storage.users.remove(caller, 5), true);
      assert.equal((await late.grant()).revokedAtMs, 5);
      await token('alice');
      assert.equal((await late.grant()).revokedAtMs, 5, 'also if there is a new user of that name');
    });

    it('give no plants to a user who was removed, who can share none', async () => {
      const { storage, token, caller, share } = scene();
      const [alice, to] = [await token('alice'), await caller('bob')];
      const from = await alice.caller();
      await storage.plants.create(from, { name: 'a', id: 1 });
      await storage.users.endAccess(to, 4, 10);
      assert.equal(await storage.users.remove(to, 5), true);
      assert.equal(await storage.users.movePlants(from, to.user, 10), 0);
      assert.deepEqual(await idsOf(storage, await alice.caller()), [1]);
      await rejectsWith('invalid-token', share('bob', 'alice', 'read', 6));
      assert.deepEqual(await storage.shares.of(to.store, 'alice'), { given: [], received: [] });
    });

    it('stay as they are if a user is removed again, whoever has the name later', async () => {
      const { storage, caller, store } = scene();
      const alice = await caller('alice');
      const create = async (who: Caller) => {
        const { id, isReplay } = await storage.plants.create(who, { name: 'a' }, { key: 'key' });
        return [id, isReplay];
      };
      assert.deepEqual(await create(alice), [1, false]);
      await storage.plants.delete(alice, 1);
      for (let time = 0; time < 2; time++) assert.ok(await storage.users.remove(alice, 1));
      const claims = {
        storeName: store,
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

    it('include a removed user as a new one after a new token', async () => {
      const { storage, store, token, grant, share } = scene();
      for (const role of [undefined, 'manager'] as const) {
        const alice = await token('alice', { role: 'manager' });
        const caller = await alice.caller();
        await storage.plants.create(caller, { name: 'a' });
        await share('alice', 'bob', 'read', 1);
        const bob = await grant('bob');
        await share('bob', 'alice', 'read', 1);
        await storage.users.endAccess(caller, 4, 10);
        await storage.users.movePlants(caller, bob.caller.user, 10);
        await storage.users.remove(caller, 5);

        const again = await grant('alice', { role });
        assert.equal(again.role, role ?? 'member');
        if (role === undefined) assert.deepEqual(await idsOf(storage, again.caller), []);
        assert.deepEqual(again.caller.read, role ? 'all' : [caller.user]);
        assert.equal((await alice.grant()).revokedAtMs, 4);
        assert.equal((await findUser(storage, store, 'alice')).role, again.role);
        assert.deepEqual(await storage.users.list(store, { limit: 1 }), [
          {
            store,
            user: 'alice',
            id: caller.user,
            role: role ?? 'member',
            activeTokens: 1,
            lastUsedAtMs: undefined,
            invitations: undefined,
          },
        ]);
      }
    });
  });
}

function isEnded(error: unknown): undefined {
  assert.ok(isProblem(error, 'invalid-token'), String(error));
}

interface OwnOptions {
  scopes?: readonly Scope[];
  label?: string;
  createdAtMs?: number;
  expiresAtMs?: number;
}

async function createOwn({ identity }: Storage, by: Grant, options: OwnOptions = {}) {
  const hash = randomBytes(tokenHashBytes);
  const usual = { scopes: defaultScopes, label: '', createdAtMs: 1, expiresAtMs: undefined };
  await identity.createOwnToken(by, { hash, salt: tokenId(hash, 0), ...usual, ...options });
  return { id: tokenId(hash, by.caller.store), tokenHash: hash };
}

/** The grant of a new token. */
async function grantBelow(
  storage: Storage,
  by: Grant,
  scopes: readonly Scope[] = ['plants:read'],
): Promise<Grant> {
  const { tokenHash } = await createOwn(storage, by, { scopes });
  const grant = await storage.identity.identify({ tokenHash, store: by.caller.store });
  assert.ok(grant);
  return grant;
}

function tokensOf({ identity }: Storage, { store, user }: Identity): Promise<TokenRecord[]> {
  return identity.listTokens({ store, user, limit: 1_000 });
}
