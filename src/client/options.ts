/**
 * The options of a client, checked: a mistake in them must not look like a failure of the network.
 */

export interface PlantStoreOptions {
  /** The address of the service, such as `https://plants.example`. It can have a path prefix. */
  url: string | URL;
  /** What `plant-store token create` printed. It is sent only to `url`. */
  token: string;
  /** How long a call can take, retries included. Each page of a list is one call. By default 30,000. */
  timeoutMs?: number | undefined;
  /** Maximum number of retries of a call after temporary problems. By default 4. */
  maxRetries?: number | undefined;
  /** Sends the requests instead of the global `fetch`. */
  fetch?: Fetch | undefined;
  /** The header User-Agent. Some browsers ignore it. */
  userAgent?: string | undefined;
}

type Fetch = (url: URL, init: RequestInit) => Promise<Response>;

/** What all calls of a client share. */
export interface Transport {
  fetch: Fetch;
  headers: Readonly<Record<string, string>>;
  timeoutMs: number;
  maxRetries: number;
}

/** The longest timeout that a timer supports. */
const maxTimeoutMs = 2_147_483_647;

export function transportOf({
  token,
  timeoutMs = 30_000,
  maxRetries = 4,
  // Browsers require that `fetch` is called as a function, not as a method.
  fetch = (url, init) => globalThis.fetch(url, init),
  userAgent,
}: PlantStoreOptions): Transport {
  // The message does not repeat the token, because messages are logged.
  if (typeof token !== 'string' || !/^[\x21-\x7E]+$/.test(token)) {
    throw new TypeError('`token` must be a token that `plant-store token create` printed.');
  }
  requireInteger('timeoutMs', timeoutMs, 1, maxTimeoutMs);
  requireInteger('maxRetries', maxRetries, 0, 100);
  const headers = {
    authorization: `Bearer ${token}`,
    ...(userAgent !== undefined && { 'user-agent': userAgent }),
  };
  return { fetch, headers, timeoutMs, maxRetries };
}

function requireInteger(name: string, value: number, min: number, max: number): void {
  if (!Number.isInteger(value) || value < min || value > max) {
    throw new RangeError(`\`${name}\` must be an integer from ${min} to ${max}.`);
  }
}

/** The address that the paths of the service are relative to. */
export function baseOf(url: string | URL): URL {
  const { protocol, origin, pathname } = new URL(url);
  if (protocol !== 'http:' && protocol !== 'https:') {
    throw new TypeError('`url` must start with http:// or https://.');
  }
  return new URL(pathname.endsWith('/') ? pathname : `${pathname}/`, origin);
}
