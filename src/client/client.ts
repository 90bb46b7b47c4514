/**
 * The client of the Plant Store, for Node and browsers. docs/client.md shows how to use it.
 */
import { Call, type Reply, type Transport } from './call.ts';
import { isProblem, unexpectedResponse } from './problem.ts';
import type { Effect } from './retry.ts';
import type { NewPlant, Plant as PartialPlant, PlantField } from './types.ts';

export { PlantStoreError, type AnyProblemKind, type ClientProblemKind } from './problem.ts';
export type { Fault, NewPlant, PlantField, ProblemKind } from './types.ts';

/** A plant with all its fields. */
export type Plant = Required<PartialPlant>;

/** A plant with the selected fields. If the compiler does not know which they are, each may be missing. */
export type PlantWith<Fields extends readonly PlantField[]> = number extends Fields['length']
  ? Partial<Plant>
  : Pick<Plant, Fields[number]>;

export type DefaultFields = readonly ['name', 'tag'];

export interface PlantStoreOptions {
  /** The address of the service, such as `https://plants.example`. It can have a path prefix. */
  url: string | URL;
  /** A token that `plant-store token create` printed. It is sent to the origin of `url` only. */
  token: string;
  /** How long a call can take, its retries included, in milliseconds. Each page of a list is a call. Default: 30,000. */
  timeoutMs?: number | undefined;
  /** How often a call is repeated at most. Default: 4. */
  maxRetries?: number | undefined;
  /** Replaces the global `fetch`. */
  fetch?: ((url: URL, init: RequestInit) => Promise<Response>) | undefined;
  /** The User-Agent header. Some browsers ignore it. */
  userAgent?: string | undefined;
}

export interface CallOptions {
  /** Aborts the call, which then throws the reason of the signal. */
  signal?: AbortSignal | undefined;
}

export interface FieldsOptions<Fields> extends CallOptions {
  /** Which fields the result has. Default: `name` and `tag`. */
  fields?: Fields | undefined;
}

export interface ListOptions<Fields> extends FieldsOptions<Fields> {
  /** Only plants with exactly this tag; empty: only plants without a tag. */
  tag?: string | undefined;
  /** Only plants with an id above this one. */
  after?: number | undefined;
}

export interface Created<Fields extends readonly PlantField[]> {
  id: number;
  plant: PlantWith<Fields>;
}

/** Who the token belongs to, and what it grants. */
export interface TokenInfo {
  id: string;
  user: string;
  store: string;
  role: 'member' | 'manager';
  scopes: string[];
  /** When it expires (RFC 3339); absent if never. */
  expiresAt?: string;
}

/** Every method throws a PlantStoreError if it fails, and the reason of its `signal` if that aborts. */
export class PlantStore {
  readonly #base: URL;
  readonly #transport: Transport;

