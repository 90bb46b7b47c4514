/**
 * The client of the Plant Store, for Node and browsers. docs/reference/client.md shows how to use it.
 */
import { Call, type Effect, type Reply } from './call.ts';
import {
  select,
  type DefaultFields,
  type Fields,
  type FieldsOptions,
  type Plant,
  type PlantWith,
} from './fields.ts';
import { isCreated, isUpdated, unlessDone } from './lost-response.ts';
import {
  batchOf,
  follow,
  type ChangeBatch,
  type ChangesOptions,
  type ChangeWith,
} from './follow.ts';
import type { Mirror, MirrorOptions } from './mirror.ts';
import {
  baseOf,
  maxTimeoutMs,
  requireInteger,
  transportOf,
  type CallOptions,
  type PlantStoreOptions,
  type Transport,
} from './options.ts';
import { isProblem } from './problem.ts';
import { arrayOf, headerOf, idOf, nextOf } from './reply.ts';
import {
  addressOf,
  conditionOf,
  keyOf,
  type ConditionOptions,
  type HeadersOfCall,
  type KeyOptions,
  type Path,
  type Query,
} from './request.ts';
import { allFields } from './types.ts';
import type {
  Access,
  DeletedPlant,
  NewPlant,
  NewToken,
  OwnToken,
  PlantChange,
  PlantPatch,
  ProblemKind,
  Return,
  Role,
  ShareAccess,
  Shares,
  TeamShare,
  Token,
  User,
} from './types.ts';

export type { DefaultFields, FieldsOptions, Plant, PlantWith } from './fields.ts';
export type { ChangeBatch, ChangesOptions, ChangeWith } from './follow.ts';
export type { Mirror, MirrorOptions } from './mirror.ts';
export type { CallOptions, PlantStoreOptions, ResponseInfo, TokenSource } from './options.ts';
export { PlantStoreError, type AnyProblemKind, type ClientProblemKind } from './problem.ts';
export type * from './types.ts'; // except Plant, which fields.ts replaces

/** Maximum number of plants, tokens or other users in a page. */
const maxPage = 1_000;

/**
 * Calls the service at one address with one token. A method that fails throws a PlantStoreError. If its `signal`
 * aborts, it throws the reason of the signal.
 */
export class PlantStore {
  readonly #options: PlantStoreOptions;
  readonly #base: URL;
  readonly #transport: Transport;

  /** Throws a TypeError or a RangeError if an option is not valid. */
  constructor(options: PlantStoreOptions) {
    this.#options = options;
    this.#base = baseOf(options.url);
    this.#transport = transportOf(options);
  }

