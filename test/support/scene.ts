/**
 * A store of its own for each test, with users and plants, in a database that the tests of a suite share: opening one
 * for each test would take most of their time.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import {
  operatorOf,
  scopes,
  type Caller,
  type Grant,
  type Identity,
  type ReadAccess,
  type Role,
  type ShareAccess,
} from '../../src/access/access.ts';
import type { NewToken } from '../../src/access/identity-storage.ts';
import type { FoundUser } from '../../src/access/user-storage.ts';
import { plantFields } from '../../src/plants/fields.ts';
import type { Plant } from '../../src/plants/plant.ts';
import type { PlantQuery } from '../../src/plants/plant-storage.ts';
import type { Storage, WriteSettings } from '../../src/storage.ts';
import { shared } from './shared.ts';
import { storageOf, testDatabase, type StorageName, type TestDatabase } from './storages.ts';
import { identify } from './tokens.ts';

type Options = Partial<Omit<NewToken, 'user'>>;

export interface Scene {
  storage: Storage;
  /** A second opening of the database, as another process has it. */
  other: Storage;
  database: TestDatabase;
  /** The name of a store that no other test uses. */
  store: string;
  /** Creates a token, and what identifies its user in either opening. */
  token: (user: string, options?: Options) => Promise<SceneToken>;
  grant: (user: string, options?: Options) => Promise<Grant>;
  caller: (user: string, role?: Role, store?: string) => Promise<Caller>;
  /** One caller for each name. */
  callers: <Names extends readonly string[]>(
    ...names: Names
  ) => Promise<{ [At in keyof Names]: Caller }>;
  share: (owner: string, user: string, access: ShareAccess, sinceMs?: number) => Promise<boolean>;
}

export interface SceneToken {
  token: string;
  id: string;
  /** The grant now, as a service finds it for each request. */
  grant: (at?: Storage) => Promise<Grant>;
  caller: (at?: Storage) => Promise<Caller>;
}

let stores = 0;

/** For a suite: its tests share the database. */
export function sharedScene(engine: StorageName): () => Scene {
  const opened = shared(async (t) => openTwice(t, engine));
  return () => sceneIn(opened());
}

/** For a test that needs the database for itself. */
export async function ownScene(t: TestContext, engine = storageOf(t)): Promise<Scene> {
  return sceneIn(await openTwice(t, engine));
}

type Opened = Pick<Scene, 'database' | 'storage' | 'other'>;

async function openTwice(t: Pick<TestContext, 'after'>, engine: StorageName): Promise<Opened> {
  const database = await testDatabase(t, engine);
  return { database, storage: await openAgain(t, database), other: await openAgain(t, database) };
}

/** Opens the database until the end of the test. */
export async function openAgain(
  t: Pick<TestContext, 'after'>,
  database: TestDatabase,
  settings?: WriteSettings,
): Promise<Storage> {
  const storage = await database.open(settings);
  t.after(() => storage[Symbol.asyncDispose]());
  return storage;
}

function sceneIn(opened: Opened): Scene {
  const { storage } = opened;
  const store = `store ${++stores}`;
  const token: Scene['token'] = async (user, options = {}) => {
    const wanted = { store, scopes, label: '', createdAtMs: 1, ...options, user };
    const created = await storage.identity.createToken(wanted);
    const grant = async (at = storage) => {
      const found = await identify(at, created.token);
      assert.ok(found);
      return found;
    };
    return { ...created, grant, caller: async (at) => (await grant(at)).caller };
  };
  const grant: Scene['grant'] = async (user, options) => (await token(user, options)).grant();
  const caller: Scene['caller'] = async (user, role, of = store) =>
    (await grant(user, { role, store: of })).caller;
  return {
    ...opened,
    store,
    token,
    grant,
    caller,
    async callers<Names extends readonly string[]>(...names: Names) {
      const all: Caller[] = [];
      for (const name of names) all.push(await caller(name));
      return all as { [At in keyof Names]: Caller }; // one for each
    },
    async share(owner, user, access, sinceMs = 0) {
      const { store: number = 0 } = await storage.users.find(store);
      return storage.shares.set(number, { owner, user, access }, sinceMs);
    },
  };
}

/** A page of plants. */
export async function listOf(
  storage: Storage,
  who: ReadAccess,
  query: Partial<PlantQuery> = {},
): Promise<Plant[]> {
  const page = await storage.plants.list(who, {
    after: 0,
    limit: 1_000,
    fields: plantFields,
    ...query,
  });
  const plants: Plant[] = JSON.parse(`[${page.json}]`);
  if (page.next !== undefined) assert.equal(page.next, plants.at(-1)?.id);
  return plants;
}

export async function idsOf(
  storage: Storage,
  who: ReadAccess,
  query: Partial<PlantQuery> = {},
): Promise<number[]> {
  return (await listOf(storage, who, query)).map(({ id }) => id);
}

/** The ids of all plants that a user owns. */
export async function idsOwnedBy(storage: Storage, { store, user }: Identity): Promise<number[]> {
  return idsOf(storage, operatorOf(store, [user]), { limit: 100_000 });
}

/** A user who exists, or was removed. */
export async function findUser(storage: Storage, store: string, name: string): Promise<FoundUser> {
  const { user } = await storage.users.find(store, name);
  assert.ok(user);
  return user;
}

export async function rejectsWith(kind: string, promise: Promise<unknown>): Promise<void> {
  await assert.rejects(promise, { name: 'Problem', kind });
}
