/**
 * Bounds what long answers take of memory while they wait for their readers, in all and for each user.
 * Short answers are not counted: the system's buffers take them at once.
 */
import type { ServerResponse } from 'node:http';
import type { Identity } from '../access.ts';
import { Problem } from '../problem.ts';
import { waitingBytesMax, waitingBytesOfUserMax } from './limits.ts';

export class WaitingBytes {
  #total = 0;
  readonly #ofUsers = new Map<string, number>();

  /**
   * Sets `bytes` aside until the response is over. Throws `overloaded` if there is no room; nothing of
   * the answer may have been sent by then.
   */
  reserve({ store, user }: Identity, bytes: number, response: ServerResponse): void {
    const key = `${store} ${user}`;
    const ofUser = this.#ofUsers.get(key) ?? 0;
    if (ofUser + bytes > waitingBytesOfUserMax || this.#total + bytes > waitingBytesMax) {
      throw new Problem(
        'overloaded',
        'Too many long lists wait for their readers: read those that you have asked for, or ask for ' +
          'short pages with "limit".',
      );
    }
    this.#add(key, bytes);
    response.once('close', () => this.#add(key, -bytes));
  }

  #add(key: string, bytes: number): void {
    this.#total += bytes;
    const ofUser = (this.#ofUsers.get(key) ?? 0) + bytes;
    if (ofUser === 0) this.#ofUsers.delete(key);
    else this.#ofUsers.set(key, ofUser);
  }
}
