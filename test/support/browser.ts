/**
 * A real browser: Debian's Chromium, or the one that PLANT_STORE_TEST_BROWSER names. Its headless shell draws the same
 * pages for half of the CPU, so it is taken if it is there.
 */
import { existsSync } from 'node:fs';
import type { TestContext } from 'node:test';
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import { skipOutsideCi } from './programs.ts';

/** The browser that tests start. */
export const browserFile =
  process.env['PLANT_STORE_TEST_BROWSER'] ??
  ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'].find((file) => existsSync(file)) ??
  '/usr/bin/chromium';

/** The `skip` option of a test that needs the browser: a reason if there is none. */
export const withoutBrowser =
  !existsSync(browserFile) &&
  skipOutsideCi(
    `Missing: ${browserFile}. On Debian: apt-get install chromium. Or set PLANT_STORE_TEST_BROWSER to a browser.`,
  );

/** Starts the browser, and closes it after the test. */
export async function launchBrowser(t: Pick<TestContext, 'after'>): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath: browserFile,
    args: [
      // A container runs tests as root and has a small /dev/shm.
      '--no-sandbox',
      '--disable-dev-shm-usage',
      // An address without HTTPS that is not of this computer.
      '--host-resolver-rules=MAP shop.example 127.0.0.1',
    ],
  });
  t.after(() => browser.close());
  return browser;
}

/** Opens an address in a new, empty profile. `errors` collects uncaught errors and violations of the policy. */
export async function openPage(
  browser: Browser,
  address: string,
  options: BrowserContextOptions = {},
): Promise<{ page: Page; errors: string[] }> {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(message.text());
  });
  await page.goto(address);
  return { page, errors };
}
