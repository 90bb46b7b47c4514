/**
 * A store that is open on the page in a browser.
 */
import { AsyncResource } from 'node:async_hooks';
import { after, it, type TestContext } from 'node:test';
import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core';
import type { Limits } from '../../src/http/auth/request-limits.ts';
import type { Storage } from '../../src/storage.ts';
import { startApp, type TestApp, type TokenOptions } from '../support/app.ts';
import { launchBrowser, openPage, withoutBrowser } from '../support/browser.ts';

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

/** The names of the plants of the shelf. */
export const shelfNames = shelf.map(({ name }) => name);

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
  const canRead = options.wrap === undefined && (access.scopes?.includes('plants:read') ?? true);
  await (canRead ? shown(page, plants.length) : page.locator('#store')).waitFor();
  return { app: { ...app, token: tokenOf }, store, token, page, errors };
}

/** Where the page counts what it shows. Announcements to screen readers can have the same text. */
export function countOn(page: Page, text: string): Locator {
  return page.locator('#store-count').getByText(text, { exact: true });
}

/** What the page shows once it has read that many plants, and can be used. */
function shown(page: Page, count: number): Locator {
  if (count === 0) return page.getByRole('heading', { name: 'No plants yet' });
  return countOn(page, count === 1 ? '1 plant' : `${count} plants`);
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
