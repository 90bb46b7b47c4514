/**
 * The site of the documentation, as `npm run docs` has built it: on its own, on a phone, and in the dark.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, globSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, extname, join, relative } from 'node:path';
import { test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Page as BrowserPage } from 'playwright-core';
import { violations } from './support/accessibility.ts';
import { launchBrowser, openPage, withoutBrowser } from './support/browser.ts';
import { tempFolder } from './support/temp.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const site = join(root, 'site');
const dist = join(site, 'dist');
const pages = globSync('**/*.html', { cwd: dist }).filter((page) => page !== '404.html');
const read = (file: string) => readFileSync(join(dist, file), 'utf8');

test('the site has every page of the documentation, and README.md is the first', () => {
  const ofDocs = globSync('docs/**/*.md', { cwd: root });
  assert.ok(ofDocs.length > 50);
  const others = ['README', 'CONTRIBUTING', 'CHANGELOG', 'SECURITY', 'bench/results/README'];
  const titles = [...ofDocs, ...others.map((name) => `${name}.md`)].map((file) => {
    const [, title = ''] = /^# (.+)$/m.exec(readFileSync(join(root, file), 'utf8')) ?? [];
    return title.replaceAll('`', '');
  });
  const shown = pages.map((page) => titleOf(read(page)));
  assert.deepEqual(shown.toSorted(), titles.toSorted());
  assert.equal(titleOf(read('index.html')), 'Plant Store');
});

/** The text of its first heading, without the link beside it. */
function titleOf(html: string): string {
  const [, heading = ''] = /<h1[^>]*>(.*?) <a class="header-anchor"/s.exec(html) ?? [];
  const text = heading.replaceAll(/<[^>]+>/g, '');
  return text.replaceAll('&#39;', "'").replaceAll('&quot;', '"').replaceAll('&amp;', '&');
}

