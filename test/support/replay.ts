/**
 * Replays the log of a store from empty, and compares the result with the store. What is there after a change is what
 * the next change to the same plant found, or the plant itself.
 */
import assert from 'node:assert/strict';
import { operatorOf } from '../../src/access/access.ts';
import type { LoggedChange } from '../../src/log/change-log.ts';
import type { PlantCursor } from '../../src/plants/plant-storage.ts';
import type { Storage } from '../../src/storage.ts';

/** A plant with the name of its owner. */
export interface StoredPlant {
  name: string;
  tag: string;
  owner: string;
}

interface StoreState {
  /** By id. */
  plants: Map<number, StoredPlant>;
  /** The access, by the names of the owner and the other user. */
  shares: Map<string, string>;
  /** The ids of tokens that are not revoked. */
  tokens: Set<string>;
}

/** Asserts that the log of the store replays to its plants, shares and tokens. Returns the log. */
export async function assertReplays(storage: Storage, store: string): Promise<LoggedChange[]> {
  const changes = await wholeLog(storage, store);
  const present = await stateOf(storage, store);
  assert.deepEqual(replay(changes, present.plants), present);
  return changes;
}

export async function wholeLog(storage: Storage, store: string): Promise<LoggedChange[]> {
  const changes: LoggedChange[] = [];
  let after: number | undefined;
  do {
    const page = await storage.log.list({ store, after, limit: 100 });
    changes.push(...page.changes);
    after = page.next;
  } while (after !== undefined);
  return changes;
}

/** Throws if a change does not fit what was there before. */
function replay(
  changes: readonly LoggedChange[],
  present: ReadonlyMap<number, StoredPlant>,
): StoreState {
  const state: StoreState = { plants: new Map(), shares: new Map(), tokens: new Set() };
  const deleted = new Map<number, StoredPlant>();
  const followers = followersOf(changes);
  for (const change of changes) {
    const { plant: id, event, owner = '', name = '', tag = '' } = change;
    const where = JSON.stringify(change);
    if (id === undefined) {
      applyAccess(state, change);
      continue;
    }
    const before = state.plants.get(id);
    assert.deepEqual(before, change.name === undefined ? undefined : { name, tag, owner }, where);
    const next = followers.get(change);
    const after = next === undefined ? present.get(id) : beforeOf(next);
    if (before !== undefined && event === 'deleted') deleted.set(id, before);
    if (after === undefined) state.plants.delete(id);
    else state.plants.set(id, after);
    switch (event) {
      case 'created':
        assert.equal(after?.owner, change.user, where);
        break;
      case 'updated':
        assert.equal(after?.owner, owner, where);
        assert.notDeepEqual(after, before, where);
        break;
      case 'deleted':
        assert.equal(after, undefined, where);
        break;
      case 'restored':
        assert.deepEqual(after, deleted.get(id), where);
        break;
      case 'moved':
        assert.deepEqual({ ...after, owner }, before, where);
        assert.notEqual(after?.owner, owner, where);
        break;
      default:
        assert.fail(where);
    }
  }
  return state;
}

/** The next change to the same plant. */
function followersOf(changes: readonly LoggedChange[]): Map<LoggedChange, LoggedChange> {
  const latest = new Map<number, LoggedChange>();
  const followers = new Map<LoggedChange, LoggedChange>();
  for (const change of changes) {
    if (change.plant === undefined) continue;
    const last = latest.get(change.plant);
    if (last !== undefined) followers.set(last, change);
    latest.set(change.plant, change);
  }
  return followers;
}

function beforeOf({ name, tag = '', owner = '' }: LoggedChange): StoredPlant | undefined {
  return name === undefined ? undefined : { name, tag, owner };
}

function applyAccess(state: StoreState, change: LoggedChange): void {
  const { plants, shares, tokens } = state;
  const { event, owner = '', name = '', tag = '' } = change;
  const where = JSON.stringify(change);
  const share = `${owner} ${name}`;
  switch (event) {
    case 'shared':
      assert.equal(shares.has(share), false, where);
      shares.set(share, tag);
      break;
    case 'share-changed':
      assert.notEqual(shares.get(share) ?? tag, tag, where);
      shares.set(share, tag);
      break;
    case 'share-ended':
      assert.equal(shares.get(share), tag, where);
      shares.delete(share);
      break;
    case 'token-created':
      tokens.add(name);
      break;
    case 'token-revoked':
      assert.ok(tokens.delete(name), where);
      break;
    case 'user-created':
    case 'role-changed':
      assert.ok(owner !== '' && tag !== '', where);
      break;
    case 'user-removed':
      for (const plant of plants.values()) assert.notEqual(plant.owner, owner, where);
      break;
    default:
      assert.fail(where);
  }
}

async function stateOf(storage: Storage, storeName: string): Promise<StoreState> {
  const { store } = await storage.users.find(storeName);
  assert.ok(store !== undefined);
  const state: StoreState = { plants: new Map(), shares: new Map(), tokens: new Set() };
  const fields = ['id', 'name', 'tag', 'owner'] as const;
  for (let after: PlantCursor | undefined = 0; after !== undefined;) {
    const query = { after, limit: 1_000, fields };
    const page = await storage.plants.list(operatorOf(store, 'all'), query);
    const plants: (StoredPlant & { id: number })[] = JSON.parse(`[${page.json}]`);
    for (const { id, ...plant } of plants) state.plants.set(id, plant);
    after = page.next;
  }
  for (const { owner, user, access } of await storage.shares.list(store, undefined, 1_000)) {
    state.shares.set(`${owner} ${user}`, access);
  }
  const tokens = await storage.identity.listTokens({ store, limit: 1_000 });
  for (const { id, revokedAtMs } of tokens) if (revokedAtMs === undefined) state.tokens.add(id);
  return state;
}
