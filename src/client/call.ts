/**
 * A call of the client: a request with its safe retries, and one deadline for all of it.
 */
import {
  failureOf,
  networkFailure,
  PlantStoreError,
  timeoutFailure,
  type Failure,
} from './problem.ts';
import { isTemporary, mayHaveChanged, pause, pauseMs, type Effect } from './retry.ts';

/** What all calls of a client share. */
export interface Transport {
  fetch: (url: URL, init: RequestInit) => Promise<Response>;
  headers: Readonly<Record<string, string>>;
  /** How long one call can take. */
  timeoutMs: number;
  maxRetries: number;
}

export interface Reply {
  headers: Headers;
  /** The body; undefined if there is none. */
  json: unknown;
}

export class Call {
  /** True after an attempt that failed, but may have changed the store. */
  outcomeUnknown = false;
  readonly #transport: Transport;
  readonly #effect: Effect;
  /** Aborts at the deadline, or with the signal of the caller. */
  readonly #end = new AbortController();
  readonly #deadlineMs: number;

  private constructor(transport: Transport, effect: Effect) {
    this.#transport = transport;
    this.#effect = effect;
    this.#deadlineMs = performance.now() + transport.timeoutMs;
  }

  /** Runs `attempt` until it succeeds, or until a repetition is not safe or in time. Throws its last error. */
  static async run<T>(
    transport: Transport,
    effect: Effect,
    signal: AbortSignal | undefined,
    attempt: (call: Call) => Promise<T>,
  ): Promise<T> {
    signal?.throwIfAborted();
    const call = new Call(transport, effect);
    const abort = () => call.#end.abort(signal?.reason);
    signal?.addEventListener('abort', abort);
    const timer = setTimeout(() => {
      call.#end.abort(call.error(timeoutFailure(transport.timeoutMs)));
    }, transport.timeoutMs);
    try {
      return await call.#run(attempt);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
    }
  }

  /** Sends one request. Throws a PlantStoreError, or the reason of the caller's signal. */
  async send(method: 'GET' | 'POST' | 'DELETE', url: URL, body?: object): Promise<Reply> {
    const { fetch, headers } = this.#transport;
    const { signal } = this.#end;
    let response: Response;
    let text: string;
    try {
      response = await fetch(url, {
        method,
        headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
        ...(body && { body: JSON.stringify(body) }),
        redirect: 'manual', // never send the token to another address
        signal,
      });
      text = await response.text();
    } catch (cause) {
      signal.throwIfAborted();
      throw this.error(networkFailure(cause));
    }
    const isJson = /\bjson\b/.test(response.headers.get('content-type') ?? '');
    const json = isJson ? this.#parse(text) : undefined;
    if (!response.ok) throw this.error(failureOf(response, json));
    return { headers: response.headers, json };
  }

  error(failure: Failure): PlantStoreError {
    // That the id is taken by another plant is certain, whatever happened before.
    const unknownBefore = this.outcomeUnknown && failure.kind !== 'id-taken';
    const outcomeUnknown = this.#effect !== 'read' && (unknownBefore || mayHaveChanged(failure));
    return new PlantStoreError(failure, outcomeUnknown);
  }

  async #run<T>(attempt: (call: Call) => Promise<T>): Promise<T> {
    for (let retries = 0; ; retries++) {
      try {
        return await attempt(this);
      } catch (error) {
        if (!(error instanceof PlantStoreError) || !this.#canRepeatAfter(error)) throw error;
        const waitMs = pauseMs(error, retries);
        const isInTime = performance.now() + waitMs < this.#deadlineMs;
        if (retries === this.#transport.maxRetries || !isInTime) throw error;
        this.outcomeUnknown ||= error.outcomeUnknown;
        await pause(waitMs, this.#end.signal);
      }
    }
  }

  #canRepeatAfter(error: PlantStoreError): boolean {
    return isTemporary(error) && (this.#effect !== 'once' || !error.outcomeUnknown);
  }

  /** A response that ends early is not JSON. */
  #parse(text: string): unknown {
    try {
      return JSON.parse(text);
    } catch (cause) {
      throw this.error(networkFailure(cause));
    }
  }
}
