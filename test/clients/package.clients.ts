/**
 * The client as users get it: from the published package, in Node and through a bundler.
 */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startApp } from '../support/app.ts';
import { launchBrowser, openPage, withoutBrowser } from '../support/browser.ts';

const here = fileURLToPath(new URL('.', import.meta.url));
const root = join(here, '../..');
const folder = mkdtempSync(join(tmpdir(), 'plant-store-package-'));
const esbuild = join(here, 'node_modules/.bin/esbuild');

/** What the consumer returns. */
const expected = [
  '1 MONSTERA',
  '40 FICUS',
  '1 indoor',
  'indoor',
  'alice',
  '404 Plant not found',
  '/name',
];

/** A program that uses the client by the consumer, or by a bundle of it. */
const program = (file: string) =>
  `import('${file}').then(async ({ useClient }) => console.log(JSON.stringify(await useClient(JSON.parse(process.argv[1])))))`;

before(() => {
  const packed = execFileSync('npm', ['pack', '--json', '--pack-destination', folder], {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [{ filename }] = JSON.parse(packed.slice(packed.indexOf('[')));
  const installed = join(folder, 'node_modules/plant-store');
  mkdirSync(installed, { recursive: true });
  execFileSync('tar', ['xzf', join(folder, filename), '--strip-components=1'], { cwd: installed });
  cpSync(join(here, 'consumer/consumer.ts'), join(folder, 'consumer.ts'));
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
});

after(() => rmSync(folder, { recursive: true }));

async function inFolder(command: string, ...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(command, args, { cwd: folder });
  return stdout;
}

async function optionsOf(t: TestContext) {
  const { address, token } = await startApp(t);
  return JSON.stringify({ url: address, token: await token('alice') });
}

for (const [compiler, path] of [
  ['TypeScript 5', join(here, 'node_modules/.bin/tsc')],
  ['TypeScript 7', join(root, 'node_modules/.bin/tsc')],
] as const) {
  for (const [platform, options] of [
    ['Node', ['--module', 'nodenext', '--lib', 'esnext', '--types', 'node']],
    ['browsers', ['--module', 'esnext', '--moduleResolution', 'bundler', '--lib', 'esnext,dom']],
  ] as const) {
    test(`the package type-checks with ${compiler} for ${platform}`, async () => {
      const typeRoots = ['--typeRoots', join(root, 'node_modules/@types')];
      const strict = ['--strict', '--exactOptionalPropertyTypes', '--skipLibCheck', 'false'];
      const common = ['--noEmit', '--target', 'esnext', ...strict, ...typeRoots];
      await inFolder(path, ...common, ...options, 'consumer.ts');
    });
  }
}

test('the package works in this Node', async (t) => {
  const printed = await inFolder(
    process.execPath,
    '-e',
    program('./consumer.ts'),
    await optionsOf(t),
  );
  assert.deepEqual(JSON.parse(printed), expected);
});

test('the package works in the oldest supported Node', async (t) => {
  const npx = ['--yes', '--package=node@24.15.0', '--', 'node'];
  const printed = await inFolder('npx', ...npx, '-e', program('./consumer.ts'), await optionsOf(t));
  assert.deepEqual(JSON.parse(printed), expected);
});

test('a CommonJS module can require the package', async () => {
  const required = await inFolder(
    process.execPath,
    '--input-type=commonjs',
    '-p',
    'Object.keys(require("plant-store/client"))',
  );
  assert.equal(required.trim(), "[ 'PlantStore', 'PlantStoreError' ]");
});

test('the package works in a bundle for Node', async (t) => {
  const flags = ['--bundle', '--platform=node', '--format=cjs', '--outfile=bundle/node.cjs'];
  await inFolder(esbuild, 'consumer.ts', ...flags, '--log-level=warning');
  const printed = await inFolder(
    process.execPath,
    '-e',
    program('./bundle/node.cjs'),
    await optionsOf(t),
  );
  assert.deepEqual(JSON.parse(printed), expected);
});

test('the package works in a bundle for browsers', { skip: withoutBrowser }, async (t) => {
  const flags = ['--bundle', '--minify', '--format=esm', '--outfile=bundle/browser.js'];
  await inFolder(esbuild, 'consumer.ts', ...flags, '--log-level=warning');
  const bundle = readFileSync(join(folder, 'bundle/browser.js'));
  const { address, token } = await startApp(t, {
    addRoutes(app) {
      app.get('/page', (_, reply) => reply.type('text/html').send('<!doctype html>'));
      app.get('/bundle.js', (_, reply) => reply.type('text/javascript').send(bundle));
    },
  });
  const { page } = await openPage(await launchBrowser(t), `${address}/page`);
  const used = await page.evaluate(
    async (options) => {
      const path = '/bundle.js';
      const consumer: { useClient: (given: object) => Promise<string[]> } = await import(path);
      return consumer.useClient(options);
    },
    { url: address, token: await token('alice') },
  );
  assert.deepEqual(used, expected);
});
