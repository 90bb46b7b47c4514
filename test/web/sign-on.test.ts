/**
 * Signing in on the page through a real identity provider.
 */
import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import type { BrowserContextOptions, Page, Request } from 'playwright-core';
import { scopes } from '../../src/access.ts';
import { Verifier } from '../../src/oidc/verifier.ts';
import { violations } from '../support/accessibility.ts';
import { startApp } from '../support/app.ts';
import { openPage, withoutBrowser } from '../support/browser.ts';
import { startProvider } from '../support/provider.ts';
import { until } from '../support/until.ts';
import { browserOfFile, toast } from './store.ts';

const browser = browserOfFile();
const skip = withoutBrowser;

async function start(
  t: TestContext,
  options: { lifetimeSeconds?: number; context?: BrowserContextOptions } = {},
) {
  const { lifetimeSeconds = 600, context = {} } = options;
  const provider = await startProvider(t);
  const { issuer } = provider;
  const scope = ['openid', ...scopes].join(' ');
  const app = await startApp(t, {
    verifier: new Verifier(provider.options()),
    signOn: { issuer, clientId: 'page', scope },
  });
  provider.publish(provider.keys, { url: `${app.address}/`, lifetimeSeconds });
  const { page, errors } = await openPage(browser(), app.address, context);
  t.after(() => page.context().close());
  /** Those of our page: the one of the provider loads what it cannot reach. */
  const ourErrors = () => errors.filter((error) => !error.startsWith('Failed to load resource'));
  return { provider, app, page, ourErrors };
}

/** Presses Tab until the focus is on an element that matches the selector. */
async function tabTo(page: Page, selector: string): Promise<void> {
  for (let tabs = 0; tabs < 30; tabs++) {
    await page.keyboard.press('Tab');
    if (await page.evaluate(`document.activeElement.matches('${selector}')`)) return;
  }
  assert.fail(`Tab does not reach ${selector}`);
}

/** Enters a name on the page of the provider, and consents. */
async function signInAtProvider(page: Page, user: string): Promise<void> {
  await page.locator('input[name=login]').waitFor();
  await page.locator('input[name=login]').focus();
  await page.keyboard.type(user);
  await tabTo(page, 'input[name=password]');
  await page.keyboard.type('any');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Continue' }).waitFor();
  await tabTo(page, 'button[type=submit]');
  await page.keyboard.press('Enter');
}

const phone = { viewport: { width: 360, height: 640 }, colorScheme: 'dark' } as const;

it('a person signs in and out by keyboard, on a phone, in the dark', { skip }, async (t) => {
  const { app, page, ourErrors } = await start(t, { context: phone });
  await page.locator('#sign-in-start').waitFor();
  assert.deepEqual(await violations(page), []);
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360);
  await page.evaluate(`location.hash = 'tag=indoor'`);
  await tabTo(page, '#sign-in-start');
  await page.keyboard.press('Enter');
  await signInAtProvider(page, 'alice');
  await page.locator('#store').waitFor();
  assert.equal(page.url(), `${app.address}/#tag=indoor`, 'the code has left the address');
  assert.deepEqual(await violations(page), []);
  await tabTo(page, '#who');
  await page.keyboard.press('Enter');
  const facts = await page.locator('#identity-facts').innerText();
  for (const fact of ['alice', 'main', 'Member', 'plants:write']) assert.match(facts, RegExp(fact));
  await page.reload();
  await page.locator('#store').waitFor();
  await tabTo(page, '#who');
  await page.keyboard.press('Enter');
  await tabTo(page, '#sign-out');
  await page.keyboard.press('Enter');
  await page.locator('#sign-in-start').waitFor();
  assert.equal(await page.evaluate('sessionStorage.length'), 0);
  assert.deepEqual(ourErrors(), []);
});

