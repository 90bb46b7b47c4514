/**
 * The one error type that the service returns. `detail` and `faults` are for the client and `cause` is for the
 * log: nothing of a cause ever reaches a client.
 */
import { maxId } from './ids.ts';
import { maxActiveTokens } from './own-tokens.ts';
import { maxGivenShares } from './share-storage.ts';

export type ProblemKind =
  | 'invalid-request'
  | 'invalid-token'
  | 'insufficient-scope'
  | 'quota-exceeded'
  | 'plant-not-found'
  | 'path-not-found'
  | 'method-not-allowed'
  | 'request-timeout'
  | 'share-not-found'
  | 'token-not-found'
  | 'id-taken'
  | 'ids-exhausted'
  | 'too-many-shares'
  | 'too-many-tokens'
  | 'body-too-large'
  | 'unsupported-media-type'
  | 'expectation-failed'
  | 'rate-limited'
  | 'headers-too-large'
  | 'internal-error'
  | 'overloaded'
  | 'storage-full'
  | 'storage-unavailable'
  | 'provider-unavailable'
  | 'outcome-unknown';

/** A JSON pointer (RFC 6901) into the body, or the name of a query or path parameter. */
export type FaultPlace = { pointer: string } | { parameter: string };

/** One error in the input: where it is, and how to fix it. */
export type Fault = FaultPlace & { detail: string };

export class Problem extends Error {
  override readonly name = 'Problem';
  readonly kind: ProblemKind;
  /** For the client: what is wrong and how to fix it. */
  readonly detail: string;
  readonly faults: readonly Fault[] | undefined;

  constructor(
    kind: ProblemKind,
    detail: string,
    more: { faults?: readonly Fault[]; cause?: unknown } = {},
  ) {
    super(`${kind}: ${detail}`, { cause: more.cause });
    this.kind = kind;
    this.detail = detail;
    this.faults = more.faults;
  }
}

export function isProblem(error: unknown, kind: ProblemKind): error is Problem {
  return error instanceof Problem && error.kind === kind;
}

/** `faults` has at least one entry. */
export function invalidRequest(faults: readonly Fault[]): Problem {
  const [first, ...others] = faults;
  const detail =
    first !== undefined && others.length === 0
      ? first.detail
      : `The request has ${faults.length} errors; "errors" lists each.`;
  return new Problem('invalid-request', detail, { faults });
}

/** An unexpected error, which the client did not cause. */
export function defect(cause: unknown): Problem {
  return new Problem('internal-error', 'The service failed; the request is not the cause.', {
    cause,
  });
}

export function outcomeUnknown(cause: unknown): Problem {
  return new Problem(
    'outcome-unknown',
    'The change may or may not have been stored. Check before you send it again.',
    { cause },
  );
}

export function storageUnavailable(cause: unknown): Problem {
  return new Problem(
    'storage-unavailable',
    'The storage is unavailable now. Nothing was changed; try again later.',
    {
      cause,
    },
  );
}

export function storageFull(cause: unknown): Problem {
  return new Problem('storage-full', 'There is no space left to store this. Nothing was changed.', {
    cause,
  });
}

export function tooManyWrites(): Problem {
  return new Problem(
    'overloaded',
    'Too many writes are pending. Nothing was changed; try again later.',
  );
}

/** The same for a plant that does not exist and for one that the caller cannot access. */
export function plantNotFound(): Problem {
  return new Problem(
    'plant-not-found',
    'There is no plant with this id, or you do not have access to it.',
  );
}

/** The same whether or not there is such a user. */
export function shareNotFound(): Problem {
  return new Problem('share-not-found', 'There is no share between you and a user of this name.');
}

export function tooManyShares(): Problem {
  return new Problem(
    'too-many-shares',
    `You share with ${maxGivenShares} users, which is the maximum. End a share first.`,
  );
}

/** The user was removed after the token was checked. */
export function userRemoved(): Problem {
  return new Problem('invalid-token', 'The user of this token was removed. Get a new token.');
}

/** The same for a token of another user and for one that does not exist. */
export function tokenNotFound(): Problem {
  return new Problem(
    'token-not-found',
    'You have no token with this id. "GET /tokens" lists your tokens.',
  );
}

export function tooManyTokens(): Problem {
  return new Problem(
    'too-many-tokens',
    `You have ${maxActiveTokens} active tokens or more, which is the maximum. Revoke one that you do not need.`,
  );
}

export function idTaken(id: number): Problem {
  return new Problem(
    'id-taken',
    `The store already has a plant with the id ${id}. Send another id, or none to have one assigned.`,
  );
}

export function userQuotaExceeded(quota: number): Problem {
  return new Problem(
    'quota-exceeded',
    `A user of this service can own at most ${quota} plants. Delete plants that you own, or ask the operator for a higher limit.`,
  );
}

export function storeQuotaExceeded(quota: number): Problem {
  return new Problem(
    'quota-exceeded',
    `A store of this service can have at most ${quota} plants. Delete plants of the store, or ask the operator for a higher limit.`,
  );
}

export function idsExhausted(): Problem {
  return new Problem(
    'ids-exhausted',
    `The store has used the largest id, ${maxId}, so it cannot assign another. Send an id of your own.`,
  );
}
