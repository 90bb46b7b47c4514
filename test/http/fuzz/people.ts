/**
 * Who sends the requests: two stores, in the first a manager and two members, in the second a member who has a
 * namesake; and tokens that say less than they might.
 */
import { scopes as allScopes, type Scope } from '../../../src/access.ts';
import type { Storage } from '../../../src/storage.ts';
import { hashToken, makeToken, tokenId } from '../../../src/token.ts';
import type { Grant, ModelToken, Person } from './world.ts';

export const people = [
  { name: 'maria', store: 'main', user: 'maria', role: 'manager' },
  { name: 'alice', store: 'main', user: 'alice', role: 'member' },
  { name: 'bob', store: 'main', user: 'bob', role: 'member' },
  { name: 'dora', store: 'elsewhere', user: 'alice', role: 'member' },
] as const;

/** Tokens that requests revoke: the others are needed until the end. */
export const revocable = ['spare', 'other'];

/** Names of tokens in requests: `<alice>` is her token, `<alice~17>` the same but for the 18th character. */
export type Tokens = Readonly<Record<string, string>>;

const placeholder = /<([a-z]+)(?:~(\d+))?>/g;

export function withTokens(text: string, tokens: Tokens): string {
  return text.replace(placeholder, (_all, name: string, at: string | undefined) => {
    const token = tokens[name] ?? '';
    return at === undefined ? token : altered(token, Number(at));
  });
}

/** `{alice}` in a target is the id of her token. */
export function withIds(text: string, tokens: Tokens): string {
  return text.replace(/\{([a-z]+)\}/g, (_all, name: string) => idOf(tokens, name));
}

function idOf(tokens: Tokens, name: string): string {
  return tokenId(hashToken(tokens[name] ?? ''));
}

function altered(token: string, at: number): string {
  const other = token[at] === 'x' ? 'y' : 'x';
  return token.slice(0, at) + other + token.slice(at + 1);
}

export function grantsOf(tokens: Tokens, storeOf: (store: string) => string): Map<string, Grant> {
  const grants = new Map<string, Grant>();
  const give = (name: string, { store, user, role }: Person, scopes: string[]) =>
    void grants.set(tokens[name] ?? '', {
      id: idOf(tokens, name),
      person: { store: storeOf(store), user, role },
      scopes,
    });
  for (const person of people) give(person.name, person, [...allScopes]);
  const [, alice, bob] = people;
  give('spare', alice, [...allScopes]);
  give('other', bob, [...allScopes]);
  give('reader', alice, ['plants:read']);
  give('writer', alice, ['plants:write']);
  give('sharer', alice, ['shares:write']);
  return grants;
}

/** What every token is that the users have in the beginning. */
export function listedTokens(tokens: Tokens, storeOf: (store: string) => string): ModelToken[] {
  const listed = [...grantsOf(tokens, storeOf).values()].map((grant): ModelToken => {
    return { ...grant, label: '', state: 'active' };
  });
  const [, { store, user, role }] = people;
  const person = { store: storeOf(store), user, role };
  for (const state of ['expired', 'revoked'] as const)
    listed.push({ id: idOf(tokens, state), person, scopes: [...allScopes], label: '', state });
  return listed;
}

const tokenNames = [
  'maria',
  'alice',
  'bob',
  'dora',
  'reader',
  'writer',
  'sharer',
  'spare',
  'other',
  'expired',
  'revoked',
  'unknown',
];

export function tokensFor(): Tokens {
  return Object.fromEntries(tokenNames.map((name) => [name, makeToken()]));
}

/** Creates them all. No request has used one before. */
export async function keepTokens(
  storage: Storage,
  tokens: Tokens,
  storeOf: (store: string) => string,
) {
  const nowMs = Date.now();
  const keep = async (name: string, person: (typeof people)[number], scope?: Scope) =>
    storage.createToken({
      hash: hashToken(tokens[name] ?? ''),
      store: storeOf(person.store),
      user: person.user,
      role: person.role,
      scopes: scope === undefined ? allScopes : [scope],
      label: '',
      createdAtMs: nowMs,
      expiresAtMs: name === 'expired' ? nowMs - 1 : undefined,
    });
  for (const person of people) await keep(person.name, person);
  const [, alice, bob] = people;
  await keep('spare', alice);
  await keep('other', bob);
  await keep('reader', alice, 'plants:read');
  await keep('writer', alice, 'plants:write');
  await keep('sharer', alice, 'shares:write');
  await keep('expired', alice);
  await keep('revoked', alice);
  await storage.revokeToken(tokenId(hashToken(tokens['revoked'] ?? '')), nowMs);
}
