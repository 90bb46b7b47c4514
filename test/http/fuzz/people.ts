/**
 * Who sends the requests: two stores, in the first a manager and two members, in the second a member who has a
 * namesake; and tokens that say less than they might.
 */
import { scopes as allScopes, type Scope } from '../../../src/access.ts';
import type { Storage } from '../../../src/storage.ts';
import { hashToken, makeToken, tokenId } from '../../../src/token.ts';
import type { Grant, Person } from './world.ts';

export const people = [
  { name: 'maria', store: 'main', user: 'maria', role: 'manager' },
  { name: 'alice', store: 'main', user: 'alice', role: 'member' },
  { name: 'bob', store: 'main', user: 'bob', role: 'member' },
  { name: 'dora', store: 'elsewhere', user: 'alice', role: 'member' },
] as const;

/** Names of tokens in requests: `<alice>` is her token, `<alice~17>` the same but for the 18th character. */
export type Tokens = Readonly<Record<string, string>>;

const placeholder = /<([a-z]+)(?:~(\d+))?>/g;

export function withTokens(text: string, tokens: Tokens): string {
  return text.replace(placeholder, (_all, name: string, at: string | undefined) => {
    const token = tokens[name] ?? '';
    return at === undefined ? token : altered(token, Number(at));
  });
}

function altered(token: string, at: number): string {
  const other = token[at] === 'x' ? 'y' : 'x';
  return token.slice(0, at) + other + token.slice(at + 1);
}

export function grantsOf(tokens: Tokens, storeOf: (store: string) => string): Map<string, Grant> {
  const grants = new Map<string, Grant>();
  const give = (name: string, { store, user, role }: Person, scopes: string[]) =>
    void grants.set(tokens[name] ?? '', { person: { store: storeOf(store), user, role }, scopes });
  for (const person of people) give(person.name, person, [...allScopes]);
  const [, alice] = people;
  give('reader', alice, ['plants:read']);
  give('writer', alice, ['plants:write']);
  give('sharer', alice, ['shares:write']);
  return grants;
}

const tokenNames = [
  'maria',
  'alice',
  'bob',
  'dora',
  'reader',
  'writer',
  'sharer',
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
  const [, alice] = people;
  await keep('reader', alice, 'plants:read');
  await keep('writer', alice, 'plants:write');
  await keep('sharer', alice, 'shares:write');
  await keep('expired', alice);
  await keep('revoked', alice);
  await storage.revokeToken(tokenId(hashToken(tokens['revoked'] ?? '')), nowMs);
}
