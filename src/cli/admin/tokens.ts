import { randomUUID } from 'node:crypto';
import { Option, type Command } from '@commander-js/extra-typings';
import { defaultScopes, roles, stateOf } from '../../access/access.ts';
import type { TokenRecord } from '../../access/identity-storage.ts';
import { credentialOf, tokenFault, tokenId } from '../../access/token.ts';
import { Tag } from '../../plants/plant.ts';
import type { PlantStore } from '../../client/client.ts';
import { Refusal, UsageError } from '../../refusal.ts';
import { formatTimestamp } from '../../shared/timestamp.ts';
import type { Storage } from '../../storage.ts';
import { displayName, isFile, openExisting, openStorage } from '../database.ts';
import {
  inStore,
  maxDuration,
  parseDurationMs,
  parseName,
  parserOf,
  parseScopeList,
  storeFlag,
} from '../options.ts';
import {
  ask,
  confirm,
  io,
  listed,
  printed,
  printError,
  readInput,
  type Result,
} from '../output.ts';
import { onService } from '../service.ts';
import { printableJson, shownOn } from '../terminal.ts';
import {
  allPages,
  databaseCommand,
  either,
  eitherCommand,
  findStore,
  inDatabase,
  namesOfStores,
} from './command.ts';

export function addTokenCommands(plantStore: Command): void {
  const token = plantStore.command('token').description('create, list, revoke and check tokens');

  createCommand(token).action(either(createToken, onService(createByService)));

  eitherCommand(token, 'list', [
    'plant-store token list --store north',
    'plant-store token list --json',
  ])
    .description('list all tokens of a database or your own, including expired and revoked ones')
    .addOption(storeFlag('list only the tokens of this store'))
    .action(
      either(
        inDatabase(async (storage, { store: only }) => {
          const records: TokenRecord[] = [];
          for (const name of await namesOfStores(storage, only)) {
            records.push(...(await allTokens(storage, await findStore(storage, name))));
          }
          const tokens = records.map(valueOf);
          return listed(columns, tokens.map(rowOf), tokens);
        }),
        onService(async (service) => {
          const tokens = await service.listTokens();
          return listed(ownColumns, tokens.map(rowOf), tokens);
        }),
      ),
    );

  eitherCommand(token, 'revoke', ['plant-store token revoke 000000001-22894e9580395e64'])
    .description('revoke a token immediately')
    .argument('<id>', 'id of the token, as shown by "token list"')
    .action(
      either(
        inDatabase(async (storage, id) => {
          const revoked = await storage.identity.revokeToken(id, Date.now());
          if (revoked === undefined) {
            throw new Refusal(
              `There is no token ${id}. List all tokens with "npx plant-store token list".`,
            );
          }
          const { user, store } = revoked;
          const text = `Revoked token ${id} of user ${user} in store ${store}.`;
          return { value: valueOf(revoked), text };
        }),
        onService(async (service, id) => {
          await service.revokeToken(id);
          return { value: { id }, text: `Revoked token ${id}.` };
        }),
      ),
    );

  databaseCommand(token, 'check', ['plant-store token check < found-in-a-log.txt'])
    .description('read a string from standard input and show whether it is a token, and whose')
    .action(
      printed(({ database }, command) =>
        checkToken(database, command.getOptionValueSource('database') === 'default'),
      ),
    );
}

function createCommand(token: Command) {
  return eitherCommand(token, 'create', [
    'plant-store token create alice',
    'plant-store token create bob --store north --role manager',
    "plant-store token create shop --scope plants:read --expires 90d --label 'shop window'",
  ])
    .description('create a token and print it; it is shown only once')
    .argument(
      '[user]',
      'user of the token; created if needed; without it, and with a service, you',
      parseName,
    )
    .addOption(inStore('store of the user; created if needed'))
    .addOption(
      new Option(
        '--role <role>',
        'new role of the user; without it, a new user is a member',
      ).choices(roles),
    )
    .addOption(
      new Option('--scope <list>', 'scopes that the token grants, separated by commas')
        .argParser(parseScopeList)
        .default([...defaultScopes], defaultScopes.join(',')),
    )
    .option(
      '--expires <duration>',
      `lifetime, such as 12h or 90d, at most ${maxDuration}d; without it, the token never expires`,
      parseDurationMs,
    )
    .addOption(
      new Option('--label <text>', 'note that "token list" shows')
        .argParser(parserOf(Tag))
        .default('', 'none'),
    )
    .option('--yes', 'create a new database, store or user without asking', false);
}

