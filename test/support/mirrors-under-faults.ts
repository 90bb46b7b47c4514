/**
 * Mirrors follow a store over HTTP while everybody writes, shares come and go, roles change, users are removed, and the
 * service and its database fail, and are replaced by a backup or a copy. Each mirror is equal to the list of its user.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { PlantStore, PlantStoreError, type Mirror } from '../../src/client/client.ts';
import { isProblem } from '../../src/problem.ts';
import type { Storage } from '../../src/storage.ts';
import { addToken } from './app.ts';
import type { Deployment } from './fault-injection.ts';
import { FeedRecorder } from './feed-recorder.ts';
import { quantile } from './paced-load.ts';
import { seededRandom } from './random.ts';
import { firstSeed } from './rounds.ts';
import { findUser } from './scene.ts';

export interface Size {
  /** Changes to wait for. */
  changes: number;
  mirrors: number;
  writers: number;
  /** Changes between two faults. */
  changesPerFault: number;
}

const store = 'main';
/** Of each writer. */
const maxPlants = 20;
/** One of so many changes waits for a mirror to have it. */
const changesPerReceipt = 40;
/** Clients that follow slowly get more changes at once. */
const maxSlownessMs = 1_000;
const rightsIntervalMs = 50;
/** One of so many changes of rights is the removal of a guest. */
const rightsPerRemoval = 40;
/** More than a position in a test. */
const never = Number.MAX_SAFE_INTEGER;
const fields = ['id', 'name', 'owner'] as const;
const scopes = ['plants:read', 'plants:write', 'shares:write'] as const;
const managers = ['maria', 'max'];
const members = Array.from({ length: 8 }, (_, at) => `user${at}`);
/** They are removed, and come back as others. */
const guests = ['guest1', 'guest2', 'guest3', 'guest4'];
const isManager = (name: string) => managers.includes(name);

type Copy = Mirror<typeof fields>;

interface Follower {
  name: string;
  client: PlantStore;
  copy: Copy;
}

