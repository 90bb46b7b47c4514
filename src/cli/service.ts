/**
 * What commands that call a service have in common: its address and a token, and its problems in words for people.
 */
import type { Command, CommandUnknownOpts } from '@commander-js/extra-typings';
import { PlantStore, PlantStoreError, type PlantStoreOptions } from '../client/client.ts';
import { printable } from '../client/printable.ts';
import { Refusal, UsageError } from '../refusal.ts';
import { causeOf } from './errors.ts';
import { defaultProfile, profileFlag, readProfile } from './account/profiles.ts';
import { defaultUrl, examples, flag, isFrom, parseBaseUrl } from './options.ts';
import { io, print, readInput, type Result } from './output.ts';
import { printableJson } from './terminal.ts';

/** Few, because a person at a terminal waits. */
export const maxRetries = 2;

/** Adds a command that calls a service, and prints its result. */
export function serviceCommand(parent: Command, name: string, lines: readonly string[]) {
  return connectedCommand(parent, name, lines).option('--json', 'print the result as JSON');
}

/** Adds a command with the address of a service and a token. */
export function connectedCommand(parent: Command, name: string, lines: readonly string[]) {
  return parent
    .command(name)
    .addOption(
      flag('--url <url>', 'address of the service')
        .argParser(parseBaseUrl)
        .default(defaultUrl, defaultUrl), // a description has no quotes
    )
    .addOption(
      flag(
        '--token <token>',
        'token, @FILE to read it from a file, or - for standard input; prefer the variable, because other users can see arguments',
      ),
    )
    .addOption(profileFlag().conflicts('token'))
    .hook('preAction', (command) => useProfile(command, command.opts()))
    .addHelpText('after', examples(lines));
}

interface ConnectionOptions {
  url: string;
  token?: string | undefined;
  profile?: string | undefined;
}

/**
 * Without a token, takes the address and the token that `login` has kept. The token is for that address: another one that
 * is set does not get it.
 */
async function useProfile(
  command: CommandUnknownOpts,
  { url, token, profile: name }: ConnectionOptions,
): Promise<void> {
  if (token !== undefined || isFrom(command, 'database', 'cli', 'env')) return;
  const profile = await readProfile(name ?? defaultProfile);
  if (profile === undefined) {
    if (name === undefined) return;
    throw new Refusal(
      `There is no profile ${name}. Sign in with "npx plant-store login --profile ${name}".`,
    );
  }
  const isFromLine = isFrom(command, 'profile', 'cli');
  const hasAddress =
    isFrom(command, 'url', 'cli') || (isFrom(command, 'url', 'env') && !isFromLine);
  if (hasAddress && url !== profile.url) return;
  command.setOptionValueWithSource('url', profile.url, 'config');
  command.setOptionValueWithSource('token', profile.token, 'config');
}

/** What every command has. */
export type ServiceOptions = ReturnType<ReturnType<typeof serviceCommand>['opts']>;

/** Returns an action that prints what `work` returns, if anything. In a pipe, a list is a line of JSON for each item. */
export function onService<Args extends unknown[]>(
  work: (store: PlantStore, ...args: Args) => Promise<Result | void>,
) {
  return async function action(this: { opts(): ServiceOptions }, ...args: Args): Promise<void> {
    const options = this.opts();
    await withService(options, async (clientOptions) => {
      const result = await work(new PlantStore(clientOptions), ...args);
      if (result === undefined) return;
      const { value, text } = result;
      const isLines = Array.isArray(value) && !options.json;
      if (!printsJson(options)) print(text);
      else for (const each of isLines ? value : [value]) print(printableJson(each));
    });
  };
}

/** Whether the output is JSON: with --json, and unless a person reads it on a terminal. */
export function printsJson({ json }: Pick<ServiceOptions, 'json'>): boolean {
  return json === true || !io.stdout.isTTY;
}

/** Runs `work` with the options of a client, and turns its errors into messages for people. */
export async function withService(
  { url, token }: Pick<ServiceOptions, 'url' | 'token'>,
  work: (options: PlantStoreOptions) => Promise<void>,
): Promise<void> {
  await explained(url, async () => work({ url, token: await readToken(token), maxRetries }));
}

/** Does `work`, and turns errors of the client into messages for people. */
export async function explained<T>(url: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof RangeError) {
      throw new Refusal(printable(error.message)); // no URL can contain a name such as ".."
    }
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
    return `Cannot connect to ${url}: ${causeOf(cause)}. Start the service, or check the address.`;
  }
  if (kind === 'invalid-token') {
    return `${detail} Set another token in PLANT_STORE_TOKEN or with --token, or sign in with "npx plant-store login".`;
  }
  if (kind === 'unexpected-response' || kind === 'path-not-found') {
    return `Cannot use Plant Store at ${url}. Check the address, or set another with --url. Cause: ${detail}`;
  }
  if (kind === 'invalid-request' && url.endsWith('/plants')) {
    return `Cannot use Plant Store at ${url}. Use the address without /plants.`;
  }
  const faults = errors.length > 1 ? errors.map((fault) => fault.detail).join(' ') : detail;
  return faults.replace(/"(expiresAt|plants-to|q)"/, (word, name) => optionOf[name] ?? word);
}

/** The options of commands, by what requests call them. */
const optionOf: Readonly<Record<string, string>> = {
  expiresAt: '--expires',
  'plants-to': '--plants-to',
  q: '--search',
};

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

/** What an option has: the text itself, @FILE to read it from a file, or - for standard input. */
export async function readText(what: string, source: string): Promise<string> {
  if (source !== '-' && !source.startsWith('@')) return source;
  return (await readInput(what, source.replace(/^@/, ''))).toString();
}

export async function readToken(source: string | undefined): Promise<string> {
  return tokenIn(source && (await readText('the token', source)));
}

/** Throws a UsageError that never contains the token. */
export function tokenIn(text: string | undefined): string {
  // People also paste a whole header, or the link that `serve` prints.
  const token = text?.trim().replace(/^(?:Bearer +|https?:\S*#token=)/i, '') ?? '';
  if (token === '') {
    throw new UsageError(
      'No token is set. Sign in with "npx plant-store login", or set a token in PLANT_STORE_TOKEN or with --token. "npx plant-store token create" creates one.',
    );
  }
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new UsageError(
      'The token contains characters that no token can have. Check what you passed.',
    );
  }
  return token;
}
