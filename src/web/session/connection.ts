/**
 * The connection to the service, and the only place of the page that handles temporary problems and refused tokens. A
 * call waits here until the service responds or the user has another token, and then continues by itself.
 */
import {
  PlantStore,
  type PlantStoreError,
  type Token,
  type TokenSource,
} from '../../client/client.ts';
import { pauseMs, unlessAborted } from '../../client/retry-rules.ts';
import { hideBanner, setCountdown, showBanner } from '../shared/banner.ts';
import { byId } from '../shared/dom.ts';
import { announce } from '../shared/toast.ts';
import { isOfService } from './token.ts';

/** How long one request can take. */
const timeoutMs = 15_000;
/** The longest pause between two attempts, unless the service asks for a longer one. */
const longestPauseMs = 15_000;

/** The address of the service, with its path prefix: that of this page. */
export const serviceUrl = new URL('.', location.href);

export class Connection {
  /** Calls the service with the token of the page. */
  readonly store: PlantStore = this.connect((refused) => this.#tokenAfter(refused));
  /** What the token in use grants; undefined until somebody has signed in. */
  info: Token | undefined;
  readonly #renew: () => Promise<void>;
  #token = '';
  #renewing: Promise<void> | undefined;
  #waiting: Promise<void> | undefined;
  #failures = 0;
  #endWait = () => {};

  /** `renew` gets another token, and resolves when it is in use. */
  constructor(renew: () => Promise<void>) {
    this.#renew = renew;
    addEventListener('online', () => this.#endWait());
  }

  /** Uses this token from now on. */
  use(token: string, info: Token): void {
    this.#token = token;
    this.info = info;
  }

  /** The service refuses this with the tokens of an identity provider. */
  get canCreateTokens(): boolean {
    return isOfService(this.#token);
  }

  /** Calls the service with another token. */
  connect(token: string | TokenSource): PlantStore {
    return new PlantStore({
      url: serviceUrl,
      token,
      timeoutMs: 2 ** 31 - 1, // the maximum: a call lasts until it succeeds
      beforeRetry: (problem) => (this.#waiting ??= this.#wait(problem)),
      fetch: (url, init) => this.#fetch(url, init),
    });
  }

  async #fetch(url: URL, init: RequestInit): Promise<Response> {
    const call = init.signal ?? new AbortController().signal;
    if (this.#waiting) await unlessAborted(this.#waiting, call);
    const signal = AbortSignal.any([call, AbortSignal.timeout(timeoutMs)]);
    const response = await fetch(url, { ...init, signal });
    if (response.status < 429) this.#succeeded(); // the others can be temporary problems
    return response;
  }

  async #tokenAfter(refused: string | undefined): Promise<string> {
    // Another call may have got a new token meanwhile.
    if (refused !== this.#token) return this.#token;
    this.#renewing ??= this.#renew().finally(() => {
      this.#renewing = undefined; // after an error too, so that the next call asks again
      hideBanner();
    });
    await this.#renewing;
    return this.#token;
  }

  #succeeded(): void {
    if (this.#failures === 0) return;
    this.#failures = 0;
    this.#endWait();
    announce('The service responds again.');
    if (this.#renewing === undefined) hideBanner();
    else showTokenBanner();
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

export function showTokenBanner(): void {
  showBanner({
    title: 'Your token no longer works.',
    text: 'The page keeps what it shows.',
    action: 'Paste another token',
    onAction: () => byId('renew', HTMLDialogElement).showModal(),
  });
}
