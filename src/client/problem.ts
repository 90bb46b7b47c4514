/**
 * The error of the client. Every failed call throws one, unless your signal aborts the call: it then throws the
 * reason of the signal.
 */
import type { Fault, Problem, ProblemKind } from './types.ts';

/**
 * Problems that the client finds itself:
 * - `network`: the connection failed, or it closed before the whole response arrived
 * - `timeout`: the call took longer than `timeoutMs`
 * - `unexpected-response`: the response is not from Plant Store; often a proxy sent it
 */
export type ClientProblemKind = 'network' | 'timeout' | 'unexpected-response';

/** Later versions of the service can respond with kinds that are not listed here. */
export type AnyProblemKind = ProblemKind | ClientProblemKind | (string & {});

/** What is known about a failure. */
export interface Failure extends Problem {
  kind: AnyProblemKind;
  requestId?: string | undefined;
  retryAfterSeconds?: number | undefined;
  cause?: unknown;
}

/** The type of a problem without a document. */
const noType = 'about:blank';
const unknownOutcome = 'The change may or may not have been made.';
const notFromService =
  'The response is not from Plant Store, or redirects to another address. Check `url`, and any proxy in front of the service.';

export class PlantStoreError extends Error {
  override readonly name = 'PlantStoreError';
  /** The kind of problem: the last segment of `type`. If your code does not know it, use `status`. */
  readonly kind: AnyProblemKind;
  /** The type of the problem document; `about:blank` if there is no document. */
  readonly type: string;
  /** The kind in a few words, for people. */
  readonly title: string;
  /** The status code of the response; 0 if there is no response. */
  readonly status: number;
  /** What went wrong and how to fix it, for people. */
  readonly detail: string;
  /** Every fault of invalid input; empty for other problems. */
  readonly errors: readonly Fault[];
  /** Identifies the request in the log of the service. */
  readonly requestId: string | undefined;
  /** Why a cursor of changes has ended (`cursor-ended`); undefined for other problems. */
  readonly reason: Problem['reason'];
  /** How many seconds to wait before you try again, if the response specifies that. */
  readonly retryAfterSeconds: number | undefined;
  /** True if the call may have changed the store although it failed. Always false for calls that only read. */
  readonly outcomeUnknown: boolean;

  constructor(failure: Failure, outcomeUnknown: boolean) {
    // A problem document describes the outcome itself.
    const outcome = outcomeUnknown && failure.type === noType ? ` ${unknownOutcome}` : '';
    super(
      `${failure.kind}: ${failure.detail}${outcome}`,
      failure.cause === undefined ? {} : { cause: failure.cause },
    );
    this.kind = failure.kind;
    this.type = failure.type;
    this.title = failure.title;
    this.status = failure.status;
    this.detail = failure.detail;
    this.errors = failure.errors ?? [];
    this.requestId = failure.requestId;
    this.reason = failure.reason;
    this.retryAfterSeconds = failure.retryAfterSeconds;
    this.outcomeUnknown = outcomeUnknown;
  }
}

export function isProblem(error: unknown, kind: AnyProblemKind): error is PlantStoreError {
  return error instanceof PlantStoreError && error.kind === kind;
}

/** The failure that a response describes. */
export function failureOf({ status, headers }: Response, json: unknown): Failure {
  const retryAfter = headers.get('retry-after') ?? '';
  const problem = isProblemDocument(json)
    ? { ...json, status, kind: kindOf(json.type) }
    : clientFailure('unexpected-response', notFromService, status);
  return {
    ...problem,
    requestId: headers.get('x-request-id') ?? undefined,
    retryAfterSeconds: /^\d+$/.test(retryAfter) ? Number(retryAfter) : undefined,
  };
}

export function networkFailure({ origin }: URL, cause?: unknown): Failure {
  const detail = `The connection to ${origin} failed before the whole response arrived.${hintFor(origin)}`;
  return { ...clientFailure('network', detail), cause };
}

/** Browsers do not reveal that they refused the response of another origin. */
function hintFor(origin: string): string {
  const { location: page } = globalThis as { location?: { origin: string } }; // undefined outside of browsers
  if (page === undefined || page.origin === origin) return '';
  return ` If the service runs, it must allow the pages of ${page.origin} with --cors-origin.`;
}

const titles: Record<ClientProblemKind, string> = {
  network: 'Connection failed',
  timeout: 'Call timed out',
  'unexpected-response': 'Unexpected response',
};

/** A failure that the client finds itself. */
export function clientFailure(kind: ClientProblemKind, detail: string, status = 0): Failure {
  return { kind, type: noType, title: titles[kind], status, detail };
}

/** A type is a path, which can have a prefix: `/problems/id-taken`. */
function kindOf(type: string): AnyProblemKind {
  return type.slice(type.lastIndexOf('/') + 1);
}

function isProblemDocument(json: unknown): json is Problem {
  if (typeof json !== 'object' || json === null) return false;
  const { type, title, detail } = json as Partial<Problem>; // the next line checks it
  return [type, title, detail].every((member) => typeof member === 'string');
}