  /**
   * Creates a plant. After a temporary problem, the request is repeated if it has an `idempotencyKey`, or `plant` an id.
   * Otherwise, it is repeated only if it certainly created nothing.
   */
  async create<const F extends Fields = DefaultFields>(
    plant: NewPlant,
    options: CreateOptions<F> = {},
  ): Promise<Created<F>> {
    const { fields, idempotencyKey } = options;
    const effect = (plant.id ?? idempotencyKey) === undefined ? 'once' : 'repeatable';
    const headers = keyOf(options);
    const address = this.#address(['plants'], { fields });
    return this.#call(effect, options, async (call) => {
      const created = call.send<PlantWith<F>>('POST', address, plant, headers).then((reply) => ({
        id: plant.id ?? idOf(reply),
        plant: reply.json,
        isReplay: reply.headers.has('idempotent-replayed'),
      }));
      return unlessDone(call, 'id-taken', created, async () => {
        // With a key, the service knows what an earlier attempt has created.
        if (plant.id === undefined || idempotencyKey !== undefined) return undefined;
        const found = await this.#getAll(call, plant.id);
        if (!isCreated(found, plant)) return undefined;
        return { id: found.id, plant: select<F>(found, fields), isReplay: true };
      });
    });
  }

  /** Gets a plant. */
  async get<const F extends Fields = DefaultFields>(
    id: number,
    options: FieldsOptions<F> = {},
  ): Promise<PlantWith<F>> {
    return this.#get<PlantWith<F>>(['plants', id], options, { fields: options.fields });
  }

  /** Gets a plant with its entity tag, which `update` and `delete` take as `ifMatch`. */
  async getWithETag<const F extends Fields = DefaultFields>(
    id: number,
    options: FieldsOptions<F> = {},
  ): Promise<{ plant: PlantWith<F>; etag: string }> {
    const address = this.#address(['plants', id], { fields: options.fields });
    return this.#call('read', options, async (call) => {
      const reply = await call.send<PlantWith<F>>('GET', address);
      return { plant: reply.json, etag: headerOf(reply, 'ETag') };
    });
  }

  /** Changes the fields of a plant that `patch` has; null clears the tag. */
  async update<const F extends Fields = DefaultFields>(
    id: number,
    patch: PlantPatch,
    options: UpdateOptions<F> = {},
  ): Promise<PlantWith<F>> {
    const { fields } = options;
    const address = this.#address(['plants', id], { fields });
    const headers = conditionOf(options);
    return this.#call('repeatable', options, async (call) => {
      const sent = call.send<PlantWith<F>>('PATCH', address, patch, headers);
      const updated = sent.then(({ json }) => json);
      return unlessDone(call, 'precondition-failed', updated, async () => {
        const found = await this.#getAll(call, id);
        return isUpdated(found, patch) ? select<F>(found, fields) : undefined;
      });
    });
  }

  /** Brings a deleted plant back as it was, for as long as the service keeps the change. */
  async restore<const F extends Fields = DefaultFields>(
    id: number,
    options: FieldsOptions<F> = {},
  ): Promise<PlantWith<F>> {
    const { fields } = options;
    const address = this.#address(['plants', id, 'restore'], { fields });
    const latest = this.#address(['plants', id, 'history'], { limit: 1 });
    return this.#call('repeatable', options, async (call) => {
      const restored = call.send<PlantWith<F>>('POST', address).then(({ json }) => json);
      return unlessDone(call, 'id-taken', restored, async () => {
        const { json: history } = await call.send<PlantChange[]>('GET', latest);
        if (history[0]?.event !== 'restored') return undefined;
        return select<F>(await this.#getAll(call, id), fields);
      });
    });
  }

  /** Lists the latest changes of a plant, the newest first. A deleted plant has a history too. */
  async history(id: number, options: HistoryOptions = {}): Promise<PlantChange[]> {
    return this.#get<PlantChange[]>(['plants', id, 'history'], options, { limit: options.limit });
  }

  /** Deletes a plant, which `restore` brings back. */
  async delete(id: number, options: DeleteOptions = {}): Promise<void> {
    await this.#delete(['plants', id], 'plant-not-found', options, conditionOf(options));
  }

  /** Lists plants in ascending order of id, or sorted. Each request gets `pageSize` plants, by default 1,000. */
  list<const F extends Fields = DefaultFields>(
    options: ListOptions<F> = {},
  ): AsyncGenerator<PlantWith<F>, void, void> {
    return itemsOf(this.pages(options), options);
  }

  /** Lists plants like `list`, but in arrays of up to `pageSize` plants. An array can be shorter. */
  async *pages<const F extends Fields = DefaultFields>(
    options: ListOptions<F> = {},
  ): AsyncGenerator<PlantWith<F>[], void, void> {
    if ('limit' in options) {
      throw new TypeError(
        'A list has no `limit`: it has all plants. Leave the loop with `break`, or set `pageSize`.',
      );
    }
    const { fields, tag, q, sort, after } = options;
    yield* this.#pages(
      this.#address(['plants'], { limit: limitOf(options), after, tag, q, sort, fields }),
      options,
      arrayOf<PlantWith<F>>,
    );
  }

  /** Lists the first plants of `list`, at most `max` of them, as an array. */
  async listUpTo<const F extends Fields = DefaultFields>(
    max: number,
    options: ListOptions<F> = {},
  ): Promise<PlantWith<F>[]> {
    requireInteger('max', max, 1, Number.MAX_SAFE_INTEGER);
    const plants: PlantWith<F>[] = [];
    for await (const plant of this.list({
      ...options,
      pageSize: Math.min(max, limitOf(options)),
    })) {
      plants.push(plant);
      if (plants.length === max) break;
    }
    return plants;
  }

  /** Counts the plants of a list. */
  async count({ tag, q, ...options }: CountOptions = {}): Promise<number> {
    const address = this.#address(['plants'], { limit: 1, tag, q, count: 'true' });
    return this.#call('read', options, async (call) => {
      return Number(headerOf(await call.send('GET', address), 'Total-Count'));
    });
  }

  /** Lists the deleted plants that the user can restore, the newest deletion first. */
  async *listDeleted(options: PageOptions = {}): AsyncGenerator<DeletedPlant, void, void> {
    const first = this.#address(['bin'], { limit: limitOf(options) });
    yield* itemsOf(this.#pages<DeletedPlant[]>(first, options, arrayOf), options);
  }

  /** Gets what `returnToTime` would do to the user's own plants. The time is as in RFC 3339, with an offset. */
  async previewReturn(since: string, options?: CallOptions): Promise<Return> {
    return this.#get<Return>(['restore'], options, { since });
  }

  /** Puts the user's own plants back as they were at a time. To undo that, return to its `undoSince`. */
  async returnToTime(since: string, options?: CallOptions): Promise<Return> {
    const address = this.#address(['restore']);
    return this.#call('repeatable', options, async (call) => {
      return (await call.send<Return>('POST', address, { since })).json;
    });
  }

  /**
   * Follows the plants that the user can access, in batches of changes. Only a `break`, the signal or a problem ends the loop.
   * After a `cursor-ended` problem, begin without `after`, then list the plants. The first batch comes at once, and without
   * `after` is empty. Later, temporary problems are retried without end, unless the client has the option `maxRetries`.
   */
  changes<const F extends Fields = DefaultFields>(
    options: ChangesOptions<F> = {},
  ): AsyncGenerator<ChangeBatch<F>, never, void> {
    const patient = this.#patient();
    return follow(
      () => this.#changesAfter(options.after, options),
      (after, wait) => patient.#changesAfter(after, options, wait),
      options.signal,
    );
  }

  /** Keeps a copy of the list that follows the store. Resolves once the copy has all plants. */
  async mirror<const F extends Fields = DefaultFields>(
    options: MirrorOptions<F> = {},
  ): Promise<Mirror<F>> {
    const { startMirror } = await import('./mirror.ts'); // most programs load no mirror
    return startMirror(this, this.#patient(), options);
  }

  /** Gets what the token grants, to whom, and until when. */
  async token(options?: CallOptions): Promise<Token> {
    return this.#get<Token>(['token'], options);
  }

  /**
   * Creates another token of the same user, with at most the scopes and the lifetime of this one, which are the
   * default. Without an `idempotencyKey`, the request is repeated only if it certainly created nothing.
   */
  async createToken(token: NewToken = {}, options?: CreateTokenOptions): Promise<CreatedToken> {
    return this.#createToken(['tokens'], token, options);
  }

  /** Lists the user's own tokens, the newest first. */
  async listTokens(options?: CallOptions): Promise<OwnToken[]> {
    const first = this.#address(['tokens'], { limit: maxPage });
    const tokens: OwnToken[] = [];
    for await (const page of this.#pages<OwnToken[]>(first, options)) tokens.push(...page);
    // oxlint-disable-next-line unicorn/no-array-sort -- ES2022 has no toSorted
    return tokens.sort((a, b) => Date.parse(b.createdAt) - Date.parse(a.createdAt));
  }

  /** Revokes one of the user's own tokens by its id. */
  async revokeToken(id: string, options?: CallOptions): Promise<void> {
    const address = this.#address(['tokens', id]);
    await this.#call('repeatable', options, (call) => call.send('DELETE', address));
  }

  /** Revokes the token of this client. Every later call with it fails. */
  async revokeOwnToken(options?: CallOptions): Promise<void> {
    await this.#delete(['token'], 'invalid-token', options);
  }

  /** Lists with whom the user shares their plants, and who shares theirs with the user. */
  async listShares(options?: CallOptions): Promise<Shares> {
    const first = this.#address(['shares'], { limit: maxPage });
    const shares: Shares = { given: [], received: [] };
    for await (const { given, received } of this.#pages<Shares>(first, options)) {
      shares.given.push(...given);
      shares.received.push(...received);
    }
    return shares;
  }

  /** Shares all plants of the user with another one, or changes what that user can do. */
  async share(user: string, access: ShareAccess, options?: CallOptions): Promise<void> {
    await this.#put(['shares', user], { access }, options);
  }

  /** Ends the shares between the user and another one, in both directions. */
  async unshare(user: string, options?: CallOptions): Promise<void> {
    await this.#delete(['shares', user], 'share-not-found', options);
  }

  /** Gets what the user shares with everyone in the store: undefined if nothing. */
  async teamShare(options?: CallOptions): Promise<ShareAccess | undefined> {
    try {
      return (await this.#get<TeamShare>(['team-share'], options)).access;
    } catch (error) {
      if (isProblem(error, 'share-not-found')) return undefined;
      throw error;
    }
  }

  /** Shares all plants of the user with everyone in the store, including users who join later. */
  async shareWithTeam(access: ShareAccess, options?: CallOptions): Promise<void> {
    await this.#put(['team-share'], { access }, options);
  }

  /** Ends what the user shares with everyone. Shares with single users stay. */
  async unshareWithTeam(options?: CallOptions): Promise<void> {
    await this.#delete(['team-share'], 'share-not-found', options);
  }

  /** Lists the users of the store in ascending order of name. For managers, like the methods below. */
  async *listUsers(options: PageOptions = {}): AsyncGenerator<User, void, void> {
    const first = this.#address(['users'], { limit: limitOf(options) });
    yield* itemsOf(this.#pages<User[]>(first, options, arrayOf), options);
  }

  /** Makes a user a member or a manager. The last manager of a store stays one. */
  async setRole(user: string, role: Role, options?: CallOptions): Promise<void> {
    await this.#put(['users', user], { role }, options);
  }

  /** Removes a user with their tokens and shares. If the user owns plants, `plantsTo` names who gets them. */
  async removeUser(user: string, options: RemoveUserOptions = {}): Promise<void> {
    const query = { 'plants-to': options.plantsTo };
    await this.#delete(['users', user], 'user-not-found', options, undefined, query);
  }

  /**
   * Creates a token or an invitation for a user, who becomes a member of the store if there is no such user. It has at
   * most the scopes and the lifetime of this token, and by default reads and writes plants.
   */
  async createTokenFor(
    user: string,
    token: NewToken = {},
    options?: CreateTokenOptions,
  ): Promise<CreatedToken> {
    return this.#createToken(['users', user, 'tokens'], token, options);
  }

  /** Gets what a user can do with a plant, and why. */
  async explainAccess(user: string, plant: number, options?: CallOptions): Promise<Access> {
    return this.#get<Access>(['users', user, 'access'], options, { plant });
  }

  /** The same client, which repeats requests until they succeed, unless the user limits the retries. */
  #patient(): PlantStore {
    const { maxRetries = Infinity } = this.#options;
    return new PlantStore({ ...this.#options, maxRetries, timeoutMs: maxTimeoutMs });
  }

  #changesAfter<F extends Fields>(
    after: string | undefined,
    { fields, signal, ...options }: ChangesOptions<F>,
    wait = 0,
  ): Promise<ChangeBatch<F>> {
    const query = { after, limit: limitOf(options), wait: wait || undefined, fields };
    const address = this.#address(['changes'], query);
    return this.#call('read', { signal }, async (call) => {
      call.waitSeconds = wait;
      return batchOf(await call.send<ChangeWith<F>[]>('GET', address));
    });
  }

  /** Follows `Link` from page to page. */
  async *#pages<T>(
    first: URL,
    options: CallOptions | undefined,
    pageOf: (reply: Reply<T>) => T = ({ json }) => json,
  ): AsyncGenerator<T, void, void> {
    for (let address: URL | undefined = first; address !== undefined;) {
      const current: URL = address;
      const [page, next] = await this.#call('read', options, async (call) => {
        const reply = await call.send<T>('GET', current);
        return [pageOf(reply), nextOf(reply, current)] as const;
      });
      yield page;
      address = next;
    }
  }

  #get<T>(path: Path, options: CallOptions | undefined, query?: Query): Promise<T> {
    const address = this.#address(path, query);
    return this.#call('read', options, async (call) => (await call.send<T>('GET', address)).json);
  }

  async #put(path: Path, body: object, options: CallOptions | undefined): Promise<void> {
    const address = this.#address(path);
    await this.#call('repeatable', options, (call) => call.send('PUT', address, body));
  }

  async #createToken(path: Path, token: NewToken, options: CreateTokenOptions = {}) {
    const effect = options.idempotencyKey === undefined ? 'once' : 'repeatable';
    const headers = keyOf(options);
    const address = this.#address(path);
    return this.#call(effect, options, async (call) => {
      return (await call.send<CreatedToken>('POST', address, token, headers)).json;
    });
  }

  #call<T>(
    effect: Effect,
    options: CallOptions | undefined,
    attempt: (call: Call) => Promise<T>,
  ): Promise<T> {
    return new Call(this.#transport, effect).run(attempt, options);
  }

  async #delete(
    path: Path,
    goneKind: ProblemKind,
    options: CallOptions | undefined,
    headers?: HeadersOfCall,
    query?: Query,
  ) {
    const address = this.#address(path, query);
    await this.#call('repeatable', options, async (call) => {
      if (goneKind === 'invalid-token') call.canRenewToken = false; // the call revokes this very token
      const sent = call.send('DELETE', address, undefined, headers);
      await unlessDone<unknown>(call, goneKind, sent, async () => true);
    });
  }

  #address(path: Path, query?: Query): URL {
    return addressOf(this.#base, path, query);
  }

  async #getAll(call: Call, id: number): Promise<Plant> {
    const address = this.#address(['plants', id], { fields: allFields });
    return (await call.send<Plant>('GET', address)).json;
  }
}