export async function followUnderFaults(
  t: TestContext,
  { addresses, open, faults, backUp, replace }: Deployment,
  size: Size,
): Promise<void> {
  t.diagnostic(`PLANT_STORE_TEST_SEED=${firstSeed}`);
  const random = seededRandom(firstSeed);
  const below = (bound: number) => Math.floor(random() * bound);
  const pick = <T>(all: readonly T[]): T => all[below(all.length)] as T; // not empty
  const end = new AbortController();
  t.after(() => end.abort());
  const startMs = performance.now();
  const counts: Record<string, number> = {};
  const count = (what: string) => void (counts[what] = (counts[what] ?? 0) + 1);
  const receiptsMs: number[] = [];
  let changes = 0;
  const hasMade = (due: number) => changes >= due;
  let version = 0;
  /** From then on, a wait for a receipt can find that the database was replaced. */
  let isReplaced = false;
  let nextId = 1e6;

  const tokens = new Map<string, string>();
  const clientOf = (name: string) =>
    new PlantStore({
      url: pick(addresses),
      token: tokens.get(name) ?? '',
      timeoutMs: 120_000,
      maxRetries: 100,
    });
  const join = async (storage: Storage, name: string) => {
    const role = isManager(name) ? 'manager' : 'member';
    tokens.set(name, await persist(() => addToken(storage, name, { role, scopes })));
  };

  let followers: Follower[] = [];
  /** Adds a mirror. Every other one is slow. */
  const follow = async (name: string) => {
    const client = clientOf(name);
    const slownessMs = below(2) * below(maxSlownessMs);
    const onChange = (batch: object | undefined) => {
      count(batch === undefined ? 'resets' : 'batches');
      return pause(slownessMs);
    };
    followers.push({
      name,
      client,
      copy: await client.mirror({ fields, signal: end.signal, onChange }),
    });
  };

  /** Changes plants of their own, whose names count up: a mirror never shows an older one after the receipt. */
  const write = async (isDone: () => boolean) => {
    const name = pick(members);
    const client = clientOf(name);
    const versions = new Map<number, number>();
    const ids = Array.from({ length: maxPlants }, () => nextId++);
    while (!isDone()) {
      const slot = below(maxPlants);
      const id = ids[slot] ?? assert.fail();
      const now = ++version;
      let position: number | undefined;
      const options = {
        signal: end.signal,
        onResponse: (response: { position: number | undefined }) => ({ position } = response),
      };
      try {
        if (versions.has(id) && below(4) === 0) {
          await client.delete(id, options);
          versions.delete(id);
        } else if (versions.has(id)) {
          await client.update(id, { name: String(now) }, options);
          versions.set(id, now);
        } else {
          await client.create({ id, name: String(now) }, options);
          versions.set(id, now);
        }
      } catch (error) {
        // The state of the plant is unknown, or it belongs to another user.
        if (!(error instanceof PlantStoreError)) throw error;
        ids[slot] = nextId++;
        count(error.kind);
        continue;
      }
      changes++;
      if (below(changesPerReceipt) > 0) continue;
      // The response was lost, and the client has looked whether the change was made.
      if (position === undefined) {
        count('changes without a receipt');
        continue;
      }
      const readers = followers.filter((one) => isManager(one.name) || one.name === name);
      const reader = pick(readers);
      const sinceMs = performance.now();
      try {
        await reader.copy.until(position);
      } catch (error) {
        // The mirror had not noticed it yet.
        if (!isReplaced || !isRestored(error)) throw error;
        count('receipts of a replaced database');
        continue;
      }
      receiptsMs.push(performance.now() - sinceMs);
      const shown = reader.copy.plants.get(id)?.name;
      const least = versions.get(id);
      if (least === undefined) assert.equal(shown, undefined, `${id} was deleted`);
      // An operator can have given the plant to another user.
      else if (shown !== undefined || isManager(reader.name)) {
        assert.ok(Number(shown) >= least, `${shown} is not older than ${least}`);
      }
    }
  };

  /** The user and all that they have go, so their mirrors end. Another user then has the name. */
  const removeGuest = async (storage: Storage, name: string) => {
    const [gone, rest] = [true, false].map((is) =>
      followers.filter((one) => (one.name === name) === is),
    );
    await clientOf(name).create({ id: nextId++, name: 'of a guest' });
    const { user, store: number } = await persist(() => findUser(storage, store, name));
    const heir = await persist(() => findUser(storage, store, 'maria'));
    const { users } = storage;
    const guest = { store: number, user };
    do {
      while ((await persist(() => users.endAccess(guest, Date.now(), 10))) > 0);
      while ((await persist(() => users.movePlants(guest, heir.user, 10))) > 0);
    } while (!(await persist(() => users.remove(guest, Date.now()))));
    for (const { copy } of gone ?? []) await assert.rejects(copy.ended, { status: 401 });
    followers = rest ?? [];
    await join(storage, name);
    for (const _ of gone ?? []) await follow(name);
    count('removed users');
  };

  /** As an operator does it. */
  const changeRights = async (storage: Storage) => {
    if (below(rightsPerRemoval) === 0) return removeGuest(storage, pick(guests));
    const owner = pick(members);
    const user = pick([...members, ...guests]);
    const { store: number, ...found } = await persist(() => findUser(storage, store, owner));
    count('rights');
    if (owner !== user) {
      const share = { owner, user, access: 'read' } as const;
      await persist(async () => {
        if (below(2) === 0) await storage.shares.set(number, share, Date.now());
        else await storage.shares.end(number, [share]);
      });
      return;
    }
    const role = below(3) === 0 ? 'manager' : 'member';
    await persist(() => addToken(storage, owner, { role, scopes }));
    if (below(4) > 0) return;
    const heir = await persist(() => findUser(storage, store, 'maria'));
    const from = { store: number, user: found.user };
    await persist(() => storage.users.movePlants(from, heir.user, 10));
    count('moves');
  };

  /** Repeats the work of an operator until the database responds. */
  const persist = async <T>(work: () => Promise<T>): Promise<T> => {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        const kinds = ['storage-unavailable', 'outcome-unknown', 'overloaded'] as const;
        if (end.signal.aborted || !kinds.some((kind) => isProblem(error, kind))) throw error;
        count('repeated rights');
        await pause(rightsIntervalMs);
      }
    }
  };

  const all = Object.entries(faults);
  let turn = 0;
  const fail = async (isDone: () => boolean) => {
    for (let due = changes; !isDone();) {
      due += size.changesPerFault;
      while (!hasMade(due) && !isDone()) await pause(20);
      const [name = '', inject] = all[turn++ % all.length] ?? [];
      await inject?.();
      count(name);
    }
  };

  /** Makes changes until there are so many. At the end, each mirror is equal to the list of its user. */
  const phase = async (
    target: number,
    joining: readonly string[],
    meanwhile?: () => Promise<void>,
  ) => {
    await using storage = await open();
    const isDone = () => hasMade(target) || end.signal.aborted;
    for (const name of joining) await join(storage, name);
    for (const name of [...guests, ...guests]) await follow(name);
    while (followers.length < size.mirrors) {
      await follow(followers.length % 4 === 0 ? pick(managers) : pick(members));
    }
    const recorder = await FeedRecorder.start(clientOf('max'), end.signal);
    const disturb = async () => {
      while (!isDone()) {
        await changeRights(storage);
        await pause(rightsIntervalMs);
      }
    };
    const half = async () => {
      const due = (changes + target) / 2;
      while (!hasMade(due) && !isDone()) await pause(20);
      await meanwhile?.();
    };
    const writers = Array.from({ length: size.writers }, () => write(isDone));
    await Promise.all([disturb(), fail(isDone), half(), ...writers]);
    for (const { name, client, copy } of followers) {
      await copy.until();
      const listed = await Array.fromAsync(client.list({ fields }));
      const mirrored = [...copy.plants.values()].toSorted((a, b) => a.id - b.id);
      assert.deepEqual(mirrored, listed, name);
    }
    await recorder.check(storage, store);
  };

  const target = replace === undefined ? size.changes : size.changes / 2;
  await phase(target, [...managers, ...members, ...guests], backUp);
  if (replace !== undefined) {
    // The tokens of guests can be lost.
    const stay = followers.filter(({ name }) => !guests.includes(name));
    const restored = stay.map(({ copy }) => assert.rejects(copy.until(never), isRestored));
    isReplaced = true;
    await replace();
    count('replaced databases');
    followers = stay;
    await Promise.all([phase(size.changes, guests), ...restored]);
  }
  end.abort();
  await Promise.all(followers.map(({ copy }) => copy.ended));
  const waits = [0.5, 0.99, 1].map((part) => Math.round(quantile(receiptsMs, part)));
  const seconds = Math.round((performance.now() - startMs) / 1_000);
  const figures = { changes, seconds, mirrors: size.mirrors, receipts: receiptsMs.length, waits };
  t.diagnostic(JSON.stringify({ ...figures, ...counts }));
  assert.ok(receiptsMs.length > changes / changesPerReceipt / 2, 'most receipts were awaited');
}

function isRestored(error: unknown): boolean {
  return error instanceof PlantStoreError && error.reason === 'restored';
}
