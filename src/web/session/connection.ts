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
import { maxTimeoutMs } from '../../client/options.ts';
import { pauseMs } from '../../client/retry-rules.ts';
import { hideBanner, showBanner } from '../shared/banner.ts';
import { byId } from '../shared/dom.ts';
import { announce } from '../shared/toast.ts';
import { isOfService } from './token.ts';

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
      timeoutMs: maxTimeoutMs, // a call lasts until it succeeds
      beforeRetry: (problem) => (this.#waiting ??= this.#wait(problem)),
      fetch: async (url, init) => {
        const response = await fetch(url, init);
        if (response.status < 429) this.#succeeded(); // the others can be temporary problems
        return response;
      },
    });
  }

  async #tokenAfter(refused: string | undefined): Promise<string> {
    await this.#waiting; // a new call would fail too
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

  /** Waits for a service that is not available. */
  async #wait(failure: PlantStoreError): Promise<void> {
    const waitMs = pauseMs(failure, this.#failures++);
    const hasResponded = failure.type !== 'about:blank';
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#endWait = resolve;
    showBanner({
      title: hasResponded ? `${failure.title}.` : 'The service does not respond.',
      text: `The page keeps what it shows, and tries again in ${Math.ceil(waitMs / 1_000)} s.`,
      action: 'Try now',
      onAction: resolve,
    });
    const timer = setTimeout(resolve, waitMs);
    await promise;
    clearTimeout(timer);
    this.#waiting = undefined;
  }
}

export function showTokenBanner(): void {
  showBanner({
    title: 'Your token no longer works.',
    text: 'The page keeps what it shows.',
    action: 'Paste another token',
    onAction: () => byId('renew', HTMLDialogElement).showModal(),
  });
}
