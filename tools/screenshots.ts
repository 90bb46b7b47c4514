/**
 * Makes the pictures of the page for README.md and docs/how-to/page.md, and its icons: `npm run screenshots`. It drives a real service with
 * plants as a nursery has them, in a real browser.
 */
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { BrowserContextOptions } from 'playwright-core';
import { startApp } from '../test/support/app.ts';
import { launchBrowser, openPage } from '../test/support/browser.ts';
import { plantPath } from './reference/icon.ts';

const folder = fileURLToPath(new URL('../docs/images/', import.meta.url));

const copies = 4;
const nursery = {
  greenhouse: ['Monstera deliciosa', 'Calathea orbifolia', 'Strelitzia nicolai', 'Anthurium'],
  indoor: ['Ficus lyrata', 'Pilea peperomioides', 'Zamioculcas', 'Begonia maculata'],
  herbs: ['Thymus vulgaris', 'Salvia rosmarinus', 'Ocimum basilicum', 'Origanum majorana'],
  'bed 1': ['Lavandula angustifolia', 'Nepeta faassenii', 'Salvia nemorosa'],
  'bed 2': ['Geranium sanguineum', 'Alchemilla mollis'],
  'for sale': ['Aloe vera', 'Hoya carnosa', 'Epipremnum aureum'],
  '': ['Olea europaea', 'Ginkgo biloba'],
};

const desktop = { viewport: { width: 1280, height: 800 } };
const phone = { viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true };

const cleanups: (() => unknown)[] = [];
const scope: Pick<TestContext, 'after'> = {
  after(cleanup) {
    cleanups.unshift(cleanup as () => unknown); // those of the app and the browser use no context
  },
};
const app = await startApp(scope);
const token = await app.token('alice', { role: 'manager' });
for (const json of plants()) await app.call('POST', '/plants', { token, json });
const browser = await launchBrowser(scope);
await picture('page', { ...desktop, colorScheme: 'light' });
await picture('page-dark', { ...desktop, colorScheme: 'dark' });
await picture('page-phone', { ...phone, colorScheme: 'light' });
for (const size of [192, 512]) await icon(size);
for (const cleanup of cleanups) await cleanup();

async function picture(name: string, context: BrowserContextOptions): Promise<void> {
  const { page } = await openPage(browser, `${app.address}/#token=${token}`, {
    ...context,
    reducedMotion: 'reduce',
  });
  await page.locator('#grid[aria-busy=false]').waitFor();
  await page.screenshot({ path: `${folder}${name}.png` });
  await page.context().close();
}

/** For the home screen: phones cut off its corners. */
async function icon(size: number): Promise<void> {
  const page = await browser.newPage({ viewport: { width: size, height: size } });
  await page.setContent(
    `<body style="margin:0;background:#1d6b44"><svg viewBox="-8 -8 40 40">
      <path d="${plantPath}" fill="none" stroke="#fff" stroke-width="1.7" stroke-linecap="round" stroke-linejoin="round"/>
    </svg>`,
  );
  const path = fileURLToPath(new URL(`../src/web/icons/icon-${size}.png`, import.meta.url));
  await page.screenshot({ path });
  await page.close();
}

/** The plants in an order without a pattern, which is the same each time. */
function plants(): { name: string; tag: string }[] {
  const all = Object.entries(nursery).flatMap(([tag, names]) =>
    names.flatMap((name) => Array.from({ length: copies }, () => ({ name, tag }))),
  );
  return all.map((_, at) => all[(at * 29) % all.length]).filter((plant) => plant !== undefined);
}
