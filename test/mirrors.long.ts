/**
 * Mirrors follow a store over HTTP while everybody writes, shares come and go, roles change, users are removed, and the
 * processes, the database and the network fail. At the end, each mirror is what its user can list.
 */
import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import { PlantStore, PlantStoreError, type Mirror } from '../src/client/client.ts';
import { addToken } from './support/app.ts';
import { replicasOnPostgres, workersOnSqlite, type Deployment } from './support/fault-injection.ts';
import { without } from './support/programs.ts';
import { seededRandom } from './support/random.ts';
import { firstSeed } from './support/rounds.ts';
import { findUser } from './support/scene.ts';
import { Problem } from '../src/problem.ts';
import type { Storage } from '../src/storage.ts';
import { setTimeout as pause } from 'node:timers/promises';

/** Changes to wait for. */
const wanted = Number(process.env['PLANT_STORE_TEST_CHANGES'] ?? 800);
const writers = 32;
const mirrorsWanted = 50;
/** Of each writer. */
const maxPlants = 20;
/** One of so many changes waits for a mirror to have it. */
const changesPerReceipt = 40;
const fields = ['id', 'name', 'owner'] as const;
const scopes = ['plants:read', 'plants:write', 'shares:write'] as const;
const names = Array.from({ length: 8 }, (_, at) => `user${at}`);
const managers = ['maria', 'max'];

it(
  'SQLite: mirrors equal the lists of their users, while workers die',
  { skip: without('ps') },
  async (t) => follow(t, await workersOnSqlite(t, 3)),
);

it('PostgreSQL: mirrors equal the lists of their users, while replicas, backends and connections die', async (t) =>
  follow(t, await replicasOnPostgres(t, 3)));

type Copy = Mirror<typeof fields>;

interface Chance {
  below: (bound: number) => number;
  pick: <T>(all: readonly T[]) => T;
}

async function follow(t: TestContext, { addresses, open, faults }: Deployment): Promise<void> {
  t.diagnostic(`PLANT_STORE_TEST_SEED=${firstSeed}`);
  const random = seededRandom(firstSeed);
  const below = (bound: number) => Math.floor(random() * bound);
  const pick = <T>(all: readonly T[]): T => all[below(all.length)] as T; // not empty
  await using storage = await open();
  const end = new AbortController();
  const counts: Record<string, number> = {};
  const count = (what: string) => void (counts[what] = (counts[what] ?? 0) + 1);

  const tokens = new Map<string, string>();
  for (const name of [...names, ...managers]) {
    const role = managers.includes(name) ? 'manager' : 'member';
    tokens.set(name, await addToken(storage, name, { role, scopes }));
  }
  const clientOf = (name: string, maxRetries: number) =>
    new PlantStore({
      url: pick(addresses),
      token: tokens.get(name) ?? '',
      maxRetries,
      timeoutMs: 60_000,
    });

  const copies = await Promise.all(
    Array.from({ length: mirrorsWanted }, async (_, at) => {
      const name = at < 10 ? pick(managers) : pick(names);
      const client = clientOf(name, 100);
      const onChange = (changes: unknown) => count(changes ? 'batches' : 'resets');
      const copy = await client.mirror({ fields, signal: end.signal, onChange });
      return { name, client, copy };
    }),
  );
  const ofManagers = copies.filter(({ name }) => managers.includes(name));

  let changes = 0;
  const isDone = () => changes >= wanted;
  /** Changes plants of their own, whose names count up: a mirror never shows an older one after the receipt. */
  const write = async (writer: number) => {
    const client = clientOf(pick(names), 100);
    const versions = new Map<number, number>();
    const ids = Array.from(
      { length: maxPlants },
      (_, at) => (writer * maxPlants + at + 1) * 10_000,
    );
    for (let version = 1; !isDone(); version++) {
      const slot = below(maxPlants);
      const id = ids[slot] ?? assert.fail();
      const name = `${writer} ${version}`;
      let position: number | undefined;
      const onResponse = (response: { position: number | undefined }) => ({ position } = response);
      try {
        if (versions.has(id) && below(4) === 0) {
          await client.delete(id, { onResponse });
          versions.delete(id);
        } else if (versions.has(id)) {
          await client.update(id, { name }, { onResponse });
          versions.set(id, version);
        } else {
          await client.create({ id, name }, { onResponse });
          versions.set(id, version);
        }
        changes++;
      } catch (error) {
        // The state of the plant is unknown, or it belongs to another user.
        if (!(error instanceof PlantStoreError)) throw error;
        ids[slot] = id + 1;
        count(error.kind);
        continue;
      }
      if (position === undefined || below(changesPerReceipt) > 0) continue;
      const { copy } = pick(ofManagers);
      await copy.until(position);
      assertNotOlder(copy, id, writer, versions.get(id));
      count('receipts');
    }
  };

  const disturb = async () => {
    while (!isDone()) {
      await changeRights(storage, { below, pick }, count).catch((error: unknown) => {
        if (!(error instanceof Problem)) throw error; // the database fails for it too
        count('refused rights');
      });
      await pause(50);
    }
  };

  const fail = async () => {
    const all = Object.entries(faults);
    for (let turn = 0; !isDone(); turn++) {
      const due = (turn + 1) * Math.max(250, wanted / 40);
      while (changes < Math.min(due, wanted)) await pause(20);
      const [name = '', inject] = all[turn % all.length] ?? [];
      await inject?.();
      count(name);
    }
  };

  t.after(() => end.abort());
  await Promise.all([disturb(), fail(), ...Array.from({ length: writers }, (_, at) => write(at))]);
  for (const { name, client, copy } of copies) {
    await copy.until();
    const listed = await Array.fromAsync(client.list({ fields }));
    const mirrored = [...copy.plants.values()].toSorted((a, b) => a.id - b.id);
    assert.deepEqual(mirrored, listed, name);
  }
  t.diagnostic(`${changes} changes, ${JSON.stringify(counts)}`);
  end.abort();
  await Promise.all(copies.map(({ copy }) => copy.ended));
}

/** As an operator does it. */
async function changeRights(
  storage: Storage,
  { below, pick }: Chance,
  count: (what: string) => void,
): Promise<void> {
  const [one, other] = [pick(names), pick(names)];
  const { store, user } = await findUser(storage, 'main', one);
  count('rights');
  if (one !== other) {
    const share = { owner: one, user: other };
    if (below(2) === 0) await storage.shares.set(store, { ...share, access: 'read' }, Date.now());
    else await storage.shares.end(store, [share]);
    return;
  }
  await addToken(storage, one, { role: below(3) === 0 ? 'manager' : 'member', scopes });
  if (below(4) > 0) return;
  const heir = await findUser(storage, 'main', 'maria');
  await storage.users.movePlants({ store, user }, heir.user, 10);
  count('moves');
}

/** Only the operator moves the plants of a writer, and nobody else changes them. */
function assertNotOlder(copy: Copy, id: number, writer: number, version: number | undefined): void {
  const { name } = copy.plants.get(id) ?? {};
  if (version === undefined) return assert.equal(name, undefined, `${id} was deleted`);
  const [owner, shown] = (name ?? '').split(' ').map(Number);
  assert.equal(owner, writer);
  assert.ok((shown ?? 0) >= version, `${name} is not older than ${version}`);
}
