/**
 * A store that is open on the page in a browser.
 */
import assert from 'node:assert/strict';
import { after, before, type TestContext } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core';
import type { Limits } from '../../src/http/auth/request-limits.ts';
import type { Storage } from '../../src/storage.ts';
import { startApp, type TestApp, type TokenOptions } from '../support/app.ts';
import { launchBrowser, openPage, withoutBrowser } from '../support/browser.ts';
import { until } from '../support/until.ts';

export interface TestPlant {
  name: string;
  tag?: string;
  id?: number;
}

export interface OpenStore {
  app: TestApp;
  token: string;
  page: Page;
  /** Uncaught errors and violations of the policy. */
  errors: string[];
}

export const shelf: TestPlant[] = [
  { name: 'Monstera deliciosa', tag: 'indoor' },
  { name: 'Ficus lyrata', tag: 'indoor' },
  { name: 'Thymus vulgaris', tag: 'herbs' },
  { name: 'Aloe vera' },
];

/** One browser for the tests of a file. */
export function browserOfFile(): () => Browser {
  let browser: Browser | undefined;
  before(async () => {
    // The file closes it, because a hook that is added here would belong to this hook.
    if (withoutBrowser === false) browser = await launchBrowser({ after: () => {} });
  });
  after(() => browser?.close());
  return () => {
    assert.ok(browser, 'the test has the option skip: withoutBrowser');
    return browser;
  };
}

/** Starts the service with these plants of alice, a manager, and opens the page by a link with her token. */
export async function openStore(
  t: TestContext,
  browser: Browser,
  options: {
    plants?: readonly TestPlant[];
    access?: TokenOptions;
    context?: BrowserContextOptions;
    limits?: Limits;
    keepChangesMs?: number;
    wrap?: (storage: Storage) => Storage;
  } = {},
): Promise<OpenStore> {
  const { plants = shelf, access = {}, context = {}, limits = {}, keepChangesMs, wrap } = options;
  const app = await startApp(t, { limits, keepChangesMs, ...(wrap && { wrap }) });
  const writer = await app.token('alice', { role: 'manager' });
  for (const json of plants) await app.call('POST', '/plants', { token: writer, json });
  const token = await app.token('alice', access);
  const { page, errors } = await openPage(browser, `${app.address}/#token=${token}`, context);
  t.after(() => page.context().close());
  await page.locator('#store').waitFor();
  await page.locator('#grid[aria-busy=true]').waitFor({ state: 'hidden' });
  return { app, token, page, errors };
}

/** The message at the bottom of the page. */
export function toast(page: Page, text: string): Locator {
  return page.locator('.toast').getByText(text);
}

/** The names in the table, from the top. */
async function namesIn(page: Page): Promise<string[]> {
  return page.locator('#rows .name').allTextContents();
}

/** Waits until the table shows these names: it draws changes with the next frame. */
export async function assertNames(page: Page, names: readonly string[]): Promise<void> {
  await until(`the table shows ${names.join(', ')}`, async () =>
    isDeepStrictEqual(await namesIn(page), names),
  );
}

/** The names of all plants that alice's store has. */
export async function namesOf({ app, token }: OpenStore): Promise<string[]> {
  const { json } = await app.call('GET', '/plants?fields=name', { token });
  return (json as { name: string }[]).map(({ name }) => name);
}

/** Deletes what is selected, or the plant that is open. */
export async function deleteChosen(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Delete' }).click();
}

/** Opens the page in a browser of another person, or of the same one. */
export async function openElsewhere(
  t: TestContext,
  browser: Browser,
  { app }: Pick<OpenStore, 'app'>,
  token: string,
): Promise<Page> {
  const { page } = await openPage(browser, `${app.address}/#token=${token}`);
  t.after(() => page.context().close());
  await page.locator('#grid[aria-busy=false]').waitFor();
  return page;
}

/** Follows a link with a token of another user, and agrees. */
export async function changeUser(page: Page, token: string): Promise<void> {
  await page.evaluate(`location.hash = 'token=${token}'`);
  await page.locator('#confirm-yes').click();
}

/** Presses the keys, one after another. */
export async function press(page: Page, ...keys: string[]): Promise<void> {
  for (const key of keys) await page.keyboard.press(key);
}

/** Presses the buttons with these selectors within one frame, and waits until it is drawn. */
export async function pressAtOnce(page: Page, ...selectors: string[]): Promise<void> {
  await page.evaluate(`new Promise((drawn) => {
    for (const each of ${JSON.stringify(selectors)}) document.querySelector(each).click();
    requestAnimationFrame(() => setTimeout(drawn));
  })`);
}

/** Presses Tab until the focus is on the element with this id. */
export async function tabTo(page: Page, id: string): Promise<void> {
  const passed: unknown[] = [];
  while (passed.at(-1) !== id) {
    assert.ok(passed.length < 40, `Tab reaches ${id}: ${passed.join(', ')}`);
    await page.keyboard.press('Tab');
    passed.push(await page.evaluate('document.activeElement.id'));
  }
}
