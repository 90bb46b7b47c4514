/**
 * Sends the same requests to services on different storages. Every answer must be as the document allows and as the
 * other services answer, and no acknowledged plant may be lost or shown to a user who has no access to it.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { wrongsOf } from './answers.ts';
import { decode, judge, operationOf, pathOf, scopesOf, wrongsOfOperation } from './document.ts';
import { presentTag } from './headers.ts';
import {
  keepTokens,
  people,
  revocable,
  senderOf,
  tokensFor,
  withIds,
  withTokens,
  type Tokens,
} from './people.ts';
import { bytesOf, isFramed, type Bytes, type Request } from './request.ts';
import type { Group, Manner } from './requests.ts';
import { steadyOf } from './steady.ts';
import { someMoment } from './values.ts';
import { isLast, valuesOf, Wire, type Answer } from './wire.ts';

/** A service, and the address of its database, to add tokens to. */
export interface Target {
  port: number;
  database: string;
}

/** How many answers there were, by status. */
export type Counts = Record<string, number>;

const whole: Manner = { kind: 'whole' };
const groupsOfMoment = 30;
const largestId = 9_007_199_254_740_991;

/** Sends the groups one after the other, to stores of their own; throws at the first answer that is wrong. */
export async function withstand(
  targets: readonly Target[],
  groups: readonly Group[],
  counts: Counts,
): Promise<void> {
  const tokens = tokensFor();
  await Promise.all(targets.map(({ database }) => keepTokens(database, tokens)));
  const session = new Session(targets, tokens, counts);
  try {
    await session.begin();
    for (const group of groups) await session.send(group);
    await session.end();
  } finally {
    session.close();
  }
}

class Session {
  readonly #targets: readonly Target[];
  readonly #tokens: Tokens;
  readonly #counts: Counts;
  readonly #requestIds = new Set<string>();
  /** The ids of the plants of each store, as acknowledged. */
  readonly #plants = new Map<string, Set<number>>();
  /** The last entity tag of each plant, by store and path. */
  readonly #tags = new Map<string, string>();
  /** The name of a plant of each person. */
  readonly #secrets = new Map<string, string>();
  /** All changes of earlier groups were before it. It stays for some groups, so that a return to it finds changes. */
  #moment = '';
  #sentGroups = 0;
  #wires: Wire[];

  constructor(targets: readonly Target[], tokens: Tokens, counts: Counts) {
    this.#targets = targets;
    this.#tokens = tokens;
    this.#counts = counts;
    this.#wires = this.#open();
  }

  async begin(): Promise<void> {
    for (const { name } of people) {
      const secret = `secret-${randomBytes(6).toString('hex')}`;
      await this.#exchange([this.#requestOf(name, 'POST', '/plants', `{"name":"${secret}"}`)]);
      this.#secrets.set(name, secret);
    }
  }

  async send({ requests, manner }: Group): Promise<void> {
    if (this.#sentGroups++ % groupsOfMoment === 0) {
      const beforeMs = Date.now();
      while (Date.now() <= beforeMs) await setImmediate();
      this.#moment = new Date().toISOString();
    }
    const all = requests.map((request) => this.#concrete(request));
    if (manner.kind === 'aborted') return this.#abort(all[0], manner.at);
    await this.#exchange(all, manner);
  }

  /** In the end, the stores have the acknowledged plants. */
  async end(): Promise<void> {
    await this.#useLargestId();
    for (const { name, store, role } of people) {
      const request = this.#requestOf(name, 'GET', '/plants?fields=id,name,tag');
      const [answer] = await this.#exchange([request]);
      const plants: { id: number }[] = JSON.parse(answer?.body ?? '');
      const ids = plants.map(({ id }) => id);
      const expected = [...(this.#plants.get(store) ?? [])].toSorted((one, other) => one - other);
      if (role === 'manager' || store === 'elsewhere') assert.deepEqual(ids, expected);
    }
  }

  /** Not before the end: each service assigns random ids after it. */
  async #useLargestId(): Promise<void> {
    const answers = await this.#exchange([
      this.#requestOf('alice', 'POST', '/plants', `{"name":"last","id":${largestId}}`),
      this.#requestOf('alice', 'GET', `/plants?after=${largestId - 1}&fields=id`),
      this.#requestOf('alice', 'GET', `/plants/${largestId}`),
      this.#requestOf('alice', 'DELETE', `/plants/${largestId}`),
    ]);
    assert.deepEqual(
      answers.map(({ status }) => status),
      [201, 200, 200, 204],
    );
    assert.equal(answers[1]?.body, `[{"id":${largestId}}]`);
  }

