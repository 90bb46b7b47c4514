/**
 * A call: one request, its safe retries, and one deadline for all of them.
 */
import { requireTimeout, type CallOptions, type Transport } from './options.ts';
import {
  clientFailure,
  failureOf,
  networkFailure,
  PlantStoreError,
  type Failure,
} from './problem.ts';
import { positionOf } from './reply.ts';
import type { HeadersOfCall } from './request.ts';
import { pause, unlessAborted, within } from './waiting.ts';

/**
 * What repeating a call does:
 * - `read`: nothing, because the call changes nothing
 * - `repeatable`: nothing more than the first time
 * - `once`: it can change the store a second time
 */
export type Effect = 'read' | 'repeatable' | 'once';

/** The service ends every request within 12 s, so after this time, its response is lost. */
export const maxRequestMs = 15_000;
const firstPauseMs = 500;
/** The longest pause without its random part, unless the service asks for a longer one. */
const longestPauseMs = 15_000;

/** Responses of a proxy that does not reach the service. */
const gatewayStatuses: readonly number[] = [502, 503, 504];

/** Why a request that takes longer fails, as if the connection had failed. */
const lost = () => new Error('the response did not arrive');

/** Longer than any response of the service: a response that never ends must not fill the memory. */
const maxBodyBytes = 64 * 1_024 ** 2;

/** Problems that promise that nothing was changed. */
const unchangedKinds: readonly string[] = [
  'overloaded',
  'provider-unavailable',
  'storage-full',
  'storage-unavailable',
];

/** Those of the service. With another one, such as 202, a proxy can have kept the request for later. */
const successStatuses = {
  GET: [200],
  PATCH: [200],
  POST: [200, 201],
  PUT: [200, 201],
  DELETE: [204],
};
type Method = keyof typeof successStatuses;

export interface Reply<T> {
  headers: Headers;
  /** The body. */
  json: T;
  /** The error if the response lacks something: Plant Store did not send it, or a proxy has changed it. */
  unexpected: (detail: string) => PlantStoreError;
}

export class Call {
  /** True after an attempt that failed but can have changed the store. */
  outcomeUnknown = false;
  /** Whether the call can use another token if the service refuses the first one. */
  canRenewToken = true;
  /** How long the service can hold the request before it responds. One that it holds is not repeated. */
  waitSeconds = 0;
  readonly #transport: Transport;
  readonly #effect: Effect;
  /** Aborts at the deadline, or with the signal of the caller. */
  #end = new AbortController().signal;
  #token = '';
  #isSending = false;
  #onResponse: CallOptions['onResponse'];

  constructor(transport: Transport, effect: Effect) {
    this.#transport = transport;
    this.#effect = effect;
  }

