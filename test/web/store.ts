/**
 * A store that is open on the page in a browser.
 */
import assert from 'node:assert/strict';
import { AsyncResource } from 'node:async_hooks';
import { after, it, type TestContext } from 'node:test';
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
  /** Its name. */
  store: string;
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

/** What the tests of a process share ends after them all. Those who use it need no context of the hook. */
const file = { after: AsyncResource.bind(after) as TestContext['after'] };

let started: Promise<Browser> | undefined;

/** The browser of all tests of this process. */
export function browser(): Promise<Browser> {
  return (started ??= launchBrowser(file));
}

/** A test that needs the browser. */
export function inBrowser(name: string, run: (t: TestContext) => Promise<void>): void {
  it(name, { skip: withoutBrowser }, run);
}

interface OpenApp {
  app: TestApp;
  page: Page;
  errors: string[];
}

let shared: Promise<OpenApp> | undefined;
let stores = 0;

async function openShared(): Promise<OpenApp> {
  const app = await startApp(file);
  const permissions = ['clipboard-read', 'clipboard-write'];
  return { app, ...(await openPage(await browser(), app.address, { permissions })) };
}

/** Opens the link in the page of the test before. A reload costs half of what a new page does. */
async function reopen({ page, errors }: OpenApp, link: string): Promise<void> {
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await page.context().setOffline(false);
  await page.setViewportSize({ width: 1280, height: 720 });
  await page.emulateMedia({ colorScheme: null, reducedMotion: null });
  await page.evaluate(`{
    sessionStorage.clear();
    localStorage.clear();
    history.replaceState(null, '', '${link}');
  }`);
  page.once('framenavigated', () => (errors.length = 0)); // those before are of another test
  await page.reload();
}

/**
 * Opens a new store with these plants of alice, a manager, by a link with her token. The tests of a process share a
 * service and a page, so that a store costs no new context; options of either need their own.
 */
export async function openStore(
  t: TestContext,
  options: {
    plants?: readonly TestPlant[];
    access?: TokenOptions;
    context?: BrowserContextOptions;
    limits?: Limits;
    keepChangesMs?: number;
    wrap?: (storage: Storage) => Storage;
  } = {},
): Promise<OpenStore> {
  const { plants = shelf, access = {}, context, ...appOptions } = options;
  const isAlone = context !== undefined || Object.keys(appOptions).length > 0;
  const opened = isAlone
    ? await openAlone(t, appOptions, context)
    : await (shared ??= openShared());
  const { app, page, errors } = opened;
  const store = `store-${++stores}`;
  const tokenOf: TestApp['token'] = (user, more) => app.token(user, { store, ...more });
  const writer = await tokenOf('alice', { role: 'manager' });
  for (const json of plants) await app.call('POST', '/plants', { token: writer, json });
  const token = await tokenOf('alice', access);
  const link = `/#token=${token}`;
  await (isAlone ? page.goto(app.address + link) : reopen(opened, link));
  await page.locator('#store').waitFor();
  await page.locator('#grid[aria-busy=true]').waitFor({ state: 'hidden' });
  return { app: { ...app, token: tokenOf }, store, token, page, errors };
}

async function openAlone(
  t: TestContext,
  appOptions: Parameters<typeof startApp>[1],
  context?: BrowserContextOptions,
): Promise<OpenApp> {
  const app = await startApp(t, appOptions);
  const opened = await openPage(await browser(), 'about:blank', context);
  t.after(() => opened.page.context().close());
  return { app, ...opened };
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

export async function openBin(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'More' }).click();
  await page.getByRole('button', { name: 'Bin' }).click();
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
