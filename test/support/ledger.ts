/**
 * Users who record their requests and responses while parts of the service fail, and then check that the store
 * is consistent with them.
 */
import assert from 'node:assert/strict';
import type { ShareAccess } from '../../src/access/access.ts';
import { call, type Answer } from './app.ts';

interface Shares {
  given: { user: string; access: ShareAccess }[];
}

/** The expected state of a plant. */
type State = 'present' | 'absent' | 'unknown';

export interface Ledger {
  /** Call it first. */
  begin(): Promise<void>;
  /** Sends one request at a time for as long as `isRunning`. */
  work(user: number, isRunning: () => boolean): Promise<void>;
  /** Throws if a plant or share is missing or unexpected. */
  check(): Promise<void>;
  /** Responses by status and kind of problem. */
  counts: Record<string, number>;
}

/** The store assigns ids above this one. Each user chooses ids below it, from a range of its own. */
const assignedAbove = 2 ** 52;
const idsPerUser = 1_000_000_000;

/**
 * Each request goes to a random one of `addresses`, which are replicas or balancers. `token` is a manager's, in
 * a store that is not used otherwise. With `isSharing`, the users also share, which takes the scope `shares:write`.
 */
export function ledger(
  addresses: readonly string[],
  token: string,
  { isSharing } = { isSharing: false },
): Ledger {
  const shares = shareLedger();
  const states = new Map<string, State>();
  const counts: Record<string, number> = {};

  async function send(method: string, path: string, json?: unknown) {
    const address = addresses[Math.floor(Math.random() * addresses.length)] ?? '';
    let response: Answer;
    try {
      response = await call(address + path, method, { token, ...(json !== undefined && { json }) });
    } catch {
      count('no response'); // the replica has died
      return undefined;
    }
    const { type } = (response.status < 400 ? {} : (response.json ?? {})) as { type?: string };
    const kind = type?.replace('/problems/', '') ?? '';
    count(`${method} ${response.status} ${kind}`.trimEnd());
    if (response.status === 503) {
      assert.ok(response.headers.get('retry-after'), 'a 503 has a Retry-After header');
    }
    return { ...response, kind };
  }

  function count(result: string): void {
    counts[result] = (counts[result] ?? 0) + 1;
  }

  /** Undefined if the outcome is unknown. */
  const isDone = (response: Awaited<ReturnType<typeof send>>, status: number) => {
    if (response === undefined || response.kind === 'outcome-unknown') return undefined;
    if (response.status === status) return true;
    assert.equal(response.status, 503, `unexpected response: ${response.text}`);
    return false;
  };

  async function create(name: string, id: number | undefined): Promise<string | undefined> {
    states.set(name, 'unknown');
    const response = await send('POST', '/plants', { name, id });
    const done = isDone(response, 201);
    if (done === undefined) return undefined;
    states.set(name, done ? 'present' : 'absent');
    return done ? (response?.headers.get('location') ?? undefined) : undefined;
  }

  async function remove(name: string, path: string): Promise<void> {
    states.set(name, 'unknown');
    const done = isDone(await send('DELETE', path), 204);
    if (done !== undefined) states.set(name, done ? 'absent' : 'present');
  }

  /** Reads a plant that must be present. A 503 is allowed. */
  async function find(name: string, path: string): Promise<void> {
    const response = await send('GET', `${path}?fields=name`);
    if (isDone(response, 200) === true) assert.deepEqual(response?.json, { name });
  }

  return {
    counts,
    async begin() {
      const path = await create('first', assignedAbove);
      assert.ok(path);
    },
    async work(user, isRunning) {
      for (let turn = 1; isRunning(); turn++) {
        const name = `${user} ${turn}`;
        const path = await create(name, turn % 3 === 0 ? idsPerUser * user + turn : undefined);
        if (isSharing) await shares.change(user, turn, send);
        if (path === undefined) continue;
        await find(name, path);
        if (turn % 2 === 0) await remove(name, path);
      }
    },
    async check() {
      const response = await call(`${addresses[0]}/plants?fields=name`, 'GET', { token });
      assert.equal(response.status, 200, response.text);
      const found = (response.json as { name: string }[]).map(({ name }) => name);
      const all = new Set(found);
      assert.equal(all.size, found.length, 'no plant is listed twice');
      const namesIn = (expected: State) =>
        [...states].flatMap(([name, state]) => (state === expected ? name : []));
      assert.deepEqual(
        namesIn('present').filter((name) => !all.has(name)),
        [],
        'no acknowledged create is lost',
      );
      assert.deepEqual(
        namesIn('absent').filter((name) => all.has(name)),
        [],
        'no deleted or failed plant is listed',
      );
      assert.deepEqual(
        found.filter((name) => !states.has(name)),
        [],
        'no plant is listed that was not sent',
      );
      if (!isSharing) return;
      const { json } = await call(`${addresses[0]}/shares`, 'GET', { token });
      shares.check((json as Shares).given);
    },
  };
}

type ShareState = ShareAccess | 'none' | 'unknown';

/** `kind` is that of the problem; empty for a success. */
type Response = Pick<Answer, 'status' | 'text'> & { kind: string };

/** A user who shares and ends shares. */
interface ShareLedger {
  /** Makes the next change of one of this client's shares. `send` resolves to undefined if there is no response. */
  change(client: number, turn: number, send: Send): Promise<void>;
  /** `given` is what GET /shares returns. Throws if it is missing a share or has one that ended. */
  check(given: Shares['given']): void;
}

type Send = (method: string, path: string, json?: object) => Promise<Response | undefined>;

const changes = ['read', 'write', 'none', 'none', 'write', 'none', 'read'] as const;
/** The receiver of the shares changes after this many turns. */
const turnsPerReceiver = 10;

function shareLedger(): ShareLedger {
  const states = new Map<string, ShareState>();
  return {
    async change(client, turn, send) {
      const user = `friend ${client} ${Math.floor(turn / turnsPerReceiver)}`;
      const before = states.get(user) ?? 'none';
      if (before === 'unknown') return; // that change can still take effect
      const access = changes[turn % changes.length] ?? 'none';
      states.set(user, 'unknown');
      const path = `/shares/${encodeURIComponent(user)}`;
      const isEnd = access === 'none';
      const response = await (isEnd ? send('DELETE', path) : send('PUT', path, { access }));
      if (response === undefined || response.kind === 'outcome-unknown') return;
      const { status, text } = response;
      states.set(user, status === 503 ? before : access);
      const [absent, present] = isEnd ? [404, 204] : [201, 200];
      if (status !== 503) assert.equal(status, before === 'none' ? absent : present, text);
    },
    check(given) {
      const found = new Map(given.map(({ user, access }) => [user, access]));
      for (const [user, expected] of states) {
        const state = found.get(user) ?? 'none';
        if (expected !== 'unknown') assert.equal(state, expected, `the share with ${user}`);
        found.delete(user);
      }
      assert.deepEqual([...found.keys()], [], 'no share was not sent');
      const known = [...states.values()].filter((state) => state !== 'unknown');
      assert.ok(known.length > 0, 'some changes of shares were acknowledged');
    },
  };
}
