/**
 * Bounds the memory of long responses that their clients have not read yet, in total and for each user.
 * Short responses are not counted: the buffers of the operating system take them at once.
 */
import type { ServerResponse } from 'node:http';
import type { Identity } from '../access.ts';
import { Problem } from '../problem.ts';
import { unreadBytesMax, unreadBytesOfUserMax } from './limits.ts';

/** The budget of one response. Both methods throw `overloaded` if it is exceeded. */
export interface Reservation {
  /** Throws before any work is done for a response that does not fit. */
  check(bytes: number): void;
  /** Reserves bytes until the response is finished. None of them can have been sent before. */
  reserve(bytes: number): void;
}

export class ResponseBudget {
  #total = 0;
  readonly #ofUsers = new Map<string, number>();

  reservationFor({ store, user }: Identity, response: ServerResponse): Reservation {
    // A function, because short pages never need it.
    const keyOf = () => `${store} ${user}`;
    const check = (bytes: number) => {
      const ofUser = this.#ofUsers.get(keyOf()) ?? 0;
      if (ofUser + bytes > unreadBytesOfUserMax || this.#total + bytes > unreadBytesMax) {
        throw tooManyUnreadLists();
      }
    };
    let reserved = 0;
    const reserve = (bytes: number) => {
      if (response.destroyed) return; // its client is gone, so no `close` would release them
      check(bytes);
      const key = keyOf();
      if (reserved === 0) response.once('close', () => this.#add(key, -reserved));
      reserved += bytes;
      this.#add(key, bytes);
    };
    return { check, reserve };
  }

  #add(key: string, bytes: number): void {
    this.#total += bytes;
    const ofUser = (this.#ofUsers.get(key) ?? 0) + bytes;
    if (ofUser === 0) this.#ofUsers.delete(key);
    else this.#ofUsers.set(key, ofUser);
  }
}

function tooManyUnreadLists(): Problem {
  return new Problem(
    'overloaded',
    'Too many long lists are unread. Read those that you have requested, or request short pages ' +
      'with "limit".',
  );
}
