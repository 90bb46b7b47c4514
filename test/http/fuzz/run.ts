/**
 * Sends the same requests to services on different storages, and holds every answer to the oracle and to the
 * answers of the others.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Archive } from '../../../src/copy/archive.ts';
import { wrongsOf } from './answers.ts';
import { predict, type Prediction } from './contract.ts';
import type { Outcome } from './outcomes.ts';
import {
  grantsOf,
  keepTokens,
  listedTokens,
  people,
  tokensFor,
  withIds,
  withTokens,
  type Tokens,
} from './people.ts';
import { presentTag } from './random-headers.ts';
import { bytesOf, headOf, type Bytes, type Request } from './request.ts';
import type { Group, Manner } from './requests.ts';
import { outcomeOf } from './verdict.ts';
import { valuesOf, Wire, type Answer } from './wire.ts';
import { judgeTarget } from './target.ts';
import { stateOf, World, type Person } from './world.ts';

/** A service, and the rows of its database, to add tokens to. */
export interface Target {
  port: number;
  archive: Archive;
}

/** How many answers there were, by status. */
export type Counts = Record<string, number>;

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
  const storeOf = (store: string) => `${store} ${run}`;
  const tokens = tokensFor();
  await Promise.all(targets.map(({ archive }) => keepTokens(archive, tokens, storeOf)));
  const world = new World(grantsOf(tokens, storeOf), listedTokens(tokens, storeOf));
  const session = new Session(targets, world, tokens, counts);
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
  readonly #world: World;
  readonly #tokens: Tokens;
  readonly #counts: Counts;
  readonly #requestIds = new Set<string>();
  /** The name of a plant of each person, by the name of the token. */
  readonly #secrets = new Map<string, string>();
  #wires: Wire[];
  /** Clients that have begun a request, or nothing, and come back to it at the end. */
  #slow: Wire[] = [];
  #idle: Wire[] = [];
  #slowSinceMs = 0;
  #head: { request: Request; answer: Answer } | undefined;

  constructor(targets: readonly Target[], world: World, tokens: Tokens, counts: Counts) {
    this.#targets = targets;
    this.#world = world;
    this.#tokens = tokens;
    this.#counts = counts;
    this.#wires = this.#open();
  }

  #openSlowAndIdle(): void {
    for (const wire of [...this.#slow, ...this.#idle]) wire.close();
    [this.#slow, this.#idle] = [this.#open(), this.#open()];
    const half = bytesOf(this.#list('maria')).slice(0, 40);
    for (const wire of this.#slow) wire.write(half);
    this.#slowSinceMs = performance.now();
  }

  async begin(): Promise<void> {
    this.#openSlowAndIdle();
    for (const { name } of people) {
      const secret = `secret-${randomBytes(6).toString('hex')}`;
      const json: [string, string][] = [['Content-Type', 'application/json']];
      await this.#ask({ ...this.#list(name, json), method: 'POST', body: `{"name":"${secret}"}` });
      this.#secrets.set(name, secret);
    }
  }

  async send({ requests, manner }: Group): Promise<void> {
    if (performance.now() - this.#slowSinceMs > maxSlowMs) this.#openSlowAndIdle();
    const all = requests.map((request) => this.#concrete(request));
    if (manner.kind === 'aborted') return this.#abort(all[0], manner);
    let together: Request[] = [];
    for (const request of all.flatMap(withTwin)) {
      together.push(request);
      if (!mayClose(predict(request, this.#world))) continue;
      await this.#exchange(together, manner);
      together = [];
    }
    if (together.length > 0) await this.#exchange(together, manner);
  }

  /** In the end, all users see the plants of the model, over old and new connections. */
  async end(): Promise<void> {
    for (const { name } of people) await this.#ask(this.#list(name));
    const whole = bytesOf(this.#list('maria'));
    for (const [wires, written] of [
      [this.#slow, 40],
      [this.#idle, 0],
    ] as const) {
      for (const wire of wires) wire.write(whole.slice(written));
      await this.#answers([this.#list('maria')], wires, { kind: 'whole' });
    }
  }

  close(): void {
    for (const wire of [...this.#wires, ...this.#slow, ...this.#idle]) wire.close();
  }

  #open(): Wire[] {
    return this.#targets.map(({ port }) => new Wire(port));
  }

  #list(name: string, more: [string, string][] = []): Request {
    const headers: [string, string][] = [
      ['Host', 'x'],
      ['Authorization', `Bearer ${this.#tokens[name]}`],
    ];
    const target = '/plants?fields=id,name,tag';
    if (more.length > 0) more.push(['Transfer-Encoding', 'chunked']);
    return { method: 'GET', target, version: '1.1', headers: [...headers, ...more], body: '' };
  }

  #concrete(request: Request): Request {
    const headers = request.headers.map(
      ([name, value]) => [name, withTokens(value, this.#tokens)] as const,
    );
    const concrete = { ...request, headers, target: withIds(request.target, this.#tokens) };
    const tag = this.#tagOf(concrete);
    const withTag = headers.map(
      ([name, value]) => [name, value.replaceAll(presentTag, tag)] as const,
    );
    return { ...concrete, headers: withTag };
  }

  /** The present entity tag of the plant in the target. */
  #tagOf(request: Request): string {
    const person = this.#personOf(request);
    const plant = person && this.#world.find(person, Number(judgeTarget(request.target).id));
    const tag = plant && person && this.#world.tagOf(stateOf(person, plant));
    return tag ?? '"none"';
  }

  #personOf(request: Request): Person | undefined {
    const asked = [...this.#world.grants].find(([token]) =>
      request.headers.some(([, value]) => value.includes(token)),
    );
    return asked?.[1].person;
  }

  async #ask(request: Request): Promise<void> {
    await this.#exchange([request], { kind: 'whole' });
  }

  async #exchange(together: readonly Request[], manner: Manner): Promise<void> {
    const bytes = together.map(bytesOf).join('');
    try {
      await this.#write(bytes, manner);
      const isLast = await this.#answers(together, this.#wires, manner);
      if (!isLast && manner.kind !== 'half-closed') return;
      // A malformed request has no method: the response to HEAD may have a body, and no request follows.
      if (!this.#isBroken(together.at(-1))) {
        await Promise.all(this.#wires.map((wire) => wire.nothingMore()));
      }
    } catch (cause) {
      const { message } = cause as Error; // nothing else is thrown here
      throw new Error(`${message}\nsent ${manner.kind}: ${shown(bytes)}`, { cause });
    }
    for (const wire of this.#wires) wire.close();
    this.#wires = this.#open();
  }

  async #write(bytes: Bytes, manner: Manner): Promise<void> {
    const cuts = manner.kind === 'pieces' ? manner.cuts : [];
    const places = cuts.map((cut) => Math.floor((cut * bytes.length) / 1_000));
    for (const wire of this.#wires)
      assert.ok(wire.isFresh, 'it closed or spoke without being asked');
    await Promise.all(this.#wires.map((wire) => wire.writeInPieces(bytes, places)));
    if (manner.kind === 'half-closed') for (const wire of this.#wires) wire.halfClose();
  }

  /**
   * Reads the answers to all, holds each to the oracle, and keeps what it acknowledges before it looks at the
   * next: requests of one connection happen in their order (RFC 9112, section 9.3.2). What is no request gets
   * no answer of its own if the one before ended the connection.
   */
  async #answers(together: readonly Request[], wires: readonly Wire[], manner: Manner) {
    const endsBroken = this.#isBroken(together.at(-1));
    const mayEnd = manner.kind === 'half-closed' || (endsBroken && together.length > 1);
    let before: readonly Answer[] = [];
    for (const [turn, request] of together.entries()) {
      const isFollower = endsBroken && turn > 0 && turn === together.length - 1;
      const answers = await Promise.all(
        wires.map(async (wire, at) =>
          before[at]?.isLast ? undefined : wire.answer(request.method),
        ),
      );
      const given = answers.filter((answer) => answer !== undefined);
      if (given.length < wires.length && !isFollower) {
        assert.fail(`no answer to ${shown(bytesOf(request))}`);
      }
      this.#judge(request, given, mayEnd);
      before = given;
    }
    return endsBroken || before.some(({ isLast }) => isLast);
  }

  #isBroken(request: Request | undefined): boolean {
    return request !== undefined && predict(request, this.#world).isBroken;
  }

  #judge(request: Request, answers: readonly Answer[], mayEnd: boolean): void {
    const { outcomes } = predict(request, this.#world);
    const met = new Set(
      answers.map((answer) => {
        const outcome = this.#outcomeOf(request, answer, outcomes, mayEnd);
        this.#learn(request, answer, outcome);
        return outcome;
      }),
    );
    assert.ok(
      met.size <= 1 || ![...met].some(({ effect }) => effect),
      'done by one, refused by another',
    );
    const [first, ...others] = answers;
    if (first === undefined) return;
    if (outcomes.length === 1 && outcomes[0]?.view === undefined) {
      for (const other of others) mustBeEqual(steady(other), steady(first), request);
      this.#compareWithHead(request, first);
    } else {
      this.#head = undefined; // it depends on time or chance
    }
    for (const { effect } of met) effect?.();
  }

  /** Each state of a plant has one entity tag, and no two of them have the same. */
  #learn(request: Request, answer: Answer, { state }: Outcome): void {
    const person = this.#personOf(request);
    if (state === undefined || person === undefined) return;
    const [tag = ''] = valuesOf(answer, 'etag');
    assert.ok(this.#world.learn(person, state, tag), `${state} has the entity tag ${tag}`);
  }

  #outcomeOf(
    request: Request,
    answer: Answer,
    outcomes: readonly Outcome[],
    mayEnd: boolean,
  ): Outcome {
    const { status } = answer;
    this.#counts[status] = (this.#counts[status] ?? 0) + 1;
    this.#check(request, answer);
    const verdict = outcomeOf(answer, request.method, outcomes, mayEnd);
    if ('outcome' in verdict) return verdict.outcome;
    return assert.fail(
      `${shown(bytesOf(request))}\n${shownAnswer(answer)}\n${verdict.wrongs.join('\n')}`,
    );
  }

  #check(request: Request, answer: Answer): void {
    const [id = ''] = valuesOf(answer, 'x-request-id');
    const wrongs = wrongsOf(answer, {
      method: request.method,
      secrets: this.#secretsFrom(request),
    });
    if (this.#requestIds.has(id)) wrongs.push(`${id} names two answers`);
    this.#requestIds.add(id);
    if (wrongs.length === 0) return;
    assert.fail(`${shown(bytesOf(request))}\n${shownAnswer(answer)}\n${wrongs.join('\n')}`);
  }

  /** HEAD has GET's headers (RFC 9110, section 9.3.2). */
  #compareWithHead(request: Request, answer: Answer): void {
    if (this.#head !== undefined && this.#head.request.target === request.target) {
      mustBeEqual(steady(this.#head.answer).headers, steady(answer).headers, request);
    }
    this.#head = request.method === 'HEAD' ? { request, answer } : undefined;
  }

  async #abort(
    request: Request | undefined,
    { at, isReset }: Manner & { kind: 'aborted' },
  ): Promise<void> {
    if (request === undefined) return;
    const bytes = bytesOf(request);
    const end = Math.max(1, Math.floor((at * bytes.length) / 1_000));
    const wires = this.#open();
    for (const wire of wires) {
      wire.write(bytes.slice(0, end));
      if (isReset) await wire.abort();
      else wire.halfClose();
    }
    if (isReset) return;
    // It must have no effect. The response reports a malformed request, or what the head alone decides.
    const decided = end < headOf(request).length ? [] : predict(request, this.#world).outcomes;
    const allowed = decided
      .filter(({ effect }) => effect === undefined)
      .map(({ status }) => status);
    for (const wire of wires) {
      const answer = await wire.answer(request.method);
      if (answer === undefined) continue;
      this.#check(request, answer);
      if (![400, 408, 431, 501, 505, ...allowed].includes(answer.status)) {
        assert.fail(`${shown(bytesOf(request))} was aborted\n${shownAnswer(answer)}`);
      }
      if (request.method !== 'HEAD') await wire.nothingMore();
    }
  }

  #secretsFrom(request: Request): string[] {
    const { grants } = this.#world;
    const person = this.#personOf(request);
    const hidden = people.filter(({ name }) => {
      const owner = grants.get(this.#tokens[name] ?? '')?.person;
      if (person === undefined || owner?.store !== person.store) return true;
      return !this.#world.reaches(person, 'read', owner.user);
    });
    return hidden.flatMap(({ name }) => this.#secrets.get(name) ?? []);
  }
}

/** With every HEAD goes the GET that it must agree with. */
function withTwin(request: Request): Request[] {
  return request.method === 'HEAD' ? [request, { ...request, method: 'GET' }] : [request];
}

function mayClose({ outcomes }: Prediction): boolean {
  return outcomes.some(({ closes }) => closes !== 'no');
}

/** What two services must return alike: all but the time, the request id, and who sees a half-close first. */
function steady({ status, headers, body }: Answer) {
  const alike = headers.filter(
    ([name]) => !['date', 'x-request-id', 'connection', 'keep-alive'].includes(name.toLowerCase()),
  );
  return { status, headers: alike, body };
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
