/**
 * Limits the memory of long responses that clients have not read yet, in total and for each user. Short responses
 * are not counted, because they fit in the socket buffers of the operating system.
 */
import type { ServerResponse } from 'node:http';
import { userKey, type Identity } from '../../access/access.ts';
import { Problem } from '../../problem.ts';
import { maxUnreadBytes, maxUnreadBytesOfUser } from '../limits.ts';

/** Responses up to this length are not counted. */
const maxUncountedChars = 16 * 1024;

/** The memory of one response, until it closes. Both methods throw `overloaded` if the budget is exceeded. */
interface Reservation {
  /** Sets the memory of the response. Call it before the work that needs more. */
  reserve(bytes: number): void;
  /** Sets it to the length of the whole response, unless that is short. */
  reserveText(text: string): void;
}

export class UnreadResponses {
  #total = 0;
  readonly #byUser = new Map<string, number>();

  reservationFor(user: Identity, response: ServerResponse): Reservation {
    let reserved: number | undefined; // undefined until the first one: short responses need none
    const reserve = (bytes: number) => {
      if (response.destroyed) return; // the client has disconnected, so no `close` would release them
      const key = userKey(user);
      this.#change(key, bytes - (reserved ?? 0));
      if (reserved === undefined) response.once('close', () => this.#change(key, -(reserved ?? 0)));
      reserved = bytes;
    };
    const reserveText = (text: string) => {
      const isShort = text.length <= maxUncountedChars;
      if (!isShort || reserved !== undefined) reserve(isShort ? 0 : Buffer.byteLength(text));
    };
    return { reserve, reserveText };
  }

  #change(key: string, bytes: number): void {
    const total = this.#total + bytes;
    const ofUser = (this.#byUser.get(key) ?? 0) + bytes;
    if (bytes > 0 && (ofUser > maxUnreadBytesOfUser || total > maxUnreadBytes)) {
      throw new Problem(
        'overloaded',
        'Too many long responses are unread. Read those that you have requested, or request short pages with "limit".',
      );
    }
    this.#total = total;
    if (ofUser === 0) this.#byUser.delete(key);
    else this.#byUser.set(key, ofUser);
  }
}
