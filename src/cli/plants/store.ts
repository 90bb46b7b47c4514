import { PlantStore, PlantStoreError, type PlantStoreOptions } from '../../client/client.ts';
import { printable } from '../../client/printable.ts';
import { Refusal, UsageError } from '../../refusal.ts';
import { causeOf } from '../errors.ts';
import { readInput } from '../output.ts';

/** The options of every command that uses a service. */
export interface StoreOptions {
  url: string;
  token?: string | undefined;
  json?: true | undefined;
}

/** Few, because a person at a terminal waits. */
const maxRetries = 2;

/** Runs `work` with a client, which has these options, and turns its errors into messages for people. */
export async function withStore(
  { url, token }: StoreOptions,
  work: (store: PlantStore, options: PlantStoreOptions) => Promise<void>,
): Promise<void> {
  try {
    const options = { url, token: await readToken(token), maxRetries };
    await work(new PlantStore(options), options);
  } catch (error) {
    if (!(error instanceof PlantStoreError)) throw error;
    throw new Refusal(printable(messageOf(error, url)), { cause: error });
  }
}

function messageOf(
  { kind, detail, cause, errors, outcomeUnknown }: PlantStoreError,
  url: string,
): string {
  const codes = codesOf(cause);
  if (codes.some((code) => certificateErrors.test(code))) {
    const [reason] = causeOf(cause).split(';'); // advice to programmers follows
    return `The certificate of ${url} is not trusted: ${reason}. If it is from a certification authority of your own, set NODE_EXTRA_CA_CERTS to the file of that authority.`;
  }
  if (url.startsWith('https:') && codes.some((code) => code.startsWith('ERR_SSL_'))) {
    return `Cannot connect to ${url} with TLS. If the service has no certificate, use http in the address.`;
  }
  if (outcomeUnknown && !codes.some((code) => connectionErrors.includes(code))) {
    return `The response was lost, so the change may have been made. Check whether it was made before you repeat the command. ${detail}`;
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
  if (kind === 'invalid-request' && url.endsWith('/plants')) {
    return `Cannot use Plant Store at ${url}. Use the address without /plants.`;
  }
  return errors.length > 1 ? errors.map((fault) => fault.detail).join(' ') : detail;
}

/** Errors of OpenSSL and Node about the certificate of a server. The connection ends before anything is sent. */
const certificateErrors =
  /^(?:CERT_|SELF_SIGNED_|DEPTH_ZERO_|UNABLE_TO_(?:GET_ISSUER|VERIFY)_|INVALID_CA$|ERR_TLS_CERT_)/;

/** Errors without a connection, so nothing was sent. */
const connectionErrors = [
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
];

/** The codes of an error and of its causes. */
function codesOf(error: unknown): string[] {
  if (!(error instanceof Error)) return [];
  const own = 'code' in error ? [String(error.code)] : [];
  const causes: unknown[] = error instanceof AggregateError ? error.errors : [error.cause];
  return [...own, ...causes.flatMap(codesOf)];
}

/** A message never contains the token. */
async function readToken(source: string | undefined): Promise<string> {
  const text =
    source === '-' || source?.startsWith('@')
      ? (await readInput('the token', source.replace(/^@/, ''))).toString()
      : source;
  // People also paste a whole header, or the link that `serve` prints.
  const token = text?.trim().replace(/^(?:Bearer +|https?:\S*#token=)/i, '') ?? '';
  if (token === '') {
    throw new UsageError(
      'No token is set. Set one in PLANT_STORE_TOKEN or with --token. Create one with "npx plant-store token create".',
    );
  }
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new UsageError(
      'The token contains characters that no token can have. Check what you passed.',
    );
  }
  return token;
}
