/**
 * The token with which this browser stays signed in. It is named after the browser, and ends after a time without a
 * visit: another one takes its place on each day on which the page is opened.
 */
import type { NewToken, Token } from '../../client/client.ts';
import { PlantStoreError } from '../../client/problem.ts';
import { outcomeOf } from '../shared/outcome.ts';
import { recall, remember } from '../shared/remember.ts';
import { connect, serviceUrl } from './connection.ts';

/** How long the browser stays signed in without a visit. */
export const idleDays = 30;
/** How long it stays signed in at most. */
const maxDays = 180;
const dayMs = 86_400_000;
/** The service can be unavailable when somebody signs out. */
const revokeMs = 5_000;

/** Of the token that this tab or this browser keeps. Other services can have another path of the same origin. */
export const tokenKey = `plant-store.token ${serviceUrl.pathname}`;

/** Where the name of a browser contains the first text, people know the second. Most contain names of others too. */
const browsers = {
  Edg: 'Edge',
  OPR: 'Opera',
  SamsungBrowser: 'Samsung Internet',
  Firefox: 'Firefox',
  FxiOS: 'Firefox',
  Chrome: 'Chrome',
  CriOS: 'Chrome',
  Safari: 'Safari',
};
const systems = {
  Android: 'Android',
  iPhone: 'iPhone',
  iPad: 'iPad',
  Windows: 'Windows',
  CrOS: 'ChromeOS',
  Mac: 'macOS',
  Linux: 'Linux',
};

/** What people call this browser, such as "Chrome on Android". */
function deviceName(): string {
  const nameIn = (names: Record<string, string>) =>
    Object.entries(names).find(([part]) => navigator.userAgent.includes(part))?.[1];
  return `${nameIn(browsers) ?? 'Browser'} on ${nameIn(systems) ?? 'another system'}`;
}

/** A token for this browser that ends at the latest then. Tabs that ask for it on the same day ask for the same one. */
export function deviceTerms(latest: string | undefined) {
  const latestMs = latest === undefined ? Infinity : Date.parse(latest);
  const today = Math.floor(Date.now() / dayMs);
  const inDays = (days: number) =>
    new Date(Math.min((today + days) * dayMs, latestMs)).toISOString();
  return {
    label: deviceName(),
    expiresAt: inDays(idleDays),
    renewableUntil: inDays(maxDays),
  } satisfies NewToken;
}

/** The token with which this browser stays signed in. */
export function keptToken(): string | undefined {
  return recall(tokenKey, 'device');
}

/** Keeps a token in place of the one before, which nobody uses any more. */
export function keepToken(token: string | undefined): Promise<void> {
  const before = keptToken();
  remember(tokenKey, token, 'device');
  return before === undefined || before === token ? Promise.resolve() : revoke(before);
}

/** Gets the token that takes the place of a kept one; undefined if it is not time for one, or another tab has got it. */
export async function successorOf(
  token: string,
  { expiresAt = '', renewableUntil = expiresAt }: Token,
): Promise<string | undefined> {
  const terms = deviceTerms(renewableUntil);
  if (Date.parse(terms.expiresAt) <= Date.parse(expiresAt)) return undefined;
  // With the same key, tabs that are opened at once get the same token.
  const options = { idempotencyKey: `until ${terms.expiresAt}` };
  const created = await outcomeOf(connect(token).createToken(terms, options));
  if (created instanceof PlantStoreError) return undefined;
  if (keptToken() === token) return created.token;
  if (keptToken() !== created.token) await revoke(created.token); // the user has signed out meanwhile
  return undefined;
}

/** Ends a token that nobody uses any more. If the service does not respond, it ends by itself after some time. */
async function revoke(token: string): Promise<void> {
  await outcomeOf(connect(token).revokeOwnToken({ timeoutMs: revokeMs }));
}
