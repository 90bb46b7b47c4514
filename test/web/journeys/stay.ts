/**
 * Staying signed in on a device.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { BrowserContext, Page } from 'playwright-core';
import { scopes } from '../../../src/access/access.ts';
import { idOf } from '../../support/tokens.ts';
import { until } from '../../support/until.ts';
import { changeUser, toast } from '../actions.ts';
import { browser, inBrowser, openStore, type OpenStore } from '../store.ts';

interface Listed {
  id: string;
  label: string;
  state: string;
  expiresAt?: string;
  renewableUntil?: string;
}
const dayMs = 86_400_000;

const keptIn = (page: Page) =>
  page.evaluate<string | null>(`localStorage.getItem('plant-store.token /')`);

/** A device on which alice signs in with a token that she pastes, and stays. */
async function setUp(t: TestContext) {
  const opened = await openStore(t, { access: { scopes } });
  const device = await (await browser()).newContext();
  t.after(() => device.close());
  const page = await device.newPage();
  await page.goto(opened.app.address);
  await page.locator('#sign-in-token').fill(opened.token);
  await page.locator('#sign-in-stay').check();
  await page.getByRole('button', { name: 'Open the store' }).click();
  await toast(page, 'You stay signed in on this device.').waitFor();
  return { ...opened, device, page };
}

/** The tokens of this device that are active, or have ended. */
async function tokensOf({ app, token }: OpenStore, state = 'active'): Promise<Listed[]> {
  const { json } = await app.call('GET', '/tokens', { token });
  return (json as Listed[]).filter((each) => each.label !== '' && each.state === state);
}

/** What is there after a restart of the browser, days later. */
async function restart(t: TestContext, device: BrowserContext, days: number) {
  const restarted = await (
    await browser()
  ).newContext({ storageState: await device.storageState() });
  t.after(() => restarted.close());
  await restarted.clock.install({ time: Date.now() + days * dayMs });
  return restarted;
}

async function openIn(context: BrowserContext, address: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(address);
  await page.locator('#rows').getByText('Aloe vera').waitFor();
  return page;
}

inBrowser('a device stays signed in over restarts, until somebody signs out there', async (t) => {
  const opened = await setUp(t);
  const { app, device, page, token } = opened;
  const [listed, ...others] = await tokensOf(opened);
  assert.deepEqual(others, []);
  assert.match(listed?.label ?? '', /^Chrome on /);
  const daysUntil = (time = '') => Math.round((Date.parse(time) - Date.now()) / dayMs);
  assert.ok([29, 30].includes(daysUntil(listed?.expiresAt)));
  assert.ok([179, 180].includes(daysUntil(listed?.renewableUntil)));
  assert.notEqual(await keptIn(page), token, 'it has a token of its own');
  assert.equal(await page.evaluate('sessionStorage.length'), 0);

  const restarted = await restart(t, device, 0);
  const [one, other] = [await openIn(restarted, app.address), await openIn(restarted, app.address)];
  await one.locator('#who').click();
  await one.getByText('You stay signed in on this device for 30 days after each visit').waitFor();
  await one.getByRole('button', { name: 'Sign out' }).click();
  for (const tab of [one, other])
    await tab.getByRole('heading', { name: 'Open your store' }).waitFor();
  assert.equal(await keptIn(one), null);
  await until('the token is revoked', async () => (await tokensOf(opened)).length === 0);
  // The first browser has a copy of the token, and it learns why it does not work.
  await page.reload();
  await page.getByText('You are not signed in on this device any more').waitFor();
});

inBrowser('tabs that open at once on a later day get the same next token', async (t) => {
  const opened = await setUp(t);
  const { app, device } = opened;
  const [first] = await tokensOf(opened);
  const restarted = await restart(t, device, 3);
  const tabs = await Promise.all([1, 2, 3].map(() => openIn(restarted, app.address)));
  const [tab] = tabs as [Page];
  await until('the first token is revoked', async () => {
    const [ended] = await tokensOf(opened, 'revoked');
    return ended?.id === first?.id;
  });
  const active = await tokensOf(opened);
  assert.equal(active.length, 1);
  assert.equal(active[0]?.renewableUntil, first?.renewableUntil, 'it does not stay for ever');
  const later = Date.parse(active[0]?.expiresAt ?? '') - Date.parse(first?.expiresAt ?? '');
  assert.equal(later, 3 * dayMs);
  for (const each of tabs) {
    await each.getByRole('button', { name: 'Add plant' }).click();
    await each.getByRole('textbox', { name: 'Name' }).fill('Basil');
    await each.keyboard.press('Enter');
    await each.locator('#add-done').getByText('Added “Basil”').waitFor();
  }
  await tab.reload();
  await tab.locator('#rows').getByText('Basil').first().waitFor();
  assert.deepEqual(await tokensOf(opened), active, 'the same day has no other token');
});

inBrowser('signing out ends what the device keeps, whichever token the tab has', async (t) => {
  const opened = await setUp(t);
  const { page, token } = opened;
  await page.evaluate(`location.hash = 'token=${token}'`); // the same user, in this tab alone
  await until('the tab has the token', () =>
    page.evaluate(`sessionStorage.getItem('plant-store.token /') === '${token}'`),
  );
  await page.locator('#who').click();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Open your store' }).waitFor();
  assert.equal(await keptIn(page), null);
  assert.deepEqual(await tokensOf(opened), []);
});

inBrowser('a tab of another user never becomes one of the user who stays signed in', async (t) => {
  const { app, page } = await setUp(t);
  const token = await app.token('bob');
  await changeUser(page, token);
  await page.locator('#who').getByText('bob').waitFor();
  await app.storage.identity.revokeToken(idOf(token), Date.now());
  await page.reload();
  await page.getByText('The token is revoked. Get a new one.').waitFor();
  await page.getByRole('heading', { name: 'Open your store' }).waitFor();
});

inBrowser(
  'a device that is signed out from elsewhere asks, and keeps what was typed',
  async (t) => {
    const opened = await setUp(t);
    const { app, page, token } = opened;
    await page.getByRole('button', { name: 'Add plant' }).click();
    await page.getByRole('textbox', { name: 'Name' }).fill('Typed');
    for (const { id } of await tokensOf(opened))
      await app.call('DELETE', `/tokens/${id}`, { token });
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Your token no longer works' }).waitFor();
    const json = { invitation: {} };
    const { json: invited } = await app.call('POST', '/users/alice/tokens', { token, json });
    const link = `${app.address}/#token=${(invited as { token: string }).token}`;
    await page.locator('#renew-token').fill(link);
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Join' }).click();
    await page.locator('#add-done').getByText('Added “Typed”').waitFor();
    await until('the device stays signed in', async () => (await tokensOf(opened)).length === 1);
  },
);