type CreateOptions = ReturnType<ReturnType<typeof createCommand>['opts']>;

/**
 * Only the token goes to standard output, so that a script can read it. A wrong folder or a typo would create
 * another database, store or user, so a person is asked first.
 */
async function createToken(user: string | undefined, options: CreateOptions): Promise<void> {
  if (user === undefined) throw new UsageError("missing required argument 'user'");
  const { database, store, role, yes } = options;
  const existing = await openExisting(database);
  if (existing === undefined && !yes) await confirmDatabase(database);
  await using storage = existing ?? (await openStorage(database, { create: true }));
  printError(`Database: ${displayName(database)}${existing === undefined ? ' (new)' : ''}`);
  const found = await storage.users.find(store, user);
  const before = found.user?.role;
  const isNew = before === undefined;
  if (isNew && !yes && !(await isEmpty(storage)))
    await confirmUser(user, store, found.store !== undefined);

  const { scope: scopes, label, expires } = options;
  const createdAtMs = Date.now();
  const lifetime = { createdAtMs, expiresAtMs: expires && createdAtMs + expires };
  const about = { store, user, role, scopes, label, ...lifetime };
  const { token, id } = await storage.identity.createToken(about);
  const owner = `${isNew ? 'new ' : ''}user ${user} in ${found.store === undefined ? 'new ' : ''}store ${store}`;
  printError(`Created token ${id} for ${owner}. Save it now: it is not shown again.`);
  if (!isNew && role !== undefined && role !== before) {
    printError(`Changed the role of user ${user} from ${before} to ${role}, for all their tokens.`);
  }
  const expiresAt = formatTimestamp(lifetime.expiresAtMs);
  const value = { token, id, user, store, scopes, label, expiresAt };
  await printToken(id, options.json ? printableJson(value) : token, () =>
    storage.identity.revokeToken(id, Date.now()),
  );
}

async function createByService(
  service: PlantStore,
  user: string | undefined,
  { scope, label, expires, json, url }: CreateOptions,
): Promise<void> {
  const expiresAt = formatTimestamp(expires && Date.now() + expires);
  const terms = { label, scopes: [...scope], ...(expiresAt !== undefined && { expiresAt }) };
  const key = { idempotencyKey: randomUUID() };
  const created = await (user === undefined
    ? service.createToken(terms, key)
    : service.createTokenFor(user, terms, key));
  const { id, token } = created;
  const owner = user === undefined ? 'you' : `user ${user}`;
  printError(`Created token ${id} for ${owner} at ${url}. Save it now: it is not shown again.`);
  await printToken(id, json ? printableJson(created) : token, () => service.revokeToken(id));
}

async function confirmDatabase(database: string): Promise<void> {
  const question = isFile(database)
    ? 'does not exist. Create it?'
    : 'has no tables of Plant Store. Create them?';
  const advice =
    'Nothing was created. Run the command in the folder of the database, or set its path with --database.';
  // A script continues.
  await confirm(`The database ${displayName(database)} ${question}`, advice);
}

async function confirmUser(user: string, store: string, storeExists: boolean): Promise<void> {
  const question = storeExists
    ? `Store ${store} has no user ${user}. Create this user?`
    : `There is no store ${store}. Create it, with user ${user}?`;
  const advice = 'Nothing was created. List all users with "npx plant-store user list".';
  await confirm(question, advice);
}

