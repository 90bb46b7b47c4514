/**
 * Limits the memory of long responses that clients have not read yet, in total and for each user. Short responses
 * are not counted, because they fit in the socket buffers of the operating system.
 */
import type { ServerResponse } from 'node:http';
import { userKey, type Identity } from '../../access/access.ts';
import { Problem } from '../../problem.ts';
import { FairSemaphore } from '../../shared/fair-semaphore.ts';
import { maxUnreadBytes, maxUnreadBytesOfUser, maxUnreadWaitMs } from '../limits.ts';

/** Responses up to this length are not counted. */
const maxUncountedChars = 16 * 1024;

export class UnreadResponses {
  readonly #bytes = new FairSemaphore({
    max: maxUnreadBytes,
    maxOfKey: maxUnreadBytesOfUser,
    maxWaitMs: maxUnreadWaitMs,
    refusal: tooManyUnread,
  });

  /**
   * Waits until the response can take that much memory, which it has until it closes. Throws `overloaded` if that takes
   * too long. Call the result with the memory that it needs from then on.
   */
  async reserve(
    user: Identity,
    response: ServerResponse,
    bytes: number,
  ): Promise<(bytes: number) => void> {
    const key = userKey(user);
    let reserved = bytes;
    await this.#bytes.acquire(key, bytes);
    const reduceTo = (needed: number) => {
      const left = response.destroyed ? 0 : needed;
      this.#bytes.release(key, reserved - left);
      reserved = left;
    };
    if (response.destroyed)
      reduceTo(0); // no `close` would follow
    else response.once('close', () => reduceTo(0));
    return reduceTo;
  }

  /** Takes the memory of a text without a wait, or throws `overloaded`. */
  reserveText(user: Identity, response: ServerResponse, text: string): void {
    if (text.length <= maxUncountedChars || response.destroyed) return;
    const key = userKey(user);
    const bytes = Buffer.byteLength(text);
    if (!this.#bytes.tryAcquire(key, bytes)) throw tooManyUnread();
    response.once('close', () => this.#bytes.release(key, bytes));
  }
}

function tooManyUnread(): Problem {
  return new Problem(
    'overloaded',
    'Too many long responses are unread. Read them first, or request short pages with "limit".',
  );
}
