/**
 * The one error type that the service returns. `detail` and `faults` are for the client and `cause` is for the
 * log: nothing of a cause ever reaches a client.
 */

const shown = (status: number, title: string) => ({ status, title });

/** What a problem can be, as RFC 9457 describes it to clients. docs/reference/errors.md has its causes. */
export const problemKinds = {
  'invalid-request': shown(400, 'The request is not valid'),
  'invalid-token': shown(401, 'A valid token is required'),
  'insufficient-scope': shown(403, 'The token lacks the required scope'),
  'token-restricted': shown(403, 'The token cannot do this'),
  'manager-required': shown(403, 'Only managers can do this'),
  'plant-read-only': shown(403, 'You can only read this plant'),
  'quota-exceeded': shown(403, 'The quota of plants is used up'),
  'plant-not-found': shown(404, 'Plant not found'),
  'path-not-found': shown(404, 'Path not found'),
  'changes-not-kept': shown(404, 'Changes are not kept'),
  'method-not-allowed': shown(405, 'Method not allowed'),
  'request-timeout': shown(408, 'The request took too long to arrive'),
  'share-not-found': shown(404, 'Share not found'),
  'token-not-found': shown(404, 'Token not found'),
  'user-not-found': shown(404, 'User not found'),
  'webhook-not-found': shown(404, 'Webhook not found'),
  'webhooks-disabled': shown(404, 'Webhooks are off'),
  'id-taken': shown(409, 'The id is already taken'),
  'last-manager': shown(409, 'The store would have no manager'),
  'user-owns-plants': shown(409, 'The user owns plants'),
  'too-many-shares': shown(409, 'Too many shares'),
  'too-many-tokens': shown(409, 'Too many tokens'),
  'too-many-webhooks': shown(409, 'Too many webhooks'),
  'cursor-ended': shown(410, 'The cursor is no longer valid'),
  'invitation-used': shown(410, 'The invitation was used'),
  'precondition-failed': shown(412, 'The condition does not hold'),
  'body-too-large': shown(413, 'The body is too large'),
  'unsupported-media-type': shown(415, 'The body must be JSON'),
  'expectation-failed': shown(417, 'The expectation cannot be met'),
  'idempotency-key-reused': shown(422, 'The idempotency key was used for another request'),
  'rate-limited': shown(429, 'Too many requests'),
  'headers-too-large': shown(431, 'The headers are too large'),
  'internal-error': shown(500, 'Internal error'),
  'method-not-implemented': shown(501, 'Method not implemented'),
  overloaded: shown(503, 'Not accepting requests now'),
  'storage-full': shown(503, 'The storage is full'),
  'storage-unavailable': shown(503, 'The storage is unavailable'),
  'provider-unavailable': shown(503, 'The identity provider is unavailable'),
  'outcome-unknown': shown(503, 'The outcome is unknown'),
  'version-not-supported': shown(505, 'HTTP version not supported'),
};

export type ProblemKind = keyof typeof problemKinds;

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

/** Returns a function that makes a problem whose detail is always the same. The cause of a failure is for the log. */
export function fixedProblem(kind: ProblemKind, detail: string): (cause?: unknown) => Problem {
  return (cause) => new Problem(kind, detail, { cause });
}

/** An unexpected error, which the client did not cause. */
export const defect = fixedProblem(
  'internal-error',
  'This is a bug in the service, not an error in your request.',
);

export const outcomeUnknown = fixedProblem(
  'outcome-unknown',
  'The change may or may not have been stored. Check before you send it again.',
);

export const storageUnavailable = fixedProblem(
  'storage-unavailable',
  'The storage is unavailable, so nothing was changed. Try again later.',
);

export const storageFull = fixedProblem(
  'storage-full',
  'The storage has no space left, so nothing was changed. The operator has to free some.',
);

/** Maximum number of writes without an outcome in a process; more are refused at once. */
export const maxPendingWrites = 4_096;

export const tooManyWrites = fixedProblem(
  'overloaded',
  'Too many writes are pending, so nothing was changed. Try again later.',
);

/** The same for a plant that does not exist and for one that the caller cannot access. */
export const plantNotFound = fixedProblem(
  'plant-not-found',
  'There is no plant with this id, or you do not have access to it.',
);

/** For those who can see the plant: others get `plantNotFound`. */
export const plantReadOnly = fixedProblem(
  'plant-read-only',
  'You can see this plant, but not change it. Ask its owner to share with write access.',
);

export const tokenEnded = (state: string) =>
  new Problem('invalid-token', `The token is ${state}. Get a new one.`);

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