/** Prints `text`, which contains a new token. Revokes the token if the output fails. */
export async function printToken(
  id: string,
  text: string,
  revoke: () => Promise<unknown>,
): Promise<void> {
  const failure = await new Promise((resolve) =>
    io.stdout.write(`${shownOn(io.stdout, text)}\n`, resolve),
  );
  if (!(failure instanceof Error)) return;
  await revoke();
  throw new Refusal(`Token ${id} could not be printed, so it was revoked. Create another.`);
}

/** Whether nobody has a token yet. */
export async function isEmpty({ users }: Storage): Promise<boolean> {
  return (await users.listStores({ limit: 1 })).length === 0;
}

/** All tokens of a store, or of one of its users. */
export async function allTokens(
  { identity }: Storage,
  store: number,
  user?: number,
): Promise<TokenRecord[]> {
  return allPages((last, limit) => identity.listTokens({ store, user, after: last?.id, limit }));
}

/** A token as --json prints it. Times that do not apply are absent. */
function valueOf(record: TokenRecord) {
  const { createdAtMs, expiresAtMs, revokedAtMs, lastUsedAtMs, ...token } = record;
  return {
    ...token,
    state: stateOf({ expiresAtMs, revokedAtMs }, Date.now()),
    createdAt: formatTimestamp(createdAtMs),
    expiresAt: formatTimestamp(expiresAtMs),
    revokedAt: formatTimestamp(revokedAtMs),
    lastUsedAt: formatTimestamp(lastUsedAtMs),
  };
}

const columns = 'id,store,user,role,scopes,created,expires,lastUse,state,label'.split(',');
const ownColumns = ['id', 'scopes', 'created', 'expires', 'lastUse', 'state', 'label'] as const;

interface Times {
  createdAt?: string | undefined;
  expiresAt?: string | undefined;
  lastUsedAt?: string | undefined;
}

function rowOf<T extends Times>(token: T) {
  const toMinute = (time?: string) => (time === undefined ? 'never' : `${time.slice(0, 16)}Z`);
  const { createdAt, expiresAt, lastUsedAt } = token;
  return {
    ...token,
    created: toMinute(createdAt),
    expires: toMinute(expiresAt),
    lastUse: toMinute(lastUsedAt),
  };
}

/**
 * What is known about a token, for example after it was found in a log. The token is never an argument, which other users
 * of the machine could see, and is never printed. If the database can be missing, only the form of the token is checked
 * then.
 */
async function checkToken(database: string, canBeMissing: boolean): Promise<Result> {
  const text = io.stdin.isTTY
    ? await ask('Paste the token, then press Enter: ')
    : (await readInput('the token', '-')).toString().trim();
  const fault = tokenFault(text);
  if (fault !== undefined) throw new Refusal(`This is not a Plant Store token: ${fault}.`);
  const credential = credentialOf(text);
  const id = tokenId(credential.tokenHash, credential.store);
  const known = `This is a Plant Store token with the id ${id}`;
  const name = displayName(database);
  await using storage = await (canBeMissing
    ? openExisting(database)
    : openStorage(database, { create: false }));
  if (storage === undefined) {
    const advice = `There is no database at ${name}. To see whose token this is, set --database.`;
    return { value: { id }, text: `${known}. ${advice}` };
  }
  const grant = await storage.identity.identify(credential);
  if (grant === undefined) throw new Refusal(`${known}, but ${name} does not contain it.`);
  const { storeName: store, userName: user, role } = grant;
  const [scopes, state] = [[...grant.caller.scopes], stateOf(grant, Date.now())];
  const expiresAt = formatTimestamp(grant.expiresAtMs);
  const revokedAt = formatTimestamp(grant.revokedAtMs);
  const sentence = `Token ${id} of user ${user} (${role}) in store ${store} is ${state}. Scopes: ${scopes.join()}.`;
  const revoke = state === 'active' ? `\nTo revoke it: npx plant-store token revoke ${id}` : '';
  const value = { id, store, user, role, scopes, state, expiresAt, revokedAt };
  return { value, text: sentence + revoke };
}
