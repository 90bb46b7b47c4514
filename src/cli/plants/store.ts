import { readFileSync } from 'node:fs';
import { PlantStore, PlantStoreError } from '../../client/client.ts';
import { Refusal, UsageError } from '../../refusal.ts';
import { causeOf } from '../reason.ts';
import { printable } from './printable.ts';

export interface StoreOptions {
  url: string;
  token?: string | undefined;
}

const standardInput = 0;
/** Few, because a person at a terminal waits. The import repeats its calls for longer. */
const maxRetries = 2;

/** Runs `work` with the client, and turns its errors into messages for people. */
export async function withStore<T>(
  { url, token }: StoreOptions,
  work: (store: PlantStore) => Promise<T>,
): Promise<T> {
  try {
    return await work(new PlantStore({ url, token: readToken(token), maxRetries }));
  } catch (error) {
    if (!(error instanceof PlantStoreError)) throw error;
    throw new Refusal(printable(messageOf(error, url)), { cause: error });
  }
}

function messageOf({ kind, detail, cause, outcomeUnknown }: PlantStoreError, url: string): string {
  if (outcomeUnknown) {
    return `The response was lost, so the change may have been made. Check it before you repeat the command. ${detail}`;
  }
  if (kind === 'network') {
    return `Cannot connect to ${url}: ${causeOf(cause)}. Start the service, or set its address with --url.`;
  }
  if (kind === 'invalid-token') {
    return `${detail} Set another token in PLANT_STORE_TOKEN or with --token.`;
  }
  if (kind === 'unexpected-response' || kind === 'path-not-found') {
    return `Cannot use Plant Store at ${url}. Check the address, or set another with --url. Cause: ${detail}`;
  }
  return detail;
}

/** A message never contains the token. */
function readToken(source: string | undefined): string {
  const token = source?.startsWith('@')
    ? readFileSync(source.slice(1), 'utf8')
    : source === '-'
      ? readFileSync(standardInput, 'utf8')
      : source;
  if (token === undefined || token.trim() === '') {
    throw new UsageError('There is no token. Set it in PLANT_STORE_TOKEN or with --token.');
  }
  if (!/^[\x21-\x7e]+$/.test(token.trim())) {
    throw new UsageError('The token has characters that no token has. Check what you passed.');
  }
  return token.trim();
}
