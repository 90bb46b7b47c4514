/**
 * Rare events of signing in through an identity provider, on the page.
 */
import assert from 'node:assert/strict';
import type { Request } from 'playwright-core';
import { scopes } from '../../../src/access/access.ts';
import { violations } from '../../support/accessibility.ts';
import { until } from '../../support/until.ts';
import { signInAtProvider, start, startExpired, tokenOf } from '../sign-on.ts';
import { inBrowser } from '../store.ts';

inBrowser('a page that loads with an expired token replaces it', async (t) => {
  const { page, ourErrors } = await startExpired(t);
  await page.reload();
  await page.locator('#store').waitFor();
  assert.equal(await page.locator('#renew').isVisible(), false);
  assert.deepEqual(ourErrors(), []);
});

inBrowser('a person who signed in is not offered to create a token', async (t) => {
  const { app, page, ourErrors } = await start(t);
  const ours = await app.token('alice', { scopes });
  await page.locator('#sign-in-start').click();
  await signInAtProvider(page, 'alice');
  const openTokens = async () => {
    await page.locator('#who').click();
    await page.locator('#tokens-open').waitFor();
    const canStay = await page.locator('#stay').isVisible();
    await page.locator('#tokens-open').click();
    return canStay;
  };
  assert.equal(await openTokens(), false, 'the provider decides how long the person stays');
  await page.getByText('You cannot create tokens, because you signed in with an').waitFor();
  assert.equal(await page.locator('#tokens-form').isVisible(), false);
  assert.deepEqual(await violations(page), []);
  await page.getByRole('button', { name: 'Revoke' }).click();
  await page.locator('#confirm').getByRole('button', { name: 'Cancel' }).click();
  await page.locator('#tokens-close').click();

  await page.evaluate(`location.hash = 'token=${ours}'`); // another token of the same user
  await page.waitForURL(`${app.address}/`);
  await until('it is used', async () => (await tokenOf(page)) === ours);
  assert.equal(await openTokens(), true);
  await page.locator('#tokens-label').waitFor();
  assert.equal(await page.locator('#tokens-refused').isVisible(), false);
  assert.deepEqual(ourErrors(), []);
});

inBrowser('a person who has signed out gets no token that was requested before', async (t) => {
  const { provider, app, page } = await startExpired(t);
  const asked = Promise.withResolvers<void>();
  const signedOut = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  const isForToken = (request: Request) => request.url() === `${provider.issuer}/token`;
  for (const event of ['requestfinished', 'requestfailed'] as const) {
    // Both names are in the overloads, but not their union.
    page.on(event as 'requestfailed', (request) => isForToken(request) && ended.resolve());
  }
  await page.route(`${provider.issuer}/token`, async (route) => {
    asked.resolve();
    await signedOut.promise;
    await route.continue().catch(() => {}); // the page has aborted it
  });
  await page.route(`${app.address}/`, async (route) => {
    signedOut.resolve();
    await ended.promise;
    await route.continue();
  });
  await page.locator('#search-input').fill('indoor');
  await asked.promise;
  await page.locator('#who').click();
  await page.locator('#sign-out').focus();
  await page.keyboard.press('Enter'); // a click would wait for the document
  await page.locator('#sign-in-start').waitFor();
  assert.equal(await page.evaluate('sessionStorage.length'), 0);
});

inBrowser('a person signs in again if no other token can be had', async (t) => {
  const { provider, app, page } = await startExpired(t);
  provider.publish(provider.keys, { url: `${app.address}/`, lifetimeSeconds: 600 }); // it forgets
  await page.locator('#search-input').fill('indoor');
  const dialog = page.getByRole('dialog', { name: 'Your token no longer works' });
  await dialog.waitFor();
  assert.deepEqual(await violations(page), []);
  await dialog
    .getByRole('button', { name: `Sign in again with 127.0.0.1:${provider.port}` })
    .click();
  await signInAtProvider(page, 'alice');
  await page.locator('#store').waitFor();
});

inBrowser('an ID token for another client or sign-in, or an expired one, is refused', async (t) => {
  const { provider, page } = await start(t);
  const claims: { now: Record<string, unknown> } = { now: {} };
  await page.route(`${provider.issuer}/token`, async (route) => {
    const response = await route.fetch();
    const tokens = (await response.json()) as { id_token: string };
    const [header, payload = '', signature] = tokens.id_token.split('.');
    const theirs = JSON.parse(Buffer.from(payload, 'base64url').toString());
    const changed = Buffer.from(JSON.stringify({ ...theirs, ...claims.now })).toString('base64url');
    await route.fulfill({
      response,
      json: { ...tokens, id_token: [header, changed, signature].join('.') },
    });
  });
  const nowSeconds = Math.floor(Date.now() / 1_000);
  const signIn = async (changes: Record<string, unknown>) => {
    const isFirst = Object.keys(claims.now).length === 0; // the provider remembers the person
    claims.now = changes;
    await page.locator('#sign-in-start').click();
    if (isFirst) await signInAtProvider(page, 'alice');
  };
  for (const changes of [
    { exp: nowSeconds - 600 },
    { exp: undefined },
    { exp: 'tomorrow' },
    { nonce: 'other' },
    { azp: 'other' },
    { aud: ['page', 'other'] },
    { aud: ['other'], azp: 'page' },
  ]) {
    await signIn(changes);
    const reason = 'exp' in changes ? 'has expired. Check the clock' : 'is for another sign-in';
    await page.locator('#sign-in-on-fault').getByText(reason).waitFor();
    assert.equal(await page.locator('#store').isVisible(), false, JSON.stringify(changes));
  }
  await signIn({ aud: ['page', 'other'], azp: 'page' });
  await page.locator('#store').waitFor();
});

inBrowser('a page that failed to get another token tries again', async (t) => {
  const { provider, page } = await startExpired(t);
  provider.instead = (request, response) => {
    const isForToken = request.url === '/token';
    response.setHeader('access-control-allow-origin', '*');
    response.setHeader('content-type', 'application/json');
    const { issuer } = provider;
    const json = isForToken
      ? { access_token: 'no such character can be in a header: ✓' }
      : { issuer, token_endpoint: `${issuer}/token` };
    response.end(JSON.stringify(json));
  };
  await page.locator('#search-input').fill('indoor');
  await page.locator('#failed, .toast').filter({ visible: true }).first().waitFor();
  provider.instead = undefined;
  await page.evaluate(`location.hash = ''`);
  await page.getByRole('heading', { name: 'No plants yet' }).waitFor();
});
