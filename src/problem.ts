/**
 * The one error type that the service returns. `detail` and `faults` are for the client and `cause` is for the
 * log: nothing of a cause ever reaches a client.
 */

export type ProblemKind =
  | 'invalid-request'
  | 'invalid-token'
  | 'insufficient-scope'
  | 'token-restricted'
  | 'plant-read-only'
  | 'quota-exceeded'
  | 'plant-not-found'
  | 'path-not-found'
  | 'method-not-allowed'
  | 'request-timeout'
  | 'share-not-found'
  | 'token-not-found'
  | 'id-taken'
  | 'too-many-shares'
  | 'too-many-tokens'
  | 'precondition-failed'
  | 'idempotency-key-reused'
  | 'body-too-large'
  | 'unsupported-media-type'
  | 'expectation-failed'
  | 'rate-limited'
  | 'headers-too-large'
  | 'internal-error'
  | 'method-not-implemented'
  | 'overloaded'
  | 'storage-full'
  | 'storage-unavailable'
  | 'provider-unavailable'
  | 'outcome-unknown'
  | 'version-not-supported';

/** A JSON pointer (RFC 6901) into the body, or the name of a parameter: of the query, the path or the headers. */
export type FaultPlace = { pointer: string } | { parameter: string };

/** One error in the input: where it is, and how to fix it. */
export type Fault = FaultPlace & { detail: string };

export class Problem extends Error {
  override readonly name = 'Problem';
  readonly kind: ProblemKind;
  /** For the client: what is wrong and how to fix it. */
  readonly detail: string;
  readonly faults: readonly Fault[] | undefined;
  /** The scopes that the token lacks, separated by spaces. */
  readonly scope: string | undefined;
  /** Further members of the document. */
  readonly members: object | undefined;

  constructor(
    kind: ProblemKind,
    detail: string,
    more: {
      faults?: readonly Fault[];
      scope?: string | undefined;
      members?: object;
      cause?: unknown;
    } = {},
  ) {
    super(`${kind}: ${detail}`, { cause: more.cause });
    this.kind = kind;
    this.detail = detail;
    this.faults = more.faults;
    this.scope = more.scope;
    this.members = more.members;
  }
}

export function isProblem(error: unknown, kind: ProblemKind): error is Problem {
  return error instanceof Problem && error.kind === kind;
}

/** Maximum number of faults that a problem lists. */
const maxListedFaults = 20;

/** The faults of a request: at most one for each place, and only the first ones with a detail. */
export class Faults {
  readonly listed: Fault[] = [];
  /** Faults that are not listed. */
  more = 0;
  readonly #places = new Set<string>();

  add(place: FaultPlace, describe: () => string): void {
    const key = 'pointer' in place ? place.pointer : `?${place.parameter}`; // pointers begin with a slash
    if (this.#places.has(key)) return;
    this.#places.add(key);
    if (this.listed.length === maxListedFaults) this.more++;
    else this.listed.push({ ...place, detail: describe() });
  }
}

/** `faults` has at least one. `more` are not listed. */
export function invalidRequest(faults: readonly Fault[], more = 0): Problem {
  const count = faults.length + more;
  const listed = more === 0 ? 'them' : `the first ${faults.length}`;
  const all = `The request has ${count} errors. "errors" lists ${listed}.`;
  const detail = count === 1 ? faults[0]?.detail : undefined;
  return new Problem('invalid-request', detail ?? all, { faults });
}

export function invalidParameter(parameter: string, detail: string): Problem {
  return invalidRequest([{ parameter, detail }]);
}

/** `scope` are the scopes that would help, separated by spaces (RFC 6750, section 3.1). */
export function insufficientScope(scope: string, detail: string): Problem {
  return new Problem('insufficient-scope', detail, { scope });
}

/** Returns a function that makes the problem of a failure. The cause is for the log. */
function failure(kind: ProblemKind, detail: string): (cause: unknown) => Problem {
  return (cause) => new Problem(kind, detail, { cause });
}

/** An unexpected error, which the client did not cause. */
export const defect = failure(
  'internal-error',
  'This is a bug in the service, not an error in your request.',
);

export const outcomeUnknown = failure(
  'outcome-unknown',
  'The change may or may not have been stored. Check before you send it again.',
);

export const storageUnavailable = failure(
  'storage-unavailable',
  'The storage is unavailable, so nothing was changed. Try again later.',
);

export const storageFull = failure(
  'storage-full',
  'The storage has no space left, so nothing was changed. The operator has to free some.',
);

/** Maximum number of writes without an outcome in a process; more are refused at once. */
export const maxPendingWrites = 4_096;

export const tooManyWrites = () =>
  new Problem(
    'overloaded',
    'Too many writes are pending, so nothing was changed. Try again later.',
  );

/** The same for a plant that does not exist and for one that the caller cannot access. */
export const plantNotFound = () =>
  new Problem(
    'plant-not-found',
    'There is no plant with this id, or you do not have access to it.',
  );

/** For those who can see the plant: others get `plantNotFound`. */
export const plantReadOnly = () =>
  new Problem(
    'plant-read-only',
    'You can see this plant, but not change it. Ask its owner to share with write access.',
  );

/** The same whether or not there is such a user. */
export const shareNotFound = () =>
  new Problem('share-not-found', 'There is no share between you and a user of this name.');

export const tokenEnded = (state: string) =>
  new Problem('invalid-token', `The token is ${state}. Get a new one.`);

/** The same for a token of another user and for one that does not exist. */
export const tokenNotFound = () =>
  new Problem(
    'token-not-found',
    'You have no token with this id. "GET /tokens" lists your tokens.',
  );

/** Why a plant with the id cannot be restored. */
export const idInUse = (id: number) =>
  new Problem(
    'id-taken',
    `The store already has a plant with the id ${id}. It was restored before, or the id was used again.`,
  );

export const idTaken = (id: number) =>
  new Problem(
    'id-taken',
    `The store already has a plant with the id ${id}. To create one, choose another id, or leave it out.`,
  );
