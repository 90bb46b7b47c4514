/**
 * Limits the memory of long responses until clients have read them, in total and for each user. Short responses are not
 * counted, because they fit in the socket buffers of the operating system.
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
   * Waits until there is memory for a response that needs that much at most, or throws `overloaded` if that takes too
   * long. Call the returned function with what the complete response needs. The rest is released when it closes.
   */
  async reserve(
    user: Identity,
    response: ServerResponse,
    maxBytes: number,
  ): Promise<(bytes: number) => void> {
    await this.#bytes.acquire(userKey(user), maxBytes);
    return this.#releaseOnClose(userKey(user), response, maxBytes);
  }

  /** Takes the memory of a text without a wait, or throws `overloaded`. */
  reserveText(user: Identity, response: ServerResponse, text: string): void {
    if (text.length <= maxUncountedChars) return;
    const bytes = Buffer.byteLength(text);
    if (!this.#bytes.tryAcquire(userKey(user), bytes)) throw tooManyUnread();
    this.#releaseOnClose(userKey(user), response, bytes);
  }

  #releaseOnClose(key: string, response: ServerResponse, bytes: number): (bytes: number) => void {
    let held = bytes;
    const reduceTo = (needed: number) => {
      const left = response.destroyed ? 0 : needed;
      this.#bytes.release(key, held - left);
      held = left;
    };
    if (response.destroyed)
      reduceTo(0); // no `close` would follow
    else response.once('close', () => reduceTo(0));
    return reduceTo;
  }
}

function tooManyUnread(): Problem {
  return new Problem(
    'overloaded',
    'Too many long responses are unread. Read them first, or request short pages with "limit".',
  );
}
