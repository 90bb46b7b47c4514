/**
 * Sends the same requests to services on different storages. Every answer must be as the document allows and as the
 * other services answer, and no acknowledged plant may be lost or shown to a user who has no access to it.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Archive } from '../../../src/copy/archive.ts';
import { wrongsOf } from './answers.ts';
import {
  decode,
  judge,
  operationOf,
  pathOf,
  scopesOf,
  wrongsOfOperation,
  type Verdict,
} from './document.ts';
import {
  keepTokens,
  people,
  senderOf,
  tokensFor,
  withIds,
  withTokens,
  type Tokens,
} from './people.ts';
import { presentTag } from './random-headers.ts';
import { bytesOf, isFramed, type Bytes, type Request } from './request.ts';
import type { Group, Manner } from './requests.ts';
import { steadyOf } from './steady.ts';
import { valuesOf, Wire, type Answer } from './wire.ts';

/** A service, and the rows of its database, to add tokens to. */
export interface Target {
  port: number;
  archive: Archive;
}

/** How many answers there were, by status. */
export type Counts = Record<string, number>;

let LAST = '';
let runs = 0;

/** A request must arrive within 30 s. A session takes longer on a busy machine. */
const maxSlowMs = 15_000;

/** Sends the groups one after the other, to stores of their own; throws at the first answer that is wrong. */
export async function withstand(
  targets: readonly Target[],
  groups: readonly Group[],
  counts: Counts,
): Promise<void> {
  const run = `${process.pid} ${++runs}`;
  const tokens = tokensFor();
  const storeOf = (store: string) => `${store} ${run}`;
  await Promise.all(targets.map(({ archive }) => keepTokens(archive, tokens, storeOf)));
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
  #wires: Wire[];
  /** Clients that have begun a request, or nothing, and come back to it at the end. */
  #slow: Wire[] = [];
  #idle: Wire[] = [];
  #slowSinceMs = 0;
  #head: { request: Request; answer: Answer } | undefined;

  constructor(targets: readonly Target[], tokens: Tokens, counts: Counts) {
    this.#targets = targets;
    this.#tokens = tokens;
    this.#counts = counts;
    this.#wires = this.#open();
  }

  async begin(): Promise<void> {
    this.#openSlowAndIdle();
    for (const { name } of people) {
      const secret = `secret-${randomBytes(6).toString('hex')}`;
      const body = `{"name":"${secret}"}`;
      await this.#exchange([{ ...this.#list(name, body), method: 'POST' }], { kind: 'whole' });
      this.#secrets.set(name, secret);
    }
  }

  async send({ requests, manner }: Group): Promise<void> {
    if (performance.now() - this.#slowSinceMs > maxSlowMs) this.#openSlowAndIdle();
    const all = requests.map((request) => this.#concrete(request));
    if (manner.kind === 'aborted') return this.#abort(all[0], manner);
    await this.#exchange(all.flatMap(withTwin), manner);
  }

  /** In the end, the stores have the acknowledged plants, over old and new connections. */
  async end(): Promise<void> {
    for (const { name, store, role } of people) {
      const [answer] = await this.#exchange([this.#list(name)], { kind: 'whole' });
      const ids = idsIn(answer);
      const expected = [...(this.#plants.get(store) ?? [])].toSorted((one, other) => one - other);
      if (role === 'manager' || store === 'elsewhere') assert.deepEqual(ids, expected);
    }
    const request = this.#list('maria');
    const whole = bytesOf(request);
    for (const [wires, written] of [
      [this.#slow, halfOf(whole)],
      [this.#idle, 0],
    ] as const) {
      for (const wire of wires) wire.write(whole.slice(written));
      const answers = await Promise.all(wires.map((wire) => wire.answer('GET')));
      this.#judge(
        request,
        answers.filter((answer) => answer !== undefined),
      );
    }
  }

  close(): void {
    for (const wire of [...this.#wires, ...this.#slow, ...this.#idle]) wire.close();
  }

  #open(): Wire[] {
    return this.#targets.map(({ port }) => new Wire(port));
  }

  #openSlowAndIdle(): void {
    for (const wire of [...this.#slow, ...this.#idle]) wire.close();
    [this.#slow, this.#idle] = [this.#open(), this.#open()];
    const whole = bytesOf(this.#list('maria'));
    for (const wire of this.#slow) wire.write(whole.slice(0, halfOf(whole)));
    this.#slowSinceMs = performance.now();
  }

  #list(name: string, body = ''): Request {
    const more: [string, string][] = [
      ['Content-Type', 'application/json'],
      ['Content-Length', String(body.length)],
    ];
    const auth: [string, string] = ['Authorization', ` Bearer ${this.#tokens[name]}`];
    const headers = [['Host', ' x'] as const, auth, ...(body === '' ? [] : more)];
    return { method: 'GET', target: '/plants?fields=id,name,tag', version: '1.1', headers, body };
  }

  #concrete(request: Request): Request {
    const target = withIds(request.target, this.#tokens);
    const headers = request.headers.map(
      ([name, value]) => [name, withTokens(value, this.#tokens)] as const,
    );
    const store = senderOf({ ...request, headers }, this.#tokens)?.person.store;
    const tag = this.#tags.get(`${store} ${pathOf(target)}`) ?? '"none"';
    const withTag = headers.map(
      ([name, value]) => [name, value.replaceAll(presentTag, tag)] as const,
    );
    return { ...request, target, headers: withTag };
  }

  /** Sends the requests over one connection. After one that ends it, the rest goes over the next. */
  async #exchange(requests: readonly Request[], manner: Manner): Promise<Answer[]> {
    const first: Answer[] = [];
    for (let rest = requests; rest.length > 0;) {
      const last = rest.findIndex((request) => !isFramed(request));
      const together = last === -1 ? rest : rest.slice(0, last + 1);
      const bytes = together.map(bytesOf).join('');
      try {
        await this.#write(bytes, manner);
        const { count, isOver } = await this.#answers(together, first);
        rest = rest.slice(count);
        if (!isOver && last === -1 && manner.kind !== 'half-closed') continue;
      } catch (cause) {
        const { message } = cause as Error; // nothing else is thrown here
        throw new Error(`${message}\nsent ${manner.kind}: ${shown(bytes)}`, { cause });
      }
      for (const wire of this.#wires) wire.close();
      this.#wires = this.#open();
    }
    return first;
  }

  async #write(bytes: Bytes, manner: Manner): Promise<void> {
    const cuts = manner.kind === 'pieces' ? manner.cuts : [];
    const places = cuts.map((cut) => Math.floor((cut * bytes.length) / 1_000));
    for (const wire of this.#wires)
      assert.ok(wire.isFresh, `it closed or spoke without being asked ${LAST}`);
    await Promise.all(this.#wires.map((wire) => wire.writeInPieces(bytes, places)));
    if (manner.kind === 'half-closed') for (const wire of this.#wires) wire.halfClose();
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
        assert.ok(
          isMalformed && verdictOf(request) !== true,
          `no answer to ${shown(bytesOf(request))}`,
        );
        return { count: answers.length === 0 ? turn : turn + 1, isOver: true };
      }
      this.#judge(request, answers);
      first.push(...answers.slice(0, 1));
      if (answers.every(({ isLast }) => !isLast)) continue;
      // The service may have taken a broken HEAD for another method, so that its response has a body.
      const mayHaveBody = request.method === 'HEAD' && answers.some(({ status }) => status >= 400);
      const ended = this.#wires.filter((_wire, at) => answers[at]?.isLast && !mayHaveBody);
      await Promise.all(ended.map((wire) => wire.nothingMore()));
      return { count: turn + 1, isOver: true };
    }
    return { count: requests.length, isOver: false };
  }

  /** Holds the answers of all services to one request to the document and to each other. */
  #judge(request: Request, answers: readonly Answer[]): void {
    LAST = shown(bytesOf(request)) + answers.map(shownAnswer).join();
    const match = operationOf(request);
    const verdict = verdictOf(request);
    for (const answer of answers) {
      this.#counts[answer.status] = (this.#counts[answer.status] ?? 0) + 1;
      this.#check(request, answer, [
        ...(match === undefined ? [] : wrongsOfOperation(request, match, answer, verdict)),
        ...this.#wrongsOfAccess(request, answer, verdict),
      ]);
    }
    const [answer, ...others] = answers;
    if (answer === undefined) return;
    const steady = steadyOf(request, answer);
    const isRefused = answers.every(({ status }) => status >= 400);
    if (isRefused && !isFramed(request)) return; // for which of its faults depends on time
    for (const other of others) mustBeEqual(steadyOf(request, other), steady, request);
    this.#compareWithHead(request, answer, verdict);
    this.#learn(request, answer);
  }

  #wrongsOfAccess(request: Request, { status }: Answer, verdict: Verdict): string[] {
    const match = operationOf(request);
    if (match === undefined || match.operation.security?.length === 0) return [];
    const sender = senderOf(request, this.#tokens);
    if (sender === undefined) {
      const isRight = verdict === true ? status === 401 : status >= 400;
      return isRight ? [] : [`${status} without a valid token`];
    }
    if (sender.isRevocable && status === 401) return [];
    const wanted = scopesOf(match.operation);
    const isAllowed = wanted.length === 0 || wanted.some((scope) => sender.scopes.includes(scope));
    if (status === 401) return ['401 with a valid token'];
    if (isAllowed) return [];
    const isRight = verdict === true ? status === 403 : status >= 400;
    return isRight ? [] : [`${status} without the scope ${wanted.join()}`];
  }

  #check(request: Request, answer: Answer, more: readonly string[] = []): void {
    const [id = ''] = valuesOf(answer, 'x-request-id');
    const secrets = this.#secretsFrom(request);
    const wrongs = [...wrongsOf(answer, { method: request.method, secrets }), ...more];
    if (this.#requestIds.has(id)) wrongs.push(`${id} names two answers`);
    this.#requestIds.add(id);
    if (wrongs.length === 0) return;
    assert.fail(`${shown(bytesOf(request))}\n${shownAnswer(answer)}\n${wrongs.join('\n')}`);
  }

  /** HEAD has GET's headers (RFC 9110, section 9.3.2). */
  #compareWithHead(request: Request, answer: Answer, verdict: Verdict): void {
    const head = this.#head;
    if (head?.request.target === request.target && verdict === true) {
      const [one, other] = [steadyOf(head.request, head.answer), steadyOf(request, answer)];
      mustBeEqual([one.status, one.headers], [other.status, other.headers], request);
    }
    this.#head = request.method === 'HEAD' ? { request, answer } : undefined;
  }

  /** What the answer acknowledges, and the entity tag of the plant. */
  #learn(request: Request, answer: Answer): void {
    const store = senderOf(request, this.#tokens)?.person.store;
    if (store === undefined || answer.status >= 300) return;
    const [location] = valuesOf(answer, 'location');
    const path = location ?? decode(pathOf(request.target)) ?? '';
    const [tag] = valuesOf(answer, 'etag');
    if (tag !== undefined) this.#tags.set(`${store} ${path.replace('/restore', '')}`, tag);
    const [, number = '', action] = /^\/plants\/(\d+)(\/restore)?$/.exec(path) ?? [];
    if (number === '') return;
    const plants = this.#plants.get(store) ?? new Set();
    this.#plants.set(store, plants);
    if (request.method === 'DELETE' && action === undefined) plants.delete(Number(number));
    if (request.method === 'POST') plants.add(Number(number));
  }

  /** A request that is cut off, or whose client resets the connection, must have no effect. */
  async #abort(
    request: Request | undefined,
    { at, isReset }: Manner & { kind: 'aborted' },
  ): Promise<void> {
    if (request === undefined) return;
    const bytes = bytesOf(request);
    const end = Math.max(1, Math.floor((at * bytes.length) / 1_000));
    for (const wire of this.#open()) {
      wire.write(bytes.slice(0, end));
      if (isReset) {
        await wire.abort();
        continue;
      }
      wire.halfClose();
      const answer = await wire.answer(request.method);
      if (answer !== undefined) this.#check(request, answer);
      if (request.method !== 'HEAD' && answer !== undefined) await wire.nothingMore();
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

function verdictOf(request: Request): Verdict {
  const match = operationOf(request);
  return match && judge(request, match);
}

/** With every HEAD goes the GET that it must agree with. */
function withTwin(request: Request): Request[] {
  return request.method === 'HEAD' ? [request, { ...request, method: 'GET' }] : [request];
}

function halfOf(bytes: Bytes): number {
  return Math.floor(bytes.length / 2);
}

function idsIn(answer: Answer | undefined): number[] {
  assert.equal(answer?.status, 200);
  const plants: { id: number }[] = JSON.parse(answer.body);
  return plants.map(({ id }) => id);
}

function shown(bytes: Bytes): string {
  return JSON.stringify(bytes)
    .replaceAll(/(.{4,8}?)\1{20,}/g, '$1...')
    .slice(0, 3_000);
}

function shownAnswer({ status, headers, body }: Answer): string {
  return `${status} ${JSON.stringify(headers)} ${body.slice(0, 1_000)}`;
}

/** Says what it is about only if they differ: this is asked a million times. */
function mustBeEqual(actual: unknown, expected: unknown, request: Request): void {
  if (!isDeepStrictEqual(actual, expected)) {
    assert.deepEqual(actual, expected, shown(bytesOf(request)));
  }
}
