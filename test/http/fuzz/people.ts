/**
 * Who sends the requests: two stores, in the first a manager and two members, in the second a member who has a
 * namesake; and tokens that say less than they might.
 */
import { randomInt } from 'node:crypto';
import { formatScopes, scopes as allScopes, type Scope } from '../../../src/access/access.ts';
import type { Archive, Row } from '../../../src/copy/archive.ts';
import { credentialOf, makeToken, storeOf as numberIn } from '../../../src/access/token.ts';
import { idOf } from '../../support/tokens.ts';
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
  return text.replace(/\{([a-z]+)\}/g, (_all, name: string) => idOf(tokens[name] ?? ''));
}

function altered(token: string, at: number): string {
  const other = token[at] === 'x' ? 'y' : 'x';
  return token.slice(0, at) + other + token.slice(at + 1);
}

export function grantsOf(tokens: Tokens, storeOf: (store: string) => string): Map<string, Grant> {
  const grants = new Map<string, Grant>();
  const give = (name: string, { store, user, role }: Person, scopes: string[]) =>
    void grants.set(tokens[name] ?? '', {
      id: idOf(tokens[name] ?? ''),
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
    listed.push({
      id: idOf(tokens[state] ?? ''),
      person,
      scopes: [...allScopes],
      label: '',
      state,
    });
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

/** Tokens for two new stores, which every storage gets with the same numbers: so the texts are the same too. */
export function tokensFor(): Tokens {
  const [main, elsewhere] = [randomInt(1, 2 ** 48 - 1), randomInt(1, 2 ** 48 - 1)];
  return Object.fromEntries(
    tokenNames.map((name) => [name, makeToken(name === 'dora' ? elsewhere : main)]),
  );
}

/** Adds them all. No request has used one before. */
export async function keepTokens(
  archive: Archive,
  tokens: Tokens,
  storeOf: (store: string) => string,
): Promise<void> {
  const nowMs = Date.now();
  const numberOf = ({ name }: (typeof people)[number]) =>
    numberIn(tokens[name === 'dora' ? 'dora' : 'maria'] ?? '');
  const stores = new Map(people.map((person) => [numberOf(person), storeOf(person.store)]));
  await archive.add(
    'stores',
    [...stores].map(([number, name]) => [number, name, 0, 0]),
  );
  await archive.add(
    'users',
    people.map((person, at) => [numberOf(person), at + 1, person.user, person.role, null, 0]),
  );
  const rowOf = (name: string, person: (typeof people)[number], granted: readonly Scope[]): Row => {
    const { tokenHash } = credentialOf(tokens[name] ?? '');
    const key = [numberOf(person), tokenHash, people.indexOf(person) + 1];
    const expiresAtMs = name === 'expired' ? nowMs - 1 : null;
    const revokedAtMs = name === 'revoked' ? nowMs : null;
    const times = [nowMs, expiresAtMs, revokedAtMs, null];
    return [...key, formatScopes(granted), '', ...times, null];
  };
  const [, alice, bob] = people;
  await archive.add('tokens', [
    ...people.map((person) => rowOf(person.name, person, allScopes)),
    rowOf('spare', alice, allScopes),
    rowOf('other', bob, allScopes),
    rowOf('reader', alice, ['plants:read']),
    rowOf('writer', alice, ['plants:write']),
    rowOf('sharer', alice, ['shares:write']),
    rowOf('expired', alice, allScopes),
    rowOf('revoked', alice, allScopes),
  ]);
}