async function* itemsOf<T>(
  pages: AsyncIterable<readonly T[]>,
  { signal }: CallOptions,
): AsyncGenerator<T, void, void> {
  for await (const page of pages) {
    for (const item of page) {
      signal?.throwIfAborted();
      yield item;
    }
  }
}

/** Throws a RangeError if the page size is not valid. */
function limitOf({ pageSize = maxPage }: PageOptions): number {
  requireInteger('pageSize', pageSize, 1, maxPage);
  return pageSize;
}

/** A token that was just created. `token` is not shown again. */
export type CreatedToken = OwnToken & { token: string };

export type CreateTokenOptions = CallOptions & KeyOptions;

export interface RemoveUserOptions extends CallOptions {
  /** Who gets the plants of the removed user: required if there are any. */
  plantsTo?: string | undefined;
}

export interface Created<F extends Fields> {
  id: number;
  plant: PlantWith<F>;
  /** Whether an earlier request has created the plant. It can be one of this call, if its response was lost. */
  isReplay: boolean;
}

export type CreateOptions<F extends Fields> = FieldsOptions<F> & KeyOptions;

export type UpdateOptions<F extends Fields> = FieldsOptions<F> & ConditionOptions;

export type DeleteOptions = CallOptions & ConditionOptions;

export interface HistoryOptions extends CallOptions {
  /** Maximum number of changes, at most 100, which is the default. */
  limit?: number | undefined;
}

export interface PageOptions extends CallOptions {
  /** Maximum number of plants or users in a page, at most 1,000. */
  pageSize?: number | undefined;
}

export interface CountOptions extends CallOptions {
  /** Only plants with exactly this tag; empty: only plants without a tag. */
  tag?: string | undefined;
  /** Only plants whose name or tag contains this text, whatever its case and accents. */
  q?: string | undefined;
}

export interface ListOptions<F extends Fields> extends FieldsOptions<F>, CountOptions, PageOptions {
  /** By name, whatever its case and accents, or in the reverse order of names. By default, by id. */
  sort?: 'name' | '-name' | undefined;
  /** Only plants with an id above this one, without `sort`. */
  after?: number | undefined;
}