it('the name of a provider fits on a phone, however long it is', { skip }, async (t) => {
  const issuer = `https://${'a'.repeat(60)}.${'b'.repeat(60)}.example/realms/garden`;
  const app = await startApp(t, { signOn: { issuer, clientId: 'page', scope: 'openid' } });
  const { page } = await openPage(browser(), app.address, phone);
  t.after(() => page.context().close());
  const widthOf = async (id: string) => (await page.locator(id).boundingBox())?.width ?? Infinity;
  assert.ok((await widthOf('#sign-in-start')) < 320);
  await page.evaluate(`document.getElementById('renew').showModal()`);
  assert.ok((await widthOf('#renew-start')) < 320);
  assert.deepEqual(await violations(page), []);
});

/** The access token that the tab has. */
async function tokenOf(page: Page): Promise<string> {
  return String(await page.evaluate(`sessionStorage.getItem('plant-store.token /')`));
}

it('an expired token is replaced without the person', { skip }, async (t) => {
  const { app, page, ourErrors } = await start(t, { lifetimeSeconds: 3 });
  await page.locator('#sign-in-start').click();
  await signInAtProvider(page, 'alice');
  await page.locator('#store').waitFor();
  const first = await tokenOf(page);
  const isExpired = async () => (await app.call('GET', '/token', { token: first })).status === 401;
  await until('the token is expired', isExpired);
  await page.locator('#empty-add').click();
  await page.locator('#add-name').fill('Aloe');
  await page.keyboard.press('Enter');
  await page.locator('#add-done').getByText('Added “Aloe”').waitFor();
  assert.notEqual(await tokenOf(page), first);
  assert.equal(await page.locator('#renew').isVisible(), false);
  const second = await tokenOf(page);
  await until(
    'the other token is expired',
    async () => (await app.call('GET', '/token', { token: second })).status === 401,
  );
  await page.reload();
  await page.locator('#store').waitFor();
  assert.deepEqual(ourErrors(), []);
});

it('a person who signed in is not offered to create a token', { skip }, async (t) => {
  const { app, page, ourErrors } = await start(t);
  const ours = await app.token('alice', { scopes });
  await page.locator('#sign-in-start').click();
  await signInAtProvider(page, 'alice');
  const openTokens = async () => {
    await page.locator('#who').click();
    await page.locator('#tokens-open').click();
  };
  await openTokens();
  await page.getByText('You cannot create tokens, because you signed in with an').waitFor();
  assert.equal(await page.locator('#tokens-form').isVisible(), false);
  assert.deepEqual(await violations(page), []);
  await page.getByRole('button', { name: 'Revoke' }).click();
  await page.locator('#confirm').getByRole('button', { name: 'Cancel' }).click();
  await page.locator('#tokens-close').click();

  await page.evaluate(`location.hash = 'token=${ours}'`); // another token of the same user
  await page.waitForURL(`${app.address}/`);
  await until('it is used', async () => (await tokenOf(page)) === ours);
  await openTokens();
  await page.locator('#tokens-label').waitFor();
  assert.equal(await page.locator('#tokens-refused').isVisible(), false);
  assert.deepEqual(ourErrors(), []);
});

/** Signs in on the page, and waits until its token is expired. */
async function startExpired(t: TestContext) {
  const started = await start(t, { lifetimeSeconds: 3 });
  const { app, page } = started;
  await page.locator('#sign-in-start').click();
  await signInAtProvider(page, 'alice');
  await page.locator('#store').waitFor();
  const token = await tokenOf(page);
  await until(
    'the token is expired',
    async () => (await app.call('GET', '/token', { token })).status === 401,
  );
  return started;
}

it('a person who has signed out gets no token that was requested before', { skip }, async (t) => {
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
  await page.locator('#filter-input').fill('indoor');
  await page.keyboard.press('Enter');
  await asked.promise;
  await page.locator('#who').click();
  await page.locator('#sign-out').focus();
  await page.keyboard.press('Enter'); // a click would wait for the document
  await page.locator('#sign-in-start').waitFor();
  assert.equal(await page.evaluate('sessionStorage.length'), 0);
});

