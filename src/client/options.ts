/**
 * The options of a client, checked: a mistake in them must not look like a failure of the network.
 */
import type { PlantStoreError } from './problem.ts';

export interface PlantStoreOptions {
  /** The address of the service, such as `https://plants.example`. It can have a path prefix. */
  url: string | URL;
  /** What `plant-store token create` printed, or a function that returns it. It is sent only to `url`. */
  token: string | TokenSource;
  /** How long a call can take, retries included. Each page of a list is one call. By default 30,000. */
  timeoutMs?: number | undefined;
  /** Maximum number of retries of a call after temporary problems; can be Infinity. By default 4. */
  maxRetries?: number | undefined;
  /** Waits before each retry in place of the client, or throws to end the call. `maxRetries` is then ignored. */
  beforeRetry?: ((problem: PlantStoreError) => Promise<void>) | undefined;
  /** Sends the requests instead of the global `fetch`. */
  fetch?: ((url: URL, init: RequestInit) => Promise<Response>) | undefined;
}

/**
 * Called before each call, and once more with the refused token if the service responds with 401. If the function then
 * returns a different token, the call continues.
 */
export type TokenSource = (refused?: string) => string | Promise<string>;

/** The options of every method. */
export interface CallOptions {
  /** Aborts the call. An aborted write may still take effect. */
  signal?: AbortSignal | undefined;
  /** How long this call can take, retries included. By default the `timeoutMs` of the client. */
  timeoutMs?: number | undefined;
  /**
   * Called with each successful response of the call, before it returns. A list has a response for each page. A call that
   * fails throws a PlantStoreError, which has its own `requestId`.
   */
  onResponse?: ((response: ResponseInfo) => void) | undefined;
}

export interface ResponseInfo {
  headers: Headers;
  /** Identifies the request in the log of the service. */
  requestId: string | undefined;
  /**
   * The receipt of a change to a plant: a copy that has followed the changes up to this position has it. Undefined for other
   * calls, and for a change whose own response was lost.
   */
  position: number | undefined;
}

/** The longest timeout that a timer supports. */
export const maxTimeoutMs = 2_147_483_647;

/** What all calls of a client share. */
export type Transport = ReturnType<typeof transportOf>;

export function transportOf({
  token,
  timeoutMs = 30_000,
  maxRetries = 4,
  beforeRetry,
  // Browsers require that `fetch` is called as a function, not as a method.
  fetch = (url: URL, init: RequestInit) => globalThis.fetch(url, init),
}: PlantStoreOptions) {
  const source = typeof token === 'function' ? token : () => token;
  if (source !== token) requireToken(token);
  requireTimeout(timeoutMs);
  if (maxRetries !== Infinity) requireInteger('maxRetries', maxRetries, 0, 100);
  const checked = async (refused?: string) => requireToken(await source(refused));
  return { fetch, token: checked, timeoutMs, maxRetries, beforeRetry };
}

/** The message does not repeat the token, because messages are logged. */
function requireToken(token: unknown): string {
  if (typeof token === 'string' && /^[\x21-\x7E]+$/.test(token)) return token;
  throw new TypeError('`token` must be a token that `plant-store token create` printed.');
}

export function requireTimeout(timeoutMs: number): void {
  requireInteger('timeoutMs', timeoutMs, 1, maxTimeoutMs);
}

export function requireInteger(name: string, value: number, min: number, max: number): void {
  if (!Number.isInteger(value) || value < min || value > max) {
    throw new RangeError(`\`${name}\` must be an integer from ${min} to ${max}.`);
  }
}

/** The address that the paths of the service are relative to. */
export function baseOf(url: string | URL): URL {
  const { protocol, username, password, origin, pathname, search, hash } = new URL(url);
  if (protocol !== 'http:' && protocol !== 'https:') {
    throw new TypeError('`url` must start with http:// or https://.');
  }
  // The messages do not repeat `url`, because these parts can be secret.
  if (username !== '' || password !== '') {
    throw new TypeError('`url` must not contain a user name or a password. Only `token` is used.');
  }
  if (search !== '' || hash !== '') {
    throw new TypeError(
      '`url` must not contain a query or a fragment. Remove what follows the path.',
    );
  }
  return new URL(pathname.endsWith('/') ? pathname : `${pathname}/`, origin);
}
