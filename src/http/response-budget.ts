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

/** The budget of one response. All methods throw `overloaded` if it is exceeded. */
export interface Reservation {
  /** Checks the budget early, before work is done for a response that would exceed it. */
  check(bytes: number): void;
  /** Reserves bytes until the response closes. Call it before they are sent. */
  reserve(bytes: number): void;
  /** Reserves the bytes of a whole response, unless it is short. */
  reserveText(text: string): void;
}

export class ResponseBudget {
  #total = 0;
  readonly #byUser = new Map<string, number>();

  reservationFor({ store, user }: Identity, response: ServerResponse): Reservation {
    // A function, because short pages never need it.
    const userKey = () => `${store} ${user}`;
    const check = (bytes: number) => {
      const ofUser = this.#byUser.get(userKey()) ?? 0;
      if (ofUser + bytes > maxUnreadBytesOfUser || this.#total + bytes > maxUnreadBytes) {
        throw tooManyUnread();
      }
    };
    let reserved = 0;
    const reserve = (bytes: number) => {
      if (response.destroyed) return; // the client has disconnected, so no `close` would release them
      check(bytes);
      const key = userKey();
      if (reserved === 0) response.once('close', () => this.#add(key, -reserved));
      reserved += bytes;
      this.#add(key, bytes);
    };
    const reserveText = (text: string) => {
      if (text.length > maxUncountedChars) reserve(Buffer.byteLength(text));
    };
    return { check, reserve, reserveText };
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
