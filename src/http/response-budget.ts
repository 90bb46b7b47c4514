/**
 * Limits the memory of long responses that clients have not read yet, in total and for each user. Short responses
 * are not counted, because they fit in the socket buffers of the operating system.
 */
import type { ServerResponse } from 'node:http';
import type { Identity } from '../access.ts';
import { Problem } from '../problem.ts';
import { maxUnreadBytes, maxUnreadBytesOfUser } from './limits.ts';

/** Responses up to this length are not counted. */
const maxUncountedChars = 16 * 1024;

/** The memory of one response, until it closes. All methods throw `overloaded` if the budget is exceeded. */
export interface Reservation {
  /** Checks the budget before work for a response that is probably short. */
  assertRoom(): void;
  /** Sets the memory of the response. Call it before the work that needs more. */
  reserve(bytes: number): void;
  /** Sets it to the length of the whole response, unless that is short. */
  reserveText(text: string): void;
}

export class ResponseBudget {
  #total = 0;
  readonly #byUser = new Map<string, number>();

  reservationFor({ store, user }: Identity, response: ServerResponse): Reservation {
    // A function, because short pages never need it.
    const userKey = () => `${store} ${user}`;
    let reserved = 0;
    let isReleasedAtClose = false;
    const reserve = (bytes: number) => {
      if (response.destroyed) return; // the client has disconnected, so no `close` would release them
      const key = userKey();
      if (bytes > reserved) this.#assertRoom(key, bytes - reserved);
      this.#add(key, bytes - reserved);
      reserved = bytes;
      if (!isReleasedAtClose) response.once('close', () => this.#add(key, -reserved));
      isReleasedAtClose = true;
    };
    return {
      reserve,
      assertRoom: () => {
        if (this.#total > 0) this.#assertRoom(userKey(), maxUncountedChars);
      },
      reserveText: (text) => {
        const isShort = text.length <= maxUncountedChars;
        if (!isShort || reserved > 0) reserve(isShort ? 0 : Buffer.byteLength(text));
      },
    };
  }

  #assertRoom(userKey: string, bytes: number): void {
    const ofUser = this.#byUser.get(userKey) ?? 0;
    if (ofUser + bytes > maxUnreadBytesOfUser || this.#total + bytes > maxUnreadBytes)
      throw tooManyUnread();
  }

  #add(key: string, bytes: number): void {
    this.#total += bytes;
    const ofUser = (this.#byUser.get(key) ?? 0) + bytes;
    if (ofUser === 0) this.#byUser.delete(key);
    else this.#byUser.set(key, ofUser);
  }
}

function tooManyUnread(): Problem {
  return new Problem(
    'overloaded',
    'Too many long responses are unread. Read those that you have requested, or request short pages ' +
      'with "limit".',
  );
}
