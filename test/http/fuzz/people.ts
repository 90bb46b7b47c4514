/**
 * Who sends the requests: two stores, in the first a manager and three members, in the second a member who has a
 * namesake; and tokens that say less than they might.
 */
import { randomInt } from 'node:crypto';
import { formatScopes, scopes as allScopes, type Scope } from '../../../src/access/access.ts';
import type { Row } from '../../../src/copy/archive.ts';
import { credentialOf, makeToken, storeOf as numberIn } from '../../../src/access/token.ts';
import { addRows } from '../../support/rows.ts';
import { idOf } from '../../support/tokens.ts';
import type { Request } from './request.ts';
import { sent } from './request.ts';

const plants: readonly Scope[] = ['plants:read', 'plants:write'];

/** Carol cannot share, so her plants are hidden from members. */
export const people = [
  { name: 'maria', store: 'main', user: 'maria', role: 'manager', scopes: allScopes },
  { name: 'alice', store: 'main', user: 'alice', role: 'member', scopes: allScopes },
  { name: 'bob', store: 'main', user: 'bob', role: 'member', scopes: allScopes },
  { name: 'carol', store: 'main', user: 'carol', role: 'member', scopes: plants },
  { name: 'dora', store: 'elsewhere', user: 'alice', role: 'member', scopes: allScopes },
] as const;

export type Person = (typeof people)[number];

const [, alice, bob] = people;

/** What a request can show as its sender. */
export interface Sender {
  name: string;
  person: Person;
  scopes: readonly Scope[];
}

const tokens: readonly Sender[] = [
  ...people.map((person) => ({ name: person.name, person, scopes: person.scopes })),
  ...['spare', 'expired', 'revoked'].map((name) => ({ name, person: alice, scopes: allScopes })),
  { name: 'other', person: bob, scopes: allScopes },
  { name: 'reader', person: alice, scopes: ['plants:read'] },
  { name: 'writer', person: alice, scopes: ['plants:write'] },
  { name: 'sharer', person: alice, scopes: ['shares:write'] },
];
const invalid = ['expired', 'revoked', 'unknown'];
/** Requests can revoke these, and none needs them in the end. */
export const revocable = ['spare', 'other'];

/** Names of tokens in requests: `<alice>` is her token, `<alice~17>` the same but for the 18th character. */
export type Tokens = Readonly<Record<string, string>>;

/** Who sends the request; undefined if it has no valid token. */
export function senderOf(request: Request, all: Tokens): Sender | undefined {
  const [value = '', ...others] = sent(request, 'authorization');
  const [, text] = /^bearer +([!-~]+)$/i.exec(value) ?? [];
  const token = tokens.find(({ name }) => all[name] === text);
  return others.length > 0 || invalid.includes(token?.name ?? '') ? undefined : token;
}

const placeholder = /<([a-z]+)(?:~(\d+))?>/g;

export function withTokens(text: string, all: Tokens): string {
  return text.replace(placeholder, (_all, name: string, at: string | undefined) => {
    const token = all[name] ?? '';
    return at === undefined ? token : altered(token, Number(at));
  });
}

/** `{alice}` in a target is the id of her token. */
export function withIds(text: string, all: Tokens): string {
  return text.replace(/\{([a-z]+)\}/g, (_all, name: string) => idOf(all[name] ?? ''));
}

function altered(token: string, at: number): string {
  const other = token[at] === 'x' ? 'y' : 'x';
  return token.slice(0, at) + other + token.slice(at + 1);
}

/** Tokens for two new stores, which every storage gets with the same numbers: so the texts are the same too. */
export function tokensFor(): Tokens {
  const [main, elsewhere] = [randomInt(1, 2 ** 48 - 1), randomInt(1, 2 ** 48 - 1)];
  const names = [...tokens.map(({ name }) => name), 'unknown'];
  return Object.fromEntries(
    names.map((name) => [name, makeToken(name === 'dora' ? elsewhere : main)]),
  );
}

/** Adds them all. No request has used one before. */
export async function keepTokens(database: string, all: Tokens): Promise<void> {
  const nowMs = Date.now();
  const numberOf = ({ name }: Person) => numberIn(all[name === 'dora' ? 'dora' : 'maria'] ?? '');
  const stores = new Set(people.map(numberOf));
  await addRows(database, {
    stores: [...stores].map((number) => [number, `store ${number}`, 0, people.length, 0]),
    users: people.map((person, at) => [
      numberOf(person),
      at + 1,
      person.user,
      person.role,
      null,
      0,
    ]),
    tokens: tokens.map(({ name, person, scopes }): Row => {
      const { tokenHash } = credentialOf(all[name] ?? '');
      const key = [numberOf(person), tokenHash, people.indexOf(person) + 1];
      const expiresAtMs = name === 'expired' ? nowMs - 1 : null;
      const revokedAtMs = name === 'revoked' ? nowMs : null;
      const times = [nowMs, expiresAtMs, revokedAtMs, null];
      return [...key, formatScopes([...scopes]), '', ...times, null, null, '', null];
    }),
  });
}
