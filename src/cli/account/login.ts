/**
 * Commands for people who have the address of a service and a token or an invitation, but no access to its database.
 */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { hostname } from 'node:os';
import { InvalidArgumentError, type Command } from '@commander-js/extra-typings';
import { PlantStore } from '../../client/client.ts';
import { isProblem } from '../../client/problem.ts';
import { isLoopback } from '../../client/request.ts';
import { Refusal, UsageError } from '../../refusal.ts';
import { defaultUrl, examples, parseBaseUrl } from '../options.ts';
import { ask, io, print, printError, readInput } from '../output.ts';
import {
  connectedCommand,
  explained,
  maxRetries,
  onService,
  serviceCommand,
  tokenIn,
} from '../service.ts';
import {
  defaultProfile,
  deleteProfile,
  profileFlag,
  readProfile,
  writeProfile,
  type Profile,
} from './profiles.ts';

export function addAccountCommands(plantStore: Command): void {
  plantStore
    .command('login')
    .description(
      'sign in with a token or an invitation, and keep the address and the token for later commands',
    )
    .argument('[address]', 'address of the service', parseBaseUrl)
    .addOption(profileFlag().default(defaultProfile, defaultProfile))
    .option('--token-stdin', 'read the token, or the link of an invitation, from standard input')
    .addHelpText(
      'after',
      examples([
        'plant-store login https://plants.example',
        'plant-store login --token-stdin < invitation.txt',
      ]),
    )
    .action(login);

  plantStore
    .command('logout')
    .description('revoke the token that "login" has kept, and forget it')
    .addOption(profileFlag().default(defaultProfile, defaultProfile))
    .addHelpText('after', examples(['plant-store logout']))
    .action(logout);

  serviceCommand(plantStore, 'whoami', ['plant-store whoami'])
    .description('show who you are for the service, and what your token grants')
    .action(
      onService(async (store, { url }) => {
        const token = await store.token();
        const { user, role, store: name, scopes, expiresAt = 'never' } = token;
        const text = `${user} (${role}) in store ${name} at ${url}\nScopes: ${scopes.join(', ')}\nExpires: ${expiresAt}`;
        return { value: { url, ...token }, text };
      }),
    );

  connectedCommand(plantStore, 'open', ['plant-store open'])
    .description('open the page of the service in a browser')
    .action(({ url }) => openInBrowser(`${url}/`));
}

interface LoginOptions {
  profile: string;
  tokenStdin?: true | undefined;
}

async function login(address: string | undefined, options: LoginOptions): Promise<void> {
  const text = await readSecret(options);
  const given = tokenIn(text);
  const url = address ?? (await addressFor(text, options));
  if (url.startsWith('http:') && !isLoopback(new URL(url))) {
    printError(
      `Warning: others on the network can read what is sent to ${url}. Use https if the service has it.`,
    );
  }
  await explained(url, async () => {
    const store = new PlantStore({ url, token: given, maxRetries });
    const { user, role, store: name } = await store.token();
    const pending = `${options.profile}.pending`;
    const token = await createOwn(store, { url, token: given }, pending);
    await writeProfile(options.profile, { url, token });
    await deleteProfile(pending);
    print(`Signed in to ${url} as ${user} (${role}) in store ${name}.`);
  });
  if (process.env['PLANT_STORE_TOKEN'] !== undefined) {
    printError('Commands use the token in PLANT_STORE_TOKEN as long as that variable is set.');
  }
}

async function readSecret({ tokenStdin }: LoginOptions): Promise<string> {
  if (tokenStdin) return (await readInput('the token', '-')).toString();
  if (io.stdin.isTTY)
    return ask('Token, or link of an invitation (not shown): ', { isSecret: true });
  throw new UsageError(
    'There is no terminal to ask on. Pass the token on standard input, with --token-stdin.',
  );
}

/** The address in the link, or else the answer to a question. */
async function addressFor(text: string, { tokenStdin }: LoginOptions): Promise<string> {
  const [, linked] = /^\s*(https?:[^\s#]*)#token=/i.exec(text) ?? [];
  const asked = async () => (await ask(`Address of the service (${defaultUrl}): `)).trim();
  const address = linked ?? (tokenStdin ? '' : await asked());
  try {
    return parseBaseUrl(address || defaultUrl);
  } catch (error) {
    throw error instanceof InvalidArgumentError ? new UsageError(error.message) : error;
  }
}

/**
 * Creates a token for this computer, so that signing out ends nothing else. Its key is kept until the token is, so that another
 * login gets the same token if this one is interrupted. A token of an identity provider creates none, and is kept itself.
 */
async function createOwn(store: PlantStore, given: Profile, name: string): Promise<string> {
  const earlier = await readProfile(name).catch(() => undefined); // it is replaced
  const { key = randomUUID() } = earlier?.token === given.token ? earlier : {};
  await writeProfile(name, { ...given, key });
  const label = `plant-store on ${hostname()}`;
  try {
    return (await store.createToken({ label }, { idempotencyKey: key })).token;
  } catch (error) {
    if (isProblem(error, 'token-restricted')) return given.token;
    throw error;
  }
}

async function logout({ profile: name }: { profile: string }): Promise<void> {
  const profile = await readProfile(name);
  if (profile === undefined) throw new Refusal(`There is no profile ${name}: nobody is signed in.`);
  const { url, token } = profile;
  await deleteProfile(name);
  const store = new PlantStore({ url, token, maxRetries });
  const revoked = store.revokeOwnToken().catch((problem: unknown) => {
    if (isProblem(problem, 'invalid-token')) return; // it has ended
    printError('The token was forgotten, but not revoked.');
    throw problem;
  });
  await explained(url, () => revoked);
  print(`Signed out of ${url}.`);
}

/** Prints the address too, because no program knows whether a browser shows it. */
async function openInBrowser(url: string): Promise<void> {
  const openers: Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>> = {
    darwin: ['open'],
    win32: ['rundll32', 'url.dll,FileProtocolHandler'],
  };
  const [program, ...args] = openers[process.platform] ?? ['xdg-open'];
  print(url);
  const child = spawn(program, [...args, url], { stdio: 'ignore', detached: true });
  child.unref();
  await once(child, 'spawn').catch((cause: unknown) => {
    throw new Refusal(`Cannot start ${program}. Open ${url} in a browser.`, { cause });
  });
}