test('every link and file of the site exists, and only links lead to other sites', () => {
  const ids = new Map(pages.map((page) => [page, idsOf(read(page))]));
  const isThere = (page: string, url: string) => {
    const [path = '', anchor = ''] = url.split('#');
    const target = path === '' ? page : join(dirname(page), path.replace(/\/$/, '/index.html'));
    const hasAnchor = anchor === '' || ids.get(target)?.has(decodeURIComponent(anchor));
    return existsSync(join(dist, target)) && hasAnchor;
  };
  const addresses = pages.flatMap((page) =>
    [...read(page).matchAll(/<(\w+)[^>]*?\s(?:href|src)="([^"]*)"/g)]
      .map(([, element, url = '']) => ({ page, element, url }))
      .filter(({ url }) => !url.startsWith('data:')),
  );
  const isOutside = ({ url }: { url: string }) => /^[a-z]+:|^\/\//.test(url);
  const inside = addresses.filter((address) => !isOutside(address));
  assert.ok(inside.length > 1_000);
  assert.deepEqual(
    inside.filter(({ page, url }) => !isThere(page, url)),
    [],
  );
  assert.deepEqual(
    addresses.filter((address) => isOutside(address) && address.element !== 'a'),
    [],
  );
  for (const style of globSync('**/*.css', { cwd: dist })) {
    assert.doesNotMatch(read(style), /url\(\s*["']?(?:https?:)?\/\//, style);
  }
});

function idsOf(html: string): Set<string> {
  return new Set([...html.matchAll(/\sid="([^"]+)"/g)].map(([, id = '']) => id));
}

test('a link to a page or a file that does not exist fails the build', async (t) => {
  const copy = join(tempFolder(t), 'copy');
  const excluded = /(?:^|\/)(?:node_modules|dist|dist-client|\.git|\.cache)$/;
  cpSync(root, copy, { recursive: true, filter: (file) => !excluded.test(relative(root, file)) });
  symlinkSync(join(site, 'node_modules'), join(copy, 'site/node_modules'));
  const page = join(copy, 'docs/explanation/architecture.md');
  const text = readFileSync(page, 'utf8');
  for (const [link, missing] of [
    ['../how-to/fly.md', 'docs/how-to/fly.md'],
    ['../../src/fly.ts', 'src/fly.ts'],
  ] as const) {
    writeFileSync(page, `${text}\n[a link](${link})\n`);
    const { status, printed } = await build(join(copy, 'site'));
    assert.notEqual(status, 0);
    assert.match(printed, new RegExp(`architecture.md links to ${missing}, which does not exist`));
  }
});

function build(folder: string): Promise<{ status: unknown; printed: string }> {
  const { promise, resolve } = Promise.withResolvers<{ status: unknown; printed: string }>();
  const program = join(site, 'node_modules/vitepress/bin/vitepress.js');
  execFile(process.execPath, [program, 'build', folder], (error, stdout, stderr) =>
    resolve({ status: error === null ? 0 : error.code, printed: stdout + stderr }),
  );
  return promise;
}

test(
  'the site and its search work on a phone, in the dark, and below any path',
  { skip: withoutBrowser },
  async (t) => {
    const { page, errors, outside, address } = await openSite(t, 360, 'dark');
    for (const path of pages) {
      await page.goto(address + path);
      assert.equal(await page.evaluate(isTooWide), false, `${path}: no sideways scroll`);
      assert.equal(await page.evaluate(brokenImages), 0, `${path}: all images load`);
    }
    await page.goto(`${address}index.html`);
    await page.getByRole('button', { name: 'Search' }).first().click();
    await page.getByRole('searchbox').fill('writer thread');
    await page.getByRole('option', { name: 'Architecture' }).first().click();
    await page.getByRole('heading', { level: 1, name: 'Architecture' }).waitFor();
    assert.ok(page.url().startsWith(`${address}explanation/architecture.html`));
    assert.deepEqual(errors, []);
    assert.deepEqual(outside, []);
  },
);

for (const colorScheme of ['light', 'dark'] as const) {
  test(
    `text of the site has enough contrast: ${colorScheme}`,
    { skip: withoutBrowser },
    async (t) => {
      const { page, address } = await openSite(t, 1_280, colorScheme);
      for (const path of ['index.html', 'reference/api.html', 'explanation/architecture.html']) {
        await page.goto(address + path);
        assert.deepEqual(await violations(page, ['color-contrast']), [], path);
      }
      const isDark = (await brightnessOf(page)) < 60;
      assert.equal(isDark, colorScheme === 'dark');
    },
  );
}

const isTooWide = 'document.documentElement.scrollWidth > document.documentElement.clientWidth';
const brokenImages =
  'Promise.all([...document.images].map((one) => one.decode().then(() => 0, () => 1))).then((all) => all.reduce((sum, one) => sum + one, 0))';
/** Of the background: from 0 for black to 255. */
async function brightnessOf(page: BrowserPage): Promise<number> {
  const color = String(await page.evaluate('getComputedStyle(document.body).backgroundColor'));
  return Math.max(...(color.match(/\d+/g) ?? []).slice(0, 3).map(Number));
}

interface OpenSite {
  page: BrowserPage;
  errors: string[];
  /** What the page has requested from other servers. */
  outside: string[];
  /** Of the folder of the site. */
  address: string;
}

async function openSite(
  t: TestContext,
  width: number,
  colorScheme: 'light' | 'dark',
): Promise<OpenSite> {
  const address = await serveSite(t);
  const options = {
    viewport: { width, height: 740 },
    colorScheme,
    reducedMotion: 'reduce',
  } as const;
  const { page, errors } = await openPage(await launchBrowser(t), 'about:blank', options);
  const outside: string[] = [];
  await page.route(
    (url) => !url.href.startsWith(address) && url.protocol !== 'data:',
    async (route) => {
      outside.push(route.request().url());
      await route.abort();
    },
  );
  return { page, errors, outside, address };
}

const mediaTypes: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
};

/** Serves the files below a path, as a plain web server does. */
async function serveSite(t: TestContext): Promise<string> {
  const prefix = '/some/path/';
  const server = createServer(({ url = '' }, response) => {
    const { pathname } = new URL(url, 'http://localhost');
    const file = join(dist, decodeURIComponent(pathname).replace(prefix, ''));
    const isThere = pathname.startsWith(prefix) && existsSync(file);
    const type = mediaTypes[extname(file)] ?? 'application/octet-stream';
    response.writeHead(isThere ? 200 : 404, { 'content-type': type });
    response.end(isThere ? readFileSync(file) : '');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo; // it listens on a port
  return `http://127.0.0.1:${port}${prefix}`;
}
