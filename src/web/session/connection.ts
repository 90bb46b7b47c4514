/**
 * The connection to the service. It repeats requests after temporary problems, shows when it tries again, and asks for
 * another token if this one no longer works. Tasks that wait for it continue by themselves.
 */
import {
  PlantStore,
  PlantStoreError,
  type ListOptions,
  type PlantField,
  type PlantWith,
  type Token,
} from '../../client/client.ts';
import { isTemporary, pauseMs } from '../../client/retry.ts';
import { hideBanner, setCountdown, showBanner } from '../shared/banner.ts';
import { byId } from '../shared/dom.ts';
import { announce } from '../shared/toast.ts';
import { isOfService } from './token.ts';

const timeoutMs = 15_000;
/** The longest pause between two attempts, unless the service asks for a longer one. */
const longestPauseMs = 15_000;

/** The address of the service, with its path prefix: that of this page. */
export const serviceUrl = new URL('.', location.href);

/** Whom a token belongs to: a user of a store. */
export function ownerOf({ store, user }: Token): string {
  return JSON.stringify([store, user]);
}

/** Ends the tasks that wait for a token if the new one belongs to another user. */
class OtherUser extends Error {
  override readonly name = 'OtherUser';
}

interface TokenSources {
  refresh: () => Promise<boolean>;
  renew: () => Promise<void>;
}

interface RunOptions {
  signal?: AbortSignal;
  once?: boolean;
}

export class Connection {
  #token = '';
  /** Who the token belongs to. */
  #owner = '';
  /** What the token grants. */
  #info: Token | undefined;
  /** Undefined until somebody has signed in. */
  #store: PlantStore | undefined;
  /** Gets another token without the user. Resolves to false if that is not possible. */
  readonly #refresh: () => Promise<boolean>;
  /** Asks for another token. Resolves when there is one. */
  readonly #renew: () => Promise<void>;
  #renewing: Promise<void> | undefined;
  #waiting: Promise<void> | undefined;
  #failures = 0;
  #endWait = () => {};

  constructor({ refresh, renew }: TokenSources) {
    this.#refresh = refresh;
    this.#renew = renew;
    addEventListener('online', () => this.#endWait());
  }

  /** Uses this token from now on. */
  use(token: string, info: Token): void {
    this.#token = token;
    this.#info = info;
    this.#owner = ownerOf(info);
    this.#store = connect(token);
  }

  /** What the token in use grants. */
  get info(): Token {
    if (this.#info === undefined) throw new Error('use() comes first');
    return this.#info;
  }

  /** The service refuses this with the tokens of an identity provider. */
  get canCreateTokens(): boolean {
    return isOfService(this.#token);
  }

  /** What a token grants. Throws a PlantStoreError if it does not work. */
  async check(token: string): Promise<Token> {
    const store = connect(token);
    return this.#repeat(() => store.token(), {});
  }

  /**
   * Runs the task until it succeeds: again after a temporary problem, and with another token after a 401. Throws
   * any other error of the task, and the reason of the signal. A task that runs `once` is not repeated if it may have
   * succeeded.
   */
  async run<T>(task: (store: PlantStore) => Promise<T>, options: RunOptions = {}): Promise<T> {
    const owner = this.#owner;
    // What one user has begun must neither happen nor be shown in the store of another.
    const assertSameUser = () => {
      if (this.#owner !== owner) throw new OtherUser('another user has signed in');
    };
    for (;;) {
      const store = this.#store;
      if (store === undefined) throw new Error('use() comes first');
      const attempt = () => {
        assertSameUser();
        return task(store);
      };
      try {
        const result = await this.#repeat(attempt, options);
        assertSameUser();
        return result;
      } catch (error) {
        options.signal?.throwIfAborted();
        assertSameUser();
        if (!(error instanceof PlantStoreError) || error.status !== 401) throw error;
        // Another task may have got a new token meanwhile.
        if (store === this.#store) await (this.#renewing ??= this.#askForToken());
      }
    }
  }

  /** Reads one page of up to `limit` plants. It is empty after the last plant. */
  async page<const F extends readonly PlantField[]>(
    options: ListOptions<F> & { limit: number; signal: AbortSignal },
  ): Promise<PlantWith<F>[]> {
    const read = async (store: PlantStore) => (await store.pages(options).next()).value ?? [];
    return this.run(read, { signal: options.signal });
  }

  async #repeat<T>(task: () => Promise<T>, { signal, once = false }: RunOptions): Promise<T> {
    for (;;) {
      await this.#waiting;
      signal?.throwIfAborted();
      try {
        const result = await task();
        this.#succeeded();
        return result;
      } catch (error) {
        signal?.throwIfAborted();
        if (!(error instanceof PlantStoreError) || !isTransient(error)) throw error;
        if (once && error.outcomeUnknown) throw error;
        this.#waiting ??= this.#wait(error);
      }
    }
  }

  #succeeded(): void {
    if (this.#failures === 0) return;
    this.#failures = 0;
    this.#endWait();
    announce('The service responds again.');
    if (this.#renewing === undefined) hideBanner();
    else showTokenBanner();
  }

  async #askForToken(): Promise<void> {
    try {
      if (!(await this.#refresh())) {
        showTokenBanner();
        await this.#renew();
      }
      hideBanner();
    } finally {
      this.#renewing = undefined; // after an error too, so that the next task asks again
    }
  }

  /** Waits, and shows for how long. */
  async #wait(failure: PlantStoreError): Promise<void> {
    const longestMs = Math.max(longestPauseMs, (failure.retryAfterSeconds ?? 0) * 1_000);
    const untilMs = performance.now() + Math.min(pauseMs(failure, this.#failures), longestMs);
    this.#failures++;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#endWait = resolve;
    showBanner({
      title: bannerTitle(failure),
      text: 'The page keeps what it shows, and continues by itself.',
      action: 'Try now',
      onAction: resolve,
    });
    const countDown = () => {
      const seconds = Math.ceil((untilMs - performance.now()) / 1_000);
      if (seconds <= 0) resolve();
      else setCountdown(`Trying again in ${seconds} s.`);
    };
    countDown();
    const ticking = setInterval(countDown, 200);
    await promise;
    clearInterval(ticking);
    if (this.#failures > 0) setCountdown('Trying again …');
    this.#waiting = undefined;
  }
}

function bannerTitle({ kind, title }: PlantStoreError): string {
  if (kind === 'overloaded') return 'The service is busy.';
  if (kind === 'rate-limited') return 'You have reached a limit of the service.';
  if (kind === 'storage-full' || kind === 'storage-unavailable') return `${title}.`;
  return 'The service does not respond.';
}

function showTokenBanner(): void {
  showBanner({
    title: 'Your token no longer works.',
    text: 'The page keeps what it shows.',
    action: 'Paste another token',
    onAction: () => byId('renew', HTMLDialogElement).showModal(),
  });
}

function connect(token: string): PlantStore {
  return new PlantStore({ url: serviceUrl, token, timeoutMs, maxRetries: 0 });
}

function isTransient(error: PlantStoreError): boolean {
  return isTemporary(error) || error.kind === 'timeout';
}
