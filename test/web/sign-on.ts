/**
 * Signing in on the page through a real identity provider.
 */
import type { TestContext } from 'node:test';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { scopes } from '../../src/access/access.ts';
import { Verifier } from '../../src/oidc/verifier.ts';
import { startApp } from '../support/app.ts';
import { openPage } from '../support/browser.ts';
import { startProvider } from '../support/provider.ts';
import { until } from '../support/until.ts';
import { switchTab } from './actions.ts';
import { browser } from './store.ts';

/** Starts a provider and a service, and opens the page of the service. */
export async function start(
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
  const { page, errors } = await openPage(await browser(), app.address, context);
  t.after(() => page.context().close());
  /** Those of our page: the one of the provider loads what it cannot reach. */
  const ourErrors = () => errors.filter((error) => !error.startsWith('Failed to load resource'));
  return { provider, app, page, ourErrors };
}

/** Enters a name on the page of the provider, and consents. */
export async function signInAtProvider(page: Page, user: string): Promise<void> {
  await page.locator('input[name=login]').fill(user);
  await page.locator('input[name=password]').fill('any');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Continue' }).click();
}

/** The access token that the tab has. */
export async function tokenOf(page: Page): Promise<string> {
  return String(await page.evaluate(`sessionStorage.getItem('plant-store.token /')`));
}

/** Signs in on the page, and waits until its token is expired. */
export async function startExpired(t: TestContext) {
  const started = await start(t, { lifetimeSeconds: 3 });
  const { page } = started;
  await page.locator('#sign-in-start').click();
  await signInAtProvider(page, 'alice');
  await page.locator('#store').waitFor();
  await switchTab(page, 'hidden'); // it would get another token by itself
  const [, claims = ''] = (await tokenOf(page)).split('.');
  const { exp } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as { exp: number }; // as the provider signs them
  await until('the token is expired', () => Date.now() >= exp * 1_000);
  return started;
}