  /** Runs `attempt` until it succeeds, or until another attempt would be unsafe or too late. */
  async run<T>(
    attempt: (call: Call) => Promise<T>,
    { signal, timeoutMs = this.#transport.timeoutMs, onResponse }: CallOptions = {},
  ): Promise<T> {
    requireTimeout(timeoutMs);
    this.#onResponse = onResponse;
    const deadlineMs = performance.now() + timeoutMs;
    const timedOut = clientFailure('timeout', `The call did not end within ${timeoutMs} ms.`);
    const timeout = () => this.#error(timedOut, this.#isSending);
    return within({ timeoutMs, timeout, signal }, (end) => {
      this.#end = end;
      return this.#repeat(attempt, deadlineMs);
    });
  }

  async #repeat<T>(attempt: (call: Call) => Promise<T>, deadlineMs: number): Promise<T> {
    await this.#renewToken();
    for (let retries = 0; ;) {
      try {
        return await attempt(this);
      } catch (error) {
        if (!(error instanceof PlantStoreError)) throw error;
        if (error.status === 401 && this.canRenewToken) {
          this.canRenewToken = false;
          if (await this.#renewToken(this.#token)) continue;
        }
        const canRepeat = this.#effect !== 'once' || !error.outcomeUnknown;
        if (this.waitSeconds > 0 || !isTemporary(error) || !canRepeat) throw error;
        this.outcomeUnknown ||= error.outcomeUnknown;
        await this.#waitAfter(error, retries++, deadlineMs);
      }
    }
  }

  /** Throws the error if it is too late for a retry. */
  async #waitAfter(error: PlantStoreError, retries: number, deadlineMs: number): Promise<void> {
    const { maxRetries, beforeRetry } = this.#transport;
    if (beforeRetry !== undefined) return unlessAborted(beforeRetry(error), this.#end);
    const waitMs = pauseMs(error, retries);
    const isLate = performance.now() + waitMs >= deadlineMs;
    if (isLate || retries === maxRetries) throw error;
    await pause(waitMs, this.#end);
  }

  /** Returns whether there is another token than the one that the service has refused. */
  async #renewToken(refused?: string): Promise<boolean> {
    this.#token = await unlessAborted(this.#transport.token(refused), this.#end);
    return this.#token !== refused;
  }

  /** Sends one request. Throws a PlantStoreError, or the reason of the caller's signal. */
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- T is what openapi.json promises
  async send<T>(
    method: Method,
    address: URL,
    body?: object,
    headersOfCall?: HeadersOfCall,
  ): Promise<Reply<T>> {
    const { response, text } = await this.#exchange(method, address, body, headersOfCall);
    const { status, headers } = response;
    const unexpected = (detail: string) =>
      this.#error(clientFailure('unexpected-response', detail, status));
    if (text === undefined) throw unexpected('The response is too long for Plant Store.');
    const json = parse(text);
    const isExpected = successStatuses[method].includes(status);
    if (isExpected && (json !== undefined || status === 204)) {
      const requestId = headers.get('x-request-id') ?? undefined;
      this.#onResponse?.({ headers, requestId, position: positionOf(headers) });
      return { headers, json: json as T, unexpected }; // see above
    }
    // A list that fails ends early, and some proxies hide that.
    const isCut = isExpected && headers.get('content-type')?.includes('json');
    throw this.#error(isCut ? networkFailure(address) : failureOf(response, json));
  }

  async #exchange(
    method: string,
    address: URL,
    body: object | undefined,
    headersOfCall: HeadersOfCall = {},
  ) {
    const { fetch } = this.#transport;
    const headers: Record<string, string> = {
      ...headersOfCall,
      authorization: `Bearer ${this.#token}`,
    };
    const init: RequestInit = { method, headers, redirect: 'manual' };
    if (body !== undefined) {
      headers['content-type'] = 'application/json';
      init.body = JSON.stringify(body);
    }
    this.#isSending = true;
    try {
      const timeoutMs = maxRequestMs + this.waitSeconds * 1_000;
      return await within({ timeoutMs, timeout: lost, signal: this.#end }, async (signal) => {
        const response = await fetch(address, { ...init, signal });
        return { response, text: await textOf(response) };
      });
    } catch (cause) {
      this.#end.throwIfAborted();
      throw this.#error(networkFailure(address, cause));
    } finally {
      this.#isSending = false;
    }
  }

  #error(failure: Failure, mayHaveChangedNow = mayHaveChanged(failure)): PlantStoreError {
    const outcomeUnknown = this.#effect !== 'read' && (this.outcomeUnknown || mayHaveChangedNow);
    return new PlantStoreError(failure, outcomeUnknown);
  }
}

/** Whether the same request can succeed later. */
function isTemporary({ kind, status, retryAfterSeconds }: PlantStoreError): boolean {
  return kind === 'network' || retryAfterSeconds !== undefined || gatewayStatuses.includes(status);
}

/** At least as long as the response asks for, twice as long after each attempt, and different for each client. */
export function pauseMs(
  { retryAfterSeconds = 0 }: { retryAfterSeconds?: number | undefined },
  retries: number,
): number {
  const backoffMs = Math.min(firstPauseMs * 2 ** retries, longestPauseMs);
  return Math.max(retryAfterSeconds * 1_000, backoffMs) * (1 + Math.random() / 2);
}

/** Whether the request may have changed the store although it failed. */
function mayHaveChanged({ kind, status }: Failure): boolean {
  return !unchangedKinds.includes(kind) && (status < 300 || status >= 500);
}

/** The body as text; undefined if it is too long. */
async function textOf({ body }: Response): Promise<string | undefined> {
  if (body === null) return '';
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let [text, bytes] = ['', 0];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.length;
    if (bytes > maxBodyBytes) {
      await reader.cancel();
      return undefined;
    }
    text += decoder.decode(value, { stream: true });
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