it('a person signs in again if no other token can be had', { skip }, async (t) => {
  const { provider, app, page } = await startExpired(t);
  provider.publish(provider.keys, { url: `${app.address}/`, lifetimeSeconds: 600 }); // it forgets
  await page.locator('#filter-input').fill('indoor');
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog', { name: 'Your token no longer works' });
  await dialog.waitFor();
  assert.deepEqual(await violations(page), []);
  await dialog
    .getByRole('button', { name: `Sign in again with 127.0.0.1:${provider.port}` })
    .click();
  await signInAtProvider(page, 'alice');
  await page.locator('#store').waitFor();
});

it('a sign-in that fails or was not started here shows why', { skip }, async (t) => {
  const { provider, app, page } = await start(t);
  const fault = page.locator('#sign-in-on-fault');
  for (const answer of ['code=c&state=s', 'error=access_denied&state=s']) {
    await page.goto(`${app.address}/?${answer}`);
    await fault.getByText('This sign-in was not started in this tab.').waitFor();
    assert.equal(page.url(), `${app.address}/`);
  }
  await page.locator('#sign-in-start').click();
  await page.getByRole('link', { name: 'Cancel' }).click();
  await fault.getByText('did not sign you in: access_denied.').waitFor();
  await provider.stop();
  await page.locator('#sign-in-start').click();
  await fault.getByText('does not respond, or does not accept this page.').waitFor();
  assert.deepEqual(await violations(page), []);
  await page.locator('#sign-in-token').fill(await app.token('alice'));
  await page.keyboard.press('Enter');
  await page.locator('#store').waitFor();
});

it('an answer of a provider that nobody asked for leaves the open store', { skip }, async (t) => {
  const { app, page } = await start(t);
  await page.locator('#sign-in-token').fill(await app.token('alice'));
  await page.keyboard.press('Enter');
  await page.locator('#store').waitFor();
  for (const answer of ['code=c&state=s', 'error=access_denied&state=s']) {
    await page.goto(`${app.address}/?${answer}`);
    await toast(page, 'This sign-in was not started in this tab.').waitFor();
    await page.locator('#store').waitFor();
    assert.equal(page.url(), `${app.address}/`);
  }
});

it('an ID token for another client, or an expired one, is refused', { skip }, async (t) => {
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

it('a page that failed to get another token tries again', { skip }, async (t) => {
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
  await page.locator('#filter-input').fill('indoor');
  await page.keyboard.press('Enter');
  await page.locator('#failed, .toast').filter({ visible: true }).first().waitFor();
  provider.instead = undefined;
  await page.evaluate(`location.hash = ''`);
  await page.getByRole('heading', { name: 'No plants yet' }).waitFor();
});

it('a response for another sign-in is refused', { skip }, async (t) => {
  const { app, page } = await start(t);
  await page.locator('#sign-in-start').click();
  await page.locator('input[name=login]').waitFor();
  // The person returns to the page, where somebody has changed the nonce meanwhile.
  const change = `{
    const key = 'plant-store.sign-on /';
    const pending = JSON.parse(sessionStorage.getItem(key));
    sessionStorage.setItem(key, JSON.stringify({ ...pending, nonce: 'other' }));
  }`;
  const interaction = page.url();
  await page.goto(app.address);
  await page.evaluate(change);
  await page.goto(interaction);
  await signInAtProvider(page, 'alice');
  await page.getByText('The response of the provider is for another sign-in.').waitFor();
  assert.equal(await page.locator('#store').isVisible(), false);
});

it('the page can connect to the provider, and only the page', async (t) => {
  const { call } = await startApp(t, {
    signOn: { issuer: 'https://login.example/garden', clientId: '"><b>&', scope: 'openid' },
  });
  const policyOf = async (path: string) =>
    (await call('GET', path)).headers.get('content-security-policy') ?? '';
  assert.match(await policyOf('/'), /connect-src 'self' https:\/\/login\.example;/);
  for (const path of ['/docs', '/problems', '/web/main.ts']) {
    assert.match(await policyOf(path), /connect-src 'self';/);
  }
  const { text } = await call('GET', '/');
  assert.ok(
    text.includes('&quot;clientId&quot;:&quot;\\&quot;><b>&amp;&quot;'),
    text.slice(0, 2_000),
  );
});
