/**
 * A call: one request, its safe retries, and one deadline for all of them.
 */
import { textOf } from './body.ts';
import type { HeadersOfCall } from './headers.ts';
import { mayHaveChanged } from './lost-response.ts';
import { requireTimeout, type CallOptions, type Transport } from './options.ts';
import {
  failureOf,
  networkFailure,
  PlantStoreError,
  timeoutFailure,
  unexpectedResponse,
  type Failure,
} from './problem.ts';
import { isTemporary, maxRequestMs, pauseMs, type Effect } from './retry-rules.ts';
import { pause, unlessAborted, within } from './waiting.ts';

/** A request that takes longer counts as a failed connection. */
const lost = { timeoutMs: maxRequestMs, timeout: () => new Error('the response did not arrive') };

const successStatuses = {
  GET: [200],
  PATCH: [200],
  POST: [200, 201],
  PUT: [200, 201],
  DELETE: [204],
};
type Method = keyof typeof successStatuses;

export interface Reply<T> {
  status: number;
  headers: Headers;
  /** The body. */
  json: T;
}

export class Call {
  /** True after an attempt that failed but can have changed the store. */
  outcomeUnknown = false;
  /** Whether the call can use another token if the service refuses the first one. */
  canRenewToken = true;
  readonly #transport: Transport;
  readonly #effect: Effect;
  /** Aborts at the deadline, or with the signal of the caller. */
  #end = new AbortController().signal;
  #token = '';
  #isSending = false;

  constructor(transport: Transport, effect: Effect) {
    this.#transport = transport;
    this.#effect = effect;
  }

  /** Runs `attempt` until it succeeds, or until another attempt would be unsafe or too late. */
  async run<T>(
    attempt: (call: Call) => Promise<T>,
    { signal, timeoutMs = this.#transport.timeoutMs }: CallOptions = {},
  ): Promise<T> {
    requireTimeout(timeoutMs);
    const deadlineMs = performance.now() + timeoutMs;
    const timeout = () => this.error(timeoutFailure(timeoutMs), this.#isSending);
    return within({ timeoutMs, timeout, signal }, (end) => {
      this.#end = end;
      return this.#repeat(attempt, deadlineMs);
    });
  }

  async #repeat<T>(attempt: (call: Call) => Promise<T>, deadlineMs: number): Promise<T> {
    this.#token = await this.#askForToken();
    for (let retries = 0; ; retries++) {
      try {
        return await this.#withValidToken(attempt);
      } catch (error) {
        if (!(error instanceof PlantStoreError) || !this.#canRepeatAfter(error)) throw error;
        this.outcomeUnknown ||= error.outcomeUnknown;
        const { maxRetries, beforeRetry } = this.#transport;
        if (beforeRetry !== undefined) {
          await unlessAborted(beforeRetry(error), this.#end);
          continue;
        }
        const waitMs = pauseMs(error, retries);
        const isLate = performance.now() + waitMs >= deadlineMs;
        if (isLate || retries === maxRetries) throw error;
        await pause(waitMs, this.#end);
      }
    }
  }

  /** Repeats the attempt once in the call if the service refuses the token and there is another one. */
  async #withValidToken<T>(attempt: (call: Call) => Promise<T>): Promise<T> {
    try {
      return await attempt(this);
    } catch (error) {
      const isRefused = error instanceof PlantStoreError && error.status === 401;
      if (!isRefused || !this.canRenewToken) throw error;
      this.canRenewToken = false;
      const refused = this.#token;
      this.#token = await this.#askForToken(refused);
      if (this.#token === refused) throw error;
      return attempt(this);
    }
  }

  #askForToken(refused?: string): Promise<string> {
    return unlessAborted(this.#transport.token(refused), this.#end);
  }

  #canRepeatAfter(error: PlantStoreError): boolean {
    return isTemporary(error) && (this.#effect !== 'once' || !error.outcomeUnknown);
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
    if (text === undefined) {
      throw this.error(unexpectedResponse(status, 'The response is too long for Plant Store.'));
    }
    const json = parse(text);
    if (!successStatuses[method].includes(status)) throw this.error(failureOf(response, json));
    if (json === undefined && status !== 204) {
      const isJson = headers.get('content-type')?.includes('json');
      // A list that fails ends early, and some proxies hide that.
      throw this.error(isJson ? networkFailure(address) : failureOf(response, json));
    }
    return { status, headers, json: json as T }; // see above
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
      return await within({ ...lost, signal: this.#end }, async (signal) => {
        const response = await fetch(address, { ...init, signal });
        return { response, text: await textOf(response) };
      });
    } catch (cause) {
      this.#end.throwIfAborted();
      throw this.error(networkFailure(address, cause));
    } finally {
      this.#isSending = false;
    }
  }

  error(failure: Failure, mayHaveChangedNow = mayHaveChanged(failure)): PlantStoreError {
    const outcomeUnknown = this.#effect !== 'read' && (this.outcomeUnknown || mayHaveChangedNow);
    return new PlantStoreError(failure, outcomeUnknown);
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
