import type { Role, Scope } from '../access.ts';
import { stateOf } from '../access.ts';
import type { TokenRecord } from '../identity-storage.ts';
import { Refusal } from '../refusal.ts';
import type { Storage } from '../storage.ts';
import { openStorage } from './database.ts';
import { hashToken, makeToken, tokenId } from '../token.ts';

interface NewTokenOptions {
  store: string;
  role?: Role | undefined;
  scope: readonly Scope[];
  expires?: number | undefined;
  label: string;
}

/** Prints the token alone on standard output, so that a script can take it. */
export async function createToken(
  user: string,
  options: NewTokenOptions & { database: string },
): Promise<void> {
  await using storage = await openStorage(options.database, { create: true });
  const token = await addToken(storage, user, options);
  console.error(
    `Token ${tokenId(hashToken(token))} for ${user} in the store ${options.store}. ` +
      'Keep it now: it is not shown again.',
  );
  await showToken(storage, token, token);
}

/** Prints a new token, the only time that it is shown. Revokes it if nobody can have seen it. */
export async function showToken(storage: Storage, token: string, text: string): Promise<void> {
  const lost = await new Promise((resolve) => process.stdout.write(`${text}\n`, resolve));
  if (!(lost instanceof Error)) return;
  const id = tokenId(hashToken(token));
  await storage.revokeToken(id, Date.now());
  throw new Refusal(`The token ${id} could not be shown. It is revoked: make another.`);
}

/** Makes a token and stores what it stands for. */
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

const tokensAtOnce = 1_000;

export async function listTokens(options: {
  database: string;
  store?: string | undefined;
}): Promise<void> {
  await using storage = await openStorage(options.database, { create: false });
  const rows = [['ID', 'STORE', 'USER', 'ROLE', 'SCOPES', 'CREATED', 'EXPIRES', 'STATE', 'LABEL']];
  for (let after: string | undefined; ;) {
    const tokens = await storage.listTokens({ store: options.store, after, limit: tokensAtOnce });
    rows.push(...tokens.map(columnsOf));
    after = tokens.at(-1)?.id;
    if (tokens.length < tokensAtOnce) break;
  }
  console.log(table(rows));
}

export async function revokeToken(id: string, options: { database: string }): Promise<void> {
  await using storage = await openStorage(options.database, { create: false });
  const token = await storage.revokeToken(id, Date.now());
  if (token === undefined) {
    throw new Refusal(`There is no token ${id}; "plant-store token list" shows which there are.`);
  }
  console.log(`Token ${id} of ${token.user} in the store ${token.store} is revoked.`);
}

function columnsOf(token: TokenRecord): string[] {
  const { id, store, user, role, scopes, createdAtMs, expiresAtMs, label } = token;
  const expires = expiresAtMs === undefined ? 'never' : minuteOf(expiresAtMs);
  const state = stateOf(token, Date.now());
  return [id, store, user, role, scopes.join(','), minuteOf(createdAtMs), expires, state, label];
}

function minuteOf(timeMs: number): string {
  return `${new Date(timeMs).toISOString().slice(0, 16)}Z`;
}

function table(rows: string[][]): string {
  const columns = rows[0]?.keys().toArray() ?? [];
  const widths = columns.map((at) => rows.reduce((w, row) => Math.max(w, row[at]?.length ?? 0), 0));
  const lines = rows.map((row) => row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join('  '));
  return lines.map((line) => line.trimEnd()).join('\n');
}
