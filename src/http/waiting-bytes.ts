/**
 * Bounds what long answers take of memory while they wait for their readers, in all and for each user.
 * Short answers are not counted: the system's buffers take them at once.
 */
import type { ServerResponse } from 'node:http';
import type { Identity } from '../access.ts';
import { Problem } from '../problem.ts';
import { waitingBytesMax, waitingBytesOfUserMax } from './limits.ts';

/** What one answer can do with the bounds. Both methods throw `overloaded` if there is no room. */
export interface Room {
  /** Saves the work for an answer that there is no room for. */
  check(bytes: number): void;
  /** Sets bytes aside until the response is over; nothing of it may have been sent by then. */
  reserve(bytes: number): void;
}

export class WaitingBytes {
  #total = 0;
  readonly #ofUsers = new Map<string, number>();

  roomFor({ store, user }: Identity, response: ServerResponse): Room {
    // Short pages never ask.
    const keyOf = () => `${store} ${user}`;
    const check = (bytes: number) => {
      const ofUser = this.#ofUsers.get(keyOf()) ?? 0;
      if (ofUser + bytes > waitingBytesOfUserMax || this.#total + bytes > waitingBytesMax) {
        throw noRoom();
      }
    };
    let reserved = 0;
    const reserve = (bytes: number) => {
      if (response.destroyed) return; // its client has gone, so it would never be over
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

function noRoom(): Problem {
  return new Problem(
    'overloaded',
    'Too many long lists wait for their readers: read those that you have asked for, or ask for short ' +
      'pages with "limit".',
  );
}