  constructor(options: PlantStoreOptions) {
    const { url, token, timeoutMs = 30_000, maxRetries = 4, fetch: fetchWith, userAgent } = options;
    this.#base = baseOf(url);
    this.#transport = {
      fetch: fetchWith ?? ((address, init) => fetch(address, init)),
      headers: {
        authorization: `Bearer ${token}`,
        ...(userAgent !== undefined && { 'user-agent': userAgent }),
      },
      timeoutMs,
      maxRetries,
    };
  }

  /**
   * Creates a plant. With an id of its own, the request is repeated after any temporary problem. Without one, it is
   * repeated only if it is certain that nothing was created.
   */
  async create<const Fields extends readonly PlantField[] = DefaultFields>(
    plant: NewPlant,
    { fields, signal }: FieldsOptions<Fields> = {},
  ): Promise<Created<Fields>> {
    const effect = plant.id === undefined ? 'once' : 'repeatable';
    return this.#call(effect, signal, async (call) => {
      try {
        const reply = await call.send('POST', this.#address('plants', { fields }), plant);
        return { id: plant.id ?? idOf(call, reply), plant: bodyOf<PlantWith<Fields>>(call, reply) };
      } catch (error) {
        const found = isProblem(error, 'id-taken') && (await this.#findCreated(call, plant));
        if (!found) throw error;
        return { id: found.id, plant: select(found, fields) };
      }
    });
  }

  /** Gets a plant. */
  async get<const Fields extends readonly PlantField[] = DefaultFields>(
    id: number,
    { fields, signal }: FieldsOptions<Fields> = {},
  ): Promise<PlantWith<Fields>> {
    return this.#call('read', signal, async (call) =>
      bodyOf<PlantWith<Fields>>(
        call,
        await call.send('GET', this.#address(`plants/${id}`, { fields })),
      ),
    );
  }

  /** Deletes a plant. */
  async delete(id: number, { signal }: CallOptions = {}): Promise<void> {
    await this.#call('repeatable', signal, async (call) => {
      try {
        await call.send('DELETE', this.#address(`plants/${id}`));
      } catch (error) {
        // An earlier attempt has deleted it, and its response was lost.
        if (!call.outcomeUnknown || !isProblem(error, 'plant-not-found')) throw error;
      }
    });
  }

  /** Lists plants in ascending order of id. `pageSize` is the number of plants per request. Default: 1,000. */
  async *list<const Fields extends readonly PlantField[] = DefaultFields>({
    pageSize,
    ...options
  }: ListOptions<Fields> & { pageSize?: number | undefined } = {}): AsyncGenerator<
    PlantWith<Fields>,
    void
  > {
    for await (const page of this.pages({ ...options, limit: pageSize })) yield* page;
  }

  /** Lists plants in pages of at most `limit`. Default: 1,000. A page can be shorter, or empty. */
  async *pages<const Fields extends readonly PlantField[] = DefaultFields>({
    fields,
    tag,
    after,
    limit = 1_000,
    signal,
  }: ListOptions<Fields> & { limit?: number | undefined } = {}): AsyncGenerator<
    PlantWith<Fields>[],
    void
  > {
    let address: URL | undefined = this.#address('plants', { limit, after, tag, fields });
    while (address !== undefined) {
      const url: URL = address;
      const { plants, next } = await this.#call('read', signal, async (call) => {
        const reply = await call.send('GET', url);
        return { plants: bodyOf<PlantWith<Fields>[]>(call, reply), next: nextOf(call, url, reply) };
      });
      yield plants;
      address = next;
    }
  }

  /** Gets what the service knows about the token. */
  async token({ signal }: CallOptions = {}): Promise<TokenInfo> {
    return this.#call('read', signal, async (call) =>
      bodyOf<TokenInfo>(call, await call.send('GET', this.#address('token'))),
    );
  }

  #call<T>(effect: Effect, signal: AbortSignal | undefined, attempt: (call: Call) => Promise<T>) {
    return Call.run(this.#transport, effect, signal, attempt);
  }

  #address(path: string, parameters: Query = {}): URL {
    const address = new URL(path, this.#base);
    for (const [name, value] of Object.entries(parameters)) {
      if (value !== undefined) address.searchParams.set(name, String(value));
    }
    return address;
  }

  /** The plant, if an earlier attempt of this call has created it and its response was lost. */
  async #findCreated(call: Call, { id, name, tag = '' }: NewPlant): Promise<Plant | undefined> {
    if (!call.outcomeUnknown) return undefined;
    const address = this.#address(`plants/${id}`, { fields: ['id', 'name', 'tag'] });
    try {
      const found = bodyOf<Plant>(call, await call.send('GET', address));
      return found.name === name && found.tag === tag ? found : undefined;
    } catch (error) {
      if (isProblem(error, 'plant-not-found')) return undefined; // it belongs to another user
      throw error;
    }
  }
}

type Query = Record<string, string | number | readonly PlantField[] | undefined>;

/** The address of the service, to which relative addresses are resolved. */
function baseOf(url: string | URL): URL {
  const base = new URL(url);
  if (!base.pathname.endsWith('/')) base.pathname += '/';
  base.search = '';
  base.hash = '';
  return base;
}

/**
 * The next page; undefined after the last one. Only the query of `Link` is used: its origin and path are those of the
 * service's public address, which can differ from `url`, and the token must not go elsewhere.
 */
function nextOf(call: Call, address: URL, { headers }: Reply): URL | undefined {
  const [, link] = /<([^>]*)>\s*;[^,]*\brel="?next\b/.exec(headers.get('link') ?? '') ?? [];
  if (link === undefined) return undefined;
  const next = new URL(address);
  next.search = new URL(link, address).search;
  if (next.href === address.href) {
    throw call.error(unexpectedResponse('The page links to itself as the next one.'));
  }
  return next;
}

/** The id of a new plant, from the last segment of Location. */
function idOf(call: Call, { headers }: Reply): number {
  const [, id] = /\/(\d+)$/.exec(headers.get('location') ?? '') ?? [];
  if (id === undefined) {
    throw call.error(
      unexpectedResponse('The response to a new plant has no Location with its id.'),
    );
  }
  return Number(id);
}

/** The body of a successful response. The caller names the type that openapi.json promises. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters
function bodyOf<T extends object>(call: Call, { json }: Reply): T {
  if (typeof json !== 'object' || json === null) {
    throw call.error(unexpectedResponse('The response has no JSON. Check `url`, and any proxy.'));
  }
  return json as T; // the service's promise is not checked again
}

function select<Fields extends readonly PlantField[]>(
  plant: Plant,
  fields: readonly PlantField[] = ['name', 'tag'],
): PlantWith<Fields> {
  const entries = fields.map((field) => [field, plant[field]]);
  return Object.fromEntries(entries) as PlantWith<Fields>; // it has exactly these fields
}
