/**
 * What people do on the page.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import jsQR from 'jsqr';
import type { Locator, Page, Route } from 'playwright-core';
import type { TestApp } from '../support/app.ts';
import { idOf } from '../support/tokens.ts';
import { until } from '../support/until.ts';
import { openStore, type OpenStore } from './store.ts';

/** Ten times what the page promises for what others do: the computer of a test can be slow. */
export const promisedMs = 10_000;

/** The message at the bottom of the page. */
export function toast(page: Page, text: string | RegExp): Locator {
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

/** Switches to another tab, or back. While the tab is hidden, its page does not follow the store. */
export async function switchTab(page: Page, state: 'hidden' | 'visible'): Promise<void> {
  await page.evaluate(`{
    Object.defineProperty(document, 'visibilityState', { configurable: true, value: '${state}' });
    document.dispatchEvent(new Event('visibilitychange'));
  }`);
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

/** Presses Tab until the focus is on an element that matches the selector. */
export async function tabTo(page: Page, selector: string): Promise<void> {
  const isThere = () => page.evaluate(`document.activeElement.matches('${selector}')`);
  for (let presses = 0; presses < 40; presses++) {
    await page.keyboard.press('Tab');
    if (await isThere()) return;
  }
  assert.fail(`Tab does not reach ${selector}`);
}

/** The next request for these addresses reaches the service, but its response is lost. */
export async function loseResponse(page: Page, addresses: string): Promise<void> {
  const lose = async (route: Route) => {
    await route.fetch();
    await route.abort();
  };
  await page.route(addresses, lose, { times: 1 });
}

/** Holds the response to the next request for these addresses until `release`. */
export async function holdResponse(page: Page, addresses: string) {
  const { promise: isReleased, resolve } = Promise.withResolvers<void>();
  const { promise: isThere, resolve: responded } = Promise.withResolvers<void>();
  const { promise: sent, resolve: received } = Promise.withResolvers<void>();
  const hold = async (route: Route) => {
    const response = await route.fetch();
    received();
    await isReleased;
    await route.fulfill({ response }).catch(() => {}); // nobody may wait for it any more
    responded();
  };
  await page.route(addresses, hold, { times: 1 });
  const release = () => {
    resolve();
    return isThere;
  };
  return { sent, release };
}

/** The shares of the user with this token, as the service lists them. */
export const sharesOf = async (app: TestApp, token: string) =>
  (await app.call('GET', '/shares', { token })).json;

/** The text of the QR code that this part of the page shows; undefined if nothing can scan it. */
export async function scan(place: Locator): Promise<string | undefined> {
  const image = (await place.screenshot()).toString('base64');
  const [width, height, pixels]: [number, number, string] = await place.page()
    .evaluate(`(async () => {
    const bitmap = await createImageBitmap(new Blob([Uint8Array.fromBase64('${image}')]));
    const { width, height } = bitmap;
    const canvas = new OffscreenCanvas(width, height).getContext('2d');
    canvas.drawImage(bitmap, 0, 0);
    const { data } = canvas.getImageData(0, 0, width, height);
    return [width, height, new Uint8Array(data.buffer).toBase64()];
  })()`);
  const rgba = new Uint8ClampedArray(Buffer.from(pixels, 'base64'));
  return jsQR.default(rgba, width, height)?.data;
}

/** Opens the dialog, and waits until it lists the users. */
export async function openPeople(page: Page): Promise<void> {
  await page.locator('#who').click();
  await page.getByRole('button', { name: 'People' }).click();
  await page.locator('#people-users li').first().waitFor();
}

/** Opens the dialog, and waits until it lists the shares. */
export async function openSharing(page: Page): Promise<void> {
  await page.locator('#who').click();
  await page.getByRole('button', { name: 'Sharing' }).click();
  await page.getByText('Loading …').first().waitFor({ state: 'hidden' });
}

/** Opens the dialog, revokes the token, and adds the plant that was typed. */
export async function addWithRevokedToken(t: TestContext): Promise<OpenStore> {
  const store = await openStore(t);
  const { page, app, token } = store;
  await page.getByRole('button', { name: 'Add plant' }).click();
  await page.getByRole('textbox', { name: 'Name' }).fill('A name that took long to type');
  await app.storage.identity.revokeToken(idOf(token), Date.now());
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Your token no longer works' }).waitFor();
  return store;
}

const timeoutMs = 120_000;

/** Opens the dialog and chooses a file with this content. */
export async function choose(page: Page, name: string, content: string | Buffer): Promise<void> {
  if (!(await page.locator('#import').isVisible())) {
    await page.getByRole('button', { name: 'Import', exact: true }).click();
    await page.locator('#import').waitFor();
  }
  const file = { name, mimeType: 'text/plain', buffer: Buffer.from(content) };
  await page.getByLabel('Choose a CSV or JSON file').setInputFiles(file);
}

export function submit(page: Page): Locator {
  return page.getByRole('button', { name: /^(?:Import .* rows?|Update .*)$/ });
}

/** Waits until the import has ended with this message. */
export async function done(page: Page, text: string): Promise<void> {
  await page.locator('#import-done').getByText(text).waitFor({ timeout: timeoutMs });
}

/** Waits until the dialog shows that many added rows. */
export async function untilAdded(page: Page, count: number): Promise<void> {
  const shown = page.locator('#import-added');
  const isAdded = async () => Number((await shown.innerText()).replaceAll(',', '')) >= count;
  await until(`${count} rows are added`, isAdded, timeoutMs);
}