  close(): void {
    for (const wire of this.#wires) wire.close();
  }

  #open(): Wire[] {
    return this.#targets.map(({ port }) => new Wire(port));
  }

  #requestOf(name: string, method: string, target: string, body = ''): Request {
    const ofBody = [
      ['Content-Type', ' application/json'],
      ['Content-Length', String(body.length)],
    ] as const;
    const auth = ['Authorization', ` Bearer ${this.#tokens[name]}`] as const;
    const headers = [['Host', ' x'] as const, auth, ...(body === '' ? [] : ofBody)];
    return { method, target, version: '1.1', headers, body };
  }

  #concrete(request: Request): Request {
    const colon = /:/g;
    const target = withIds(request.target, this.#tokens).replaceAll(
      someMoment.replace(colon, '%3a'),
      this.#moment.replace(colon, '%3a'),
    );
    const body = request.body.replaceAll(someMoment, this.#moment);
    const headers = request.headers.map(
      ([name, value]) => [name, withTokens(value, this.#tokens)] as const,
    );
    const store = senderOf({ ...request, headers }, this.#tokens)?.person.store;
    const tag = this.#tags.get(`${store} ${pathOf(target)}`) ?? '"none"';
    const withTag = headers.map(
      ([name, value]) => [name, value.replaceAll(presentTag, tag)] as const,
    );
    return { ...request, target, headers: withTag, body };
  }

  /** Sends the requests over one connection. After one that ends it, the rest goes over the next. */
  async #exchange(requests: readonly Request[], manner = whole): Promise<Answer[]> {
    const first: Answer[] = [];
    for (let rest = requests; rest.length > 0;) {
      const last = rest.findIndex((request) => !isFramed(request));
      const together = last === -1 ? rest : rest.slice(0, last + 1);
      const bytes = together.map(bytesOf).join('');
      try {
        for (const wire of this.#wires)
          assert.ok(wire.isFresh, 'closed or spoke without a request');
        const cuts = manner.kind === 'pieces' ? manner.cuts : [];
        await Promise.all(this.#wires.map((wire) => wire.write(bytes, cuts)));
        const { count, isOver } = await this.#answers(together, first);
        rest = rest.slice(count);
        if (!isOver && last === -1) continue;
      } catch (cause) {
        const { message } = cause as Error; // nothing else is thrown here
        throw new Error(`${message}\nsent ${manner.kind}: ${shown(bytes)}`, { cause });
      }
      this.close();
      this.#wires = this.#open();
    }
    return first;
  }

  /**
   * Reads answers until one ends the connection: requests of a connection happen in their order (RFC 9112, section
   * 9.3.2). Only a malformed request can go without an answer of its own, if it follows others.
   */
  async #answers(requests: readonly Request[], first: Answer[]) {
    for (const [turn, request] of requests.entries()) {
      const all = await Promise.all(this.#wires.map((wire) => wire.answer(request.method)));
      const answers = all.filter((answer) => answer !== undefined);
      if (answers.length < all.length) {
        const isMalformed = turn > 0 && answers.every(({ status }) => status >= 400);
        assert.ok(isMalformed && verdictOf(request) !== true, `no answer to request ${turn}`);
        return { count: answers.length === 0 ? turn : turn + 1, isOver: true };
      }
      this.#judge(request, answers);
      first.push(...answers.slice(0, 1));
      if (!answers.some(isLast)) continue;
      // The service may have taken a broken HEAD for another method, so that its response has a body.
      const mayHaveBody = request.method === 'HEAD' && answers.some(({ status }) => status >= 400);
      const ended = this.#wires.filter((_wire, at) => isLast(all[at]) && !mayHaveBody);
      await Promise.all(ended.map((wire) => wire.nothingMore()));
      return { count: turn + 1, isOver: true };
    }
    return { count: requests.length, isOver: false };
  }

  /** Holds the answers of all services to one request to the document and to each other. */
  #judge(request: Request, answers: readonly Answer[]): void {
    for (const answer of answers) {
      this.#counts[answer.status] = (this.#counts[answer.status] ?? 0) + 1;
      this.#check(request, answer, this.#wrongsOfMatch(request, answer));
    }
    const [answer, ...others] = answers;
    if (answer === undefined) return;
    const steady = steadyOf(request, answer);
    const isRefused = answers.every(({ status }) => status >= 400);
    if (isRefused && !isFramed(request)) return; // for which of its faults depends on time
    for (const other of others) mustBeEqual(steadyOf(request, other), steady, request);
    this.#learn(request, answer);
  }

  #check(request: Request, answer: Answer, more: readonly string[] = []): void {
    const secrets = this.#secretsFrom(request);
    const wrongs = [...wrongsOf(answer, { method: request.method, secrets }), ...more];
    const [id = ''] = valuesOf(answer, 'x-request-id');
    if (this.#requestIds.has(id)) wrongs.push(`${id} names two answers`);
    this.#requestIds.add(id);
    if (wrongs.length === 0) return;
    const { status, headers, body } = answer;
    const shownAnswer = `${status} ${JSON.stringify(headers)} ${body.slice(0, 1_000)}`;
    assert.fail(`${shown(bytesOf(request))}\n${shownAnswer}\n${wrongs.join('\n')}`);
  }

  #wrongsOfMatch(request: Request, answer: Answer): string[] {
    const match = operationOf(request);
    if (match === undefined) return [];
    const { operation } = match;
    const verdict = judge(request, match);
    const wrongs = wrongsOfOperation(request, match, answer, verdict);
    const sender = senderOf(request, this.#tokens);
    const mustBe = (status: number, why: string) => {
      const isRight = verdict === true ? answer.status === status : answer.status >= 400;
      if (!isRight) wrongs.push(`${answer.status} ${why}`);
    };
    if (operation.security?.length === 0) return wrongs;
    if (sender === undefined) mustBe(401, 'without a valid token');
    else if (answer.status === 401) {
      if (!revocable.includes(sender.name)) wrongs.push('401 with a valid token');
    } else {
      const wanted = scopesOf(operation);
      const scopes: readonly string[] = sender.scopes;
      const isAllowed = wanted.length === 0 || wanted.some((one) => scopes.includes(one));
      if (!isAllowed) mustBe(403, `without the scope ${wanted.join()}`);
    }
    return wrongs;
  }

  /** What the answer acknowledges, and the entity tag of the plant. */
  #learn(request: Request, answer: Answer): void {
    const store = senderOf(request, this.#tokens)?.person.store;
    if (store === undefined || answer.status >= 300) return;
    const [location] = valuesOf(answer, 'location');
    const path = location ?? decode(pathOf(request.target)) ?? '';
    const plants = this.#plants.get(store) ?? new Set();
    this.#plants.set(store, plants);
    if (request.method === 'POST' && path === '/restore') {
      const { plants: changed }: { plants: { id: number; outcome: string }[] } = JSON.parse(
        answer.body,
      );
      for (const { id, outcome } of changed) {
        if (outcome === 'deleted') plants.delete(id);
        if (outcome === 'restored') plants.add(id);
      }
    }
    const [tag] = valuesOf(answer, 'etag');
    if (tag !== undefined) this.#tags.set(`${store} ${path.replace('/restore', '')}`, tag);
    const [, number = '', action] = /^\/plants\/(\d+)(\/restore)?$/.exec(path) ?? [];
    if (number === '') return;
    if (request.method === 'DELETE' && action === undefined) plants.delete(Number(number));
    if (request.method === 'POST') plants.add(Number(number));
  }

  /** A request that is cut off must have no effect. */
  async #abort(request: Request | undefined, at: number): Promise<void> {
    if (request === undefined) return;
    const bytes = bytesOf(request);
    for (const wire of this.#open()) {
      await wire.write(bytes.slice(0, Math.max(1, Math.floor((at * bytes.length) / 1_000))));
      wire.halfClose();
      const answer = await wire.answer(request.method);
      if (answer !== undefined) this.#check(request, answer);
      wire.close();
    }
  }

  #secretsFrom(request: Request): string[] {
    const person = senderOf(request, this.#tokens)?.person;
    return people.flatMap(({ name, store }) => {
      const isSeen =
        person?.store === store &&
        (name !== 'carol' || person.name === 'carol' || person.role === 'manager');
      return isSeen ? [] : (this.#secrets.get(name) ?? []);
    });
  }
}

function verdictOf(request: Request) {
  const match = operationOf(request);
  return match && judge(request, match);
}

function shown(bytes: Bytes): string {
  return JSON.stringify(bytes)
    .replaceAll(/(.{4,8}?)\1{20,}/g, '$1...')
    .slice(0, 3_000);
}

/** Says what it is about only if they differ: this is asked a million times. */
function mustBeEqual(actual: unknown, expected: unknown, request: Request): void {
  if (!isDeepStrictEqual(actual, expected)) {
    assert.deepEqual(actual, expected, shown(bytesOf(request)));
  }
}
