/**
 * Users who write down what they send and what they are told, while all around them fails; and then
 * look whether it was true.
 */
import assert from 'node:assert/strict';
import { call } from './app.ts';

/** What somebody knows of a plant. */
type State = 'there' | 'gone' | 'unknown';

export interface Ledger {
  /** Comes before everything else. */
  begin(): Promise<void>;
  /** Sends requests, one after the other, for as long as `goesOn`. */
  work(user: number, goesOn: () => boolean): Promise<void>;
  /** Throws where the plants that are there now are not those that they must be. */
  check(): Promise<void>;
  /** How many answers there were, by status and kind of problem. */
  counts: Record<string, number>;
}

/** The store assigns ids above this one; users choose theirs below, each from a range of their own. */
const assignedAbove = 2 ** 52;
const ownIdsEach = 1_000_000_000;

/**
 * `addresses` are replicas or balancers of them, and each request goes to a random one. `token` is a
 * manager's, in a store that nobody else uses.
 */
export function ledger(addresses: readonly string[], token: string): Ledger {
  const states = new Map<string, State>();
  const counts: Record<string, number> = {};

  async function send(method: string, path: string, json?: unknown) {
    const address = addresses[Math.floor(Math.random() * addresses.length)] ?? '';
    let answer: Awaited<ReturnType<typeof call>> | undefined;
    try {
      answer = await call(address + path, method, { token, ...(json !== undefined && { json }) });
    } catch {
      count('no answer'); // the replica has died
      return undefined;
    }
    const { type } = (answer.status < 400 ? {} : (answer.json ?? {})) as { type?: string };
    const kind = type?.replace('urn:plant-store:problem:', '') ?? '';
    count(`${method} ${answer.status} ${kind}`.trimEnd());
    if (answer.status === 503) {
      assert.ok(answer.headers.get('retry-after'), 'it says when to come again');
    }
    return { ...answer, kind };
  }

  function count(what: string): void {
    counts[what] = (counts[what] ?? 0) + 1;
  }

  /** Undefined where nobody can tell: no answer, or one that says so. */
  const isDone = (answer: Awaited<ReturnType<typeof send>>, done: number) => {
    if (answer === undefined || answer.kind === 'outcome-unknown') return undefined;
    if (answer.status === done) return true;
    assert.equal(answer.status, 503, `${answer.text} is no answer to expect`);
    return false;
  };

  async function create(name: string, id: number | undefined): Promise<string | undefined> {
    states.set(name, 'unknown');
    const answer = await send('POST', '/plants', { name, id });
    const done = isDone(answer, 201);
    if (done === undefined) return undefined;
    states.set(name, done ? 'there' : 'gone');
    return done ? (answer?.headers.get('location') ?? undefined) : undefined;
  }

  async function remove(name: string, path: string): Promise<void> {
    states.set(name, 'unknown');
    const done = isDone(await send('DELETE', path), 204);
    if (done !== undefined) states.set(name, done ? 'gone' : 'there');
  }

  /** Of a plant that is there: nothing but its name, or that the storage cannot answer. */
  async function find(name: string, path: string): Promise<void> {
    const answer = await send('GET', `${path}?fields=name`);
    if (isDone(answer, 200) === true) assert.deepEqual(answer?.json, { name });
  }

  return {
    counts,
    async begin() {
      const path = await create('first', assignedAbove);
      assert.ok(path);
    },
    async work(user, goesOn) {
      for (let turn = 1; goesOn(); turn++) {
        const name = `${user} ${turn}`;
        const path = await create(name, turn % 3 === 0 ? ownIdsEach * user + turn : undefined);
        if (path === undefined) continue;
        await find(name, path);
        if (turn % 2 === 0) await remove(name, path);
      }
    },
    async check() {
      const answer = await call(`${addresses[0]}/plants?fields=name`, 'GET', { token });
      assert.equal(answer.status, 200, answer.text);
      const found = (answer.json as { name: string }[]).map(({ name }) => name);
      const all = new Set(found);
      assert.equal(all.size, found.length, 'nothing is there twice');
      const of = (state: State) =>
        [...states].flatMap(([name, its]) => (its === state ? name : []));
      assert.deepEqual(
        of('there').filter((name) => !all.has(name)),
        [],
        'nothing is lost',
      );
      assert.deepEqual(
        of('gone').filter((name) => all.has(name)),
        [],
        'nothing is there that is not',
      );
      assert.deepEqual(
        found.filter((name) => !states.has(name)),
        [],
        'nothing is there that was not sent',
      );
    },
  };
}
