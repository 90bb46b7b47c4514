/**
 * The connection to the service, and the only place of the page that handles temporary problems: a call waits here
 * until the service responds, and then continues by itself.
 */
import { PlantStore, type PlantStoreError, type TokenSource } from '../../client/client.ts';
import { maxTimeoutMs } from '../../client/options.ts';
import { pauseMs } from '../../client/call.ts';
import { setNotice } from '../shared/banner.ts';
import { announce } from '../shared/toast.ts';

/** The address of the service, with its path prefix: that of this page. */
export const serviceUrl = new URL('.', location.href);

/** Aborts before the page is loaded again for another user: nothing that was begun for this one continues. */
export const leaving = new AbortController();

/** Waits grow no longer after this many failures: the page tries again every 4 to 6 seconds. */
const maxGrowth = 3;

let failures = 0;
/** Resolves when calls no longer wait for the service; undefined if none does. */
export let waiting: Promise<void> | undefined;
let endWait = () => {};
addEventListener('online', () => endWait());

/** Calls the service with a token. A temporary problem is shown. */
export function connect(token: string | TokenSource): PlantStore {
  return new PlantStore({
    url: serviceUrl,
    token,
    timeoutMs: maxTimeoutMs, // a call lasts until it succeeds
    beforeRetry: (problem) => (waiting ??= wait(problem)),
    fetch: async (url, init) => {
      const response = await fetch(url, init);
      if (response.status < 429) succeeded(); // the others can be temporary problems
      return response;
    },
  });
}

function succeeded(): void {
  if (failures === 0) return;
  failures = 0;
  endWait();
  announce('The service responds again.');
  setNotice('service', undefined);
}

/** Waits for a service that is not available. */
async function wait(failure: PlantStoreError): Promise<void> {
  const waitMs = pauseMs(failure, Math.min(failures++, maxGrowth));
  const hasResponded = failure.type !== 'about:blank';
  const { promise, resolve } = Promise.withResolvers<void>();
  endWait = resolve;
  setNotice('service', {
    title: hasResponded ? `${failure.title}.` : 'The service does not respond.',
    text: `The page keeps what it shows, and tries again in ${Math.ceil(waitMs / 1_000)} s.`,
    action: 'Try now',
    onAction: resolve,
  });
  const timer = setTimeout(resolve, waitMs);
  await promise;
  clearTimeout(timer);
  waiting = undefined;
}
