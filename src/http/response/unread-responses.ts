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

export class UnreadResponses {
  #total = 0;
  readonly #byUser = new Map<string, number>();

  reservationFor(user: Identity, response: ServerResponse): Reservation {
    return new Reservation(this, user, response);
  }

  /** Throws `overloaded` if that exceeds a limit. `key` identifies a user. */
  add(key: string, bytes: number): void {
    const total = this.#total + bytes;
    const ofUser = (this.#byUser.get(key) ?? 0) + bytes;
    if (bytes > 0 && (ofUser > maxUnreadBytesOfUser || total > maxUnreadBytes)) {
      throw new Problem(
        'overloaded',
        'Too many long responses are unread. Read them first, or request short pages with "limit".',
      );
    }
    this.#total = total;
    if (ofUser === 0) this.#byUser.delete(key);
    else this.#byUser.set(key, ofUser);
  }
}

/** The memory of one response, until it closes. Both methods throw `overloaded` if that exceeds a limit. */
class Reservation {
  readonly #all: UnreadResponses;
  readonly #user: Identity;
  readonly #response: ServerResponse;
  /** Undefined until the first one: short responses need none. */
  #reserved: number | undefined;

  constructor(all: UnreadResponses, user: Identity, response: ServerResponse) {
    this.#all = all;
    this.#user = user;
    this.#response = response;
  }

  /** Sets the memory of the response. Call it before the work that needs more. */
  reserve(bytes: number): void {
    if (this.#response.destroyed) return; // the client has disconnected, so no `close` would release them
    const key = userKey(this.#user);
    this.#all.add(key, bytes - (this.#reserved ?? 0));
    if (this.#reserved === undefined) {
      this.#response.once('close', () => this.#all.add(key, -(this.#reserved ?? 0)));
    }
    this.#reserved = bytes;
  }

  /** Sets the memory to the length of the whole response, unless the response is short. */
  reserveText(text: string): void {
    const isShort = text.length <= maxUncountedChars;
    if (!isShort || this.#reserved !== undefined) {
      this.reserve(isShort ? 0 : Buffer.byteLength(text));
    }
  }
}
