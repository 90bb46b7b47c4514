import { stateOf, type Role, type Scope } from '../../access/access.ts';
import type { TokenQuery, TokenRecord } from '../../access/identity-storage.ts';
import { Refusal } from '../../refusal.ts';
import type { Storage } from '../../storage.ts';
import { confirm, io, printError, printResult } from '../output.ts';
import { displayName, isFile, openExisting, openStorage } from '../database.ts';
import type { DatabaseOptions, InStoreOptions } from '../options.ts';
import { findStore, allPages } from './names.ts';
import { printableJson, shownOn } from '../terminal.ts';
import { tableOf } from '../table.ts';
import { formatTimestamp } from '../../shared/timestamp.ts';

interface CreateOptions extends InStoreOptions {
  role?: Role | undefined;
  scope: readonly Scope[];
  /** Lifetime in milliseconds. */
  expires?: number | undefined;
  label: string;
  /** Creates whatever is new without a question. */
  yes: boolean;
}

/**
 * Only the token goes to standard output, so that a script can read it. A wrong folder or a typo would create
 * another database, store or user, so a person is asked first.
 */
export async function createToken(user: string, options: CreateOptions): Promise<void> {
  const { database, store, role, yes } = options;
  const existing = await openExisting(database);
  if (existing === undefined && !yes) await confirmDatabase(database);
  await using storage = existing ?? (await openStorage(database, { create: true }));
  printError(`Database: ${displayName(database)}${existing === undefined ? ' (new)' : ''}`);
  const found = await storage.users.find(store, user);
  const before = found.user?.role;
  // Only for a new store: a list of all tokens asks every machine of a cluster.
  const isEmpty = async () =>
    found.store === undefined && (await storage.identity.listTokens({ limit: 1 })).length === 0;
  const isNew = before === undefined;
  if (isNew && !yes && !(await isEmpty()))
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
  await printToken(storage, id, options.json ? printableJson(value) : token);
}

async function confirmDatabase(database: string): Promise<void> {
  const question = isFile(database)
    ? 'does not exist. Create it?'
    : 'has no tables of Plant Store. Create them?';
  const answer = await confirm(`The database ${displayName(database)} ${question}`);
  if (answer === false) throw new Refusal('Nothing was created.', { kind: 'no-file' }); // a script continues
}

async function confirmUser(user: string, store: string, storeExists: boolean): Promise<void> {
  const question = storeExists
    ? `Store ${store} has no user ${user}. Create this user?`
    : `There is no store ${store}. Create it, with user ${user}?`;
  if ((await confirm(question)) !== false) return;
  throw new Refusal('Nothing was created. List all users with "npx plant-store user list".');
}

/** Prints `text`, which contains a new token. Revokes the token if the output fails. */
export async function printToken(storage: Storage, id: string, text: string): Promise<void> {
  const failure = await new Promise((resolve) =>
    io.stdout.write(`${shownOn(io.stdout, text)}\n`, resolve),
  );
  if (!(failure instanceof Error)) return;
  await storage.identity.revokeToken(id, Date.now());
  throw new Refusal(`Token ${id} could not be printed, so it was revoked. Create another.`);
}

const header = 'ID,STORE,USER,ROLE,SCOPES,CREATED,EXPIRES,LAST USE,STATE,LABEL'.split(',');

export async function listTokens(
  options: DatabaseOptions & { store?: string | undefined },
): Promise<void> {
  await using storage = await openStorage(options.database, { create: false });
  if (options.store !== undefined) await findStore(storage, options.store);
  const all = await allTokens(storage, { store: options.store });
  printResult(options, all.map(valueOf), tableOf(header, all.map(rowOf)));
}

/** All tokens, those of one store, or those of one user. */
export async function allTokens(
  storage: Storage,
  of: Pick<TokenQuery, 'store' | 'owner'>,
): Promise<TokenRecord[]> {
  return allPages((last, limit) =>
    storage.identity.listTokens({ ...of, after: last?.position, limit }),
  );
}

export async function revokeToken(id: string, options: DatabaseOptions): Promise<void> {
  await using storage = await openStorage(options.database, { create: false });
  const token = await storage.identity.revokeToken(id, Date.now());
  if (token === undefined) {
    throw new Refusal(
      `There is no token ${id}. List all tokens with "npx plant-store token list".`,
    );
  }
  const text = `Revoked token ${id} of user ${token.user} in store ${token.store}.`;
  printResult(options, valueOf(token), text);
}

/** A token as --json prints it. Times that do not apply are absent. */
function valueOf(record: TokenRecord): object {
  const { position: _, createdAtMs, expiresAtMs, revokedAtMs, lastUsedAtMs, ...token } = record;
  return {
    ...token,
    state: stateOf({ expiresAtMs, revokedAtMs }, Date.now()),
    createdAt: formatTimestamp(createdAtMs),
    expiresAt: formatTimestamp(expiresAtMs),
    revokedAt: formatTimestamp(revokedAtMs),
    lastUsedAt: formatTimestamp(lastUsedAtMs),
  };
}

function rowOf(token: TokenRecord): string[] {
  const { id, store, user, role, scopes, label } = token;
  const times = [token.createdAtMs, token.expiresAtMs, token.lastUsedAtMs].map(formatMinute);
  const state = stateOf(token, Date.now());
  return [id, store, user, role, scopes.join(','), ...times, state, label];
}

function formatMinute(timeMs: number | undefined): string {
  return timeMs === undefined ? 'never' : `${new Date(timeMs).toISOString().slice(0, 16)}Z`;
}
