/**
 * The client as users get it: its package, installed in an empty folder, in Node, in Deno and through a bundler.
 */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import packageFile from '../../package.json' with { type: 'json' };
import { Page } from '../../tools/markdown.ts';
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
  'Monstera,Ficus',
  '0 left',
  '404 Plant not found',
  '/name',
];

/** Runs `useClient` of a module, and prints what it returns. */
const program = 'main.mjs';
const programText = `
  const [file, options] = globalThis.Deno?.args ?? process.argv.slice(2);
  const { useClient } = await import(file);
  console.log(JSON.stringify(await useClient(JSON.parse(options))));`;

const npx = (package_: string) => ['npx', '--yes', `--package=${package_}`, '--'] as const;
const oldestNode = [...npx('node@20.0.0'), 'node'] as const;

before(() => {
  const run = (command: string, ...args: string[]) =>
    execFileSync(command, args, {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
    });
  run('npm', 'run', 'build');
  run('npm', 'pack', './dist-client', '--pack-destination', folder);
  const [tarball = ''] = readdirSync(folder);
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  run('npm', 'install', '--prefix', folder, '--no-audit', '--no-fund', join(folder, tarball));
  cpSync(join(here, 'consumer/consumer.ts'), join(folder, 'consumer.ts'));
  writeFileSync(join(folder, program), programText);
  run(esbuild, join(folder, 'consumer.ts'), '--format=esm', `--outfile=${folder}/consumer.js`);
  const bundle = ['--bundle', '--platform=node', '--format=cjs', '--log-level=warning'];
  run(esbuild, join(folder, 'consumer.ts'), ...bundle, `--outfile=${folder}/bundle/node.cjs`);
});

after(() => rmSync(folder, { recursive: true }));

async function inFolder(...[command = '', ...args]: string[]): Promise<string> {
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

test('the package type-checks with the module resolution of Node 10', async () => {
  const options = ['--module', 'commonjs', '--moduleResolution', 'node10', '--lib', 'esnext,dom'];
  const tsc = join(here, 'node_modules/.bin/tsc');
  await inFolder(tsc, '--noEmit', '--strict', '--target', 'esnext', ...options, 'consumer.ts');
});

test('the package is the only one that is installed, and has the version of the service', () => {
  const lock = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8'));
  const { '': _, ...packages } = lock.packages;
  assert.deepEqual(Object.keys(packages), ['node_modules/plant-store-client']);
  const { version, engines } = packages['node_modules/plant-store-client'];
  assert.deepEqual([version, engines], [packageFile.version, { node: '>=20' }]);
  const map = join(folder, 'node_modules/plant-store-client/client.js.map');
  assert.match(readFileSync(map, 'utf8'), /"sourcesContent":\["\/\*\*/);
});

for (const [platform, command, file = './consumer.js'] of [
  ['this Node', [process.execPath]],
  ['the oldest supported Node', oldestNode],
  ['Deno', [...npx('deno@2.9.6'), 'deno', 'run', '--allow-net', '--allow-read']],
  ['a bundle for Node', [process.execPath], './bundle/node.cjs'],
] as const) {
  test(`the package works in ${platform}`, async (t) => {
    const printed = await inFolder(...command, program, file, await optionsOf(t));
    assert.deepEqual(JSON.parse(printed), expected);
  });
}

test('the example of its README works in the oldest supported Node', async (t) => {
  const { url, token } = JSON.parse(await optionsOf(t));
  const readme = new Page(join(folder, 'node_modules/plant-store-client/README.md'));
  const [example] = readme.blocks;
  const text = example?.text.replace('https://plants.example', url) ?? assert.fail();
  writeFileSync(join(folder, 'example.mjs'), text);
  process.env['PLANT_STORE_TOKEN'] = token;
  assert.equal(await inFolder(...oldestNode, 'example.mjs'), '1 Monstera\n');
});

test('a CommonJS module can require the package, and gets the same classes', async () => {
  const same = 'import("plant-store-client").then((all) => console.log(all === required))';
  const text = `const required = require("plant-store-client"); ${same}`;
  assert.equal(await inFolder(process.execPath, '--input-type=commonjs', '-e', text), 'true\n');
});

test('the package works in Jest, which requires CommonJS', async () => {
  writeFileSync(
    join(folder, 'main.test.cjs'),
    `const { PlantStore } = require('plant-store-client');
    test('a client', () => expect(() => new PlantStore({ url: 'ftp://x' })).toThrow('http'));`,
  );
  const jest = ['npx', '--yes', '--package=node@20.0.0', '--package=jest@30.5.2', '--', 'jest'];
  await inFolder(...jest, '--testMatch', '**/main.test.cjs');
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
