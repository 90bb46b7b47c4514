/**
 * The one error type that the service returns. `detail` and `faults` are for the client and `cause` is for the
 * log: nothing of a cause ever reaches a client.
 */
import { maxActiveTokens } from './access/own-tokens.ts';
import { maxGivenShares } from './access/share-storage.ts';

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
  | 'too-many-shares'
  | 'too-many-tokens'
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

/** Maximum number of faults that a problem lists. */
const maxListedFaults = 20;

/** The faults of a request: at most one for each place, and only the first ones with a detail. */
export class Faults {
  readonly listed: Fault[] = [];
  readonly #places = new Set<string>();
  /** Faults that were not added, because the list was full. */
  more = 0;

  get count(): number {
    return this.#places.size + this.more;
  }

  get isFull(): boolean {
    return this.listed.length === maxListedFaults;
  }

  add(place: FaultPlace, describe: () => string): void {
    const key = 'pointer' in place ? place.pointer : `?${place.parameter}`; // pointers begin with a slash
    if (this.#places.has(key)) return;
    this.#places.add(key);
    if (!this.isFull) this.listed.push({ ...place, detail: describe() });
  }
}

/** `count` is at least 1. Faults that are not listed are only counted. */
export function invalidRequest({ listed, count }: Pick<Faults, 'listed' | 'count'>): Problem {
  const more = count - listed.length;
  const rest = more === 0 ? 'each' : `${listed.length} of them, and there are ${more} more`;
  const detail =
    count === 1 && listed[0] !== undefined
      ? listed[0].detail
      : `The request has ${count} errors; "errors" lists ${rest}.`;
  return new Problem('invalid-request', detail, { faults: listed });
}

/** The same for one fault. */
export function invalidInput(place: FaultPlace, detail: string): Problem {
  return invalidRequest({ listed: [{ ...place, detail }], count: 1 });
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

function plants(count: number): string {
  return count === 1 ? '1 plant' : `${count} plants`;
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

export function tokenEnded(state: string): Problem {
  return new Problem('invalid-token', `The token is ${state}; get a new one.`);
}

/** A removed user cannot share: a later user of that name must not share anything. */
export function userRemoved(): Problem {
  return new Problem('invalid-token', 'The user of this token was removed. Get a new token.');
}

export function cannotRevoke(): Problem {
  return new Problem(
    'insufficient-scope',
    'Your token cannot revoke this one. A token that was created with another one can revoke itself and those that descend from it; any other token can revoke those with at most its scopes.',
  );
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
    `A user of this service can own at most ${plants(quota)}. Delete plants that you own, or ask the operator for a higher limit.`,
  );
}

export function storeQuotaExceeded(quota: number): Problem {
  return new Problem(
    'quota-exceeded',
    `A store of this service can have at most ${plants(quota)}. Delete plants of the store, or ask the operator for a higher limit.`,
  );
}
