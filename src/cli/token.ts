import { existsSync } from 'node:fs';
import type { Role, Scope } from '../access.ts';
import { stateOf } from '../access.ts';
import type { TokenRecord } from '../identity-storage.ts';
import { Refusal } from '../refusal.ts';
import type { Storage } from '../storage.ts';
import { fileOf, isFile, openStorage } from './database.ts';
import { hashToken, makeToken, tokenId } from '../token.ts';

interface NewTokenOptions {
  store: string;
  role?: Role | undefined;
  scope: readonly Scope[];
  /** Lifetime in milliseconds. */
  expires?: number | undefined;
  label: string;
}

/** Only the token goes to standard output, so that a script can read it. */
export async function createToken(
  user: string,
  options: NewTokenOptions & { database: string },
): Promise<void> {
  const isNew = isFile(options.database) && !existsSync(fileOf(options.database));
  await using storage = await openStorage(options.database, { create: true });
  // In a wrong folder, a new database is a surprise: its tokens are unknown to the service.
  if (isNew) console.error(`Created the database ${fileOf(options.database)}.`);
  const token = await addToken(storage, user, options);
  console.error(
    `Created token ${tokenId(hashToken(token))} for user ${user} in store ${options.store}. ` +
      'Save it now: it is not shown again.',
  );
  await printToken(storage, token, token);
}

/** Prints `text`, which contains a new token. Revokes the token if the output fails. */
export async function printToken(storage: Storage, token: string, text: string): Promise<void> {
  const failure = await new Promise((resolve) => process.stdout.write(`${text}\n`, resolve));
  if (!(failure instanceof Error)) return;
  const id = tokenId(hashToken(token));
  await storage.revokeToken(id, Date.now());
  throw new Refusal(`Token ${id} could not be printed, so it was revoked. Create another.`);
}

/** Stores a new token and returns it. */
export async function addToken(
  storage: Storage,
  user: string,
  { store, role, scope, expires, label }: NewTokenOptions,
): Promise<string> {
  const token = makeToken();
  const createdAtMs = Date.now();
  await storage.createToken({
    hash: hashToken(token),
    store,
    user,
    role,
    scopes: scope,
    label,
    createdAtMs,
    expiresAtMs: expires && createdAtMs + expires,
  });
  return token;
}

const pageTokens = 1_000;

export async function listTokens(options: {
  database: string;
  store?: string | undefined;
}): Promise<void> {
  await using storage = await openStorage(options.database, { create: false });
  const rows = [['ID', 'STORE', 'USER', 'ROLE', 'SCOPES', 'CREATED', 'EXPIRES', 'STATE', 'LABEL']];
  for (let after: string | undefined; ;) {
    const tokens = await storage.listTokens({ store: options.store, after, limit: pageTokens });
    rows.push(...tokens.map(rowOf));
    after = tokens.at(-1)?.id;
    if (tokens.length < pageTokens) break;
  }
  console.log(formatTable(rows));
}

export async function revokeToken(id: string, options: { database: string }): Promise<void> {
  await using storage = await openStorage(options.database, { create: false });
  const token = await storage.revokeToken(id, Date.now());
  if (token === undefined) {
    throw new Refusal(`There is no token ${id}. "plant-store token list" shows the ids.`);
  }
  console.log(`Revoked token ${id} of user ${token.user} in store ${token.store}.`);
}

function rowOf(token: TokenRecord): string[] {
  const { id, store, user, role, scopes, createdAtMs, expiresAtMs, label } = token;
  const created = formatMinute(createdAtMs);
  const expires = expiresAtMs === undefined ? 'never' : formatMinute(expiresAtMs);
  const state = stateOf(token, Date.now());
  return [id, store, user, role, scopes.join(','), created, expires, state, label];
}

function formatMinute(timeMs: number): string {
  return `${new Date(timeMs).toISOString().slice(0, 16)}Z`;
}

function formatTable(rows: string[][]): string {
  const columns = rows[0]?.keys().toArray() ?? [];
  const widths = columns.map((at) => rows.reduce((w, row) => Math.max(w, row[at]?.length ?? 0), 0));
  const lines = rows.map((row) => row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join('  '));
  return lines.map((line) => line.trimEnd()).join('\n');
}
