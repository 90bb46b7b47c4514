/**
 * The package that `npm run release` makes, installed in an empty folder as a user installs it. npm takes the dependencies
 * from its cache if it can.
 */
import assert from 'node:assert/strict';
import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Page } from '../tools/markdown.ts';
import packageFile from '../package.json' with { type: 'json' };
import { call } from './support/app.ts';
import { run, serve } from './support/command.ts';
import { databaseFile } from './support/database.ts';
import { startRedis } from './support/redis.ts';
import { emptyDatabase } from './support/storages.ts';
import { tempFolder } from './support/temp.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const maxPackages = 62;
const maxTarballBytes = 750_000;
/** The oracle of a test, which Fastify needs too. */
const alsoOfTests = 'ipaddr.js';

test('the package', { timeout: 200_000 }, async (suite) => {
  const temp = tempFolder(suite);
  const tarball = await release(temp);
  const folder = join(temp, 'empty');
  mkdirSync(folder);
  await npm(folder, 'install', '--prefer-offline', tarball);
  const home = join(folder, 'node_modules', 'plant-store');

  await suite.test('has few packages, and none with an install script', () => {
    const lock = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8'));
    const { '': _, ...packages } = lock.packages as Record<string, { hasInstallScript?: boolean }>;
    assert.ok(Object.keys(packages).length <= maxPackages, String(Object.keys(packages).length));
    const deploy = readFileSync(join(root, 'docs/how-to/deploy.md'), 'utf8');
    assert.match(deploy, new RegExp(`\\bhas ${Object.keys(packages).length} packages\\b`));
    assert.ok(statSync(tarball).size <= maxTarballBytes, String(statSync(tarball).size));
    for (const [path, { hasInstallScript }] of Object.entries(packages)) {
      assert.ok(!hasInstallScript, path);
      const name = path.slice('node_modules/'.length);
      assert.ok(name === alsoOfTests || !(name in packageFile.devDependencies), name);
    }
  });

  await suite.test('is released with an SBOM, and the checksums of all files', () => {
    const cwd = dirname(tarball);
    const check = ['--check', '--strict', 'SHA256SUMS'];
    const lines = execFileSync('sha256sum', check, { cwd, encoding: 'utf8' }).trim().split('\n');
    const files = readdirSync(cwd).filter((file) => file !== 'SHA256SUMS');
    assert.deepEqual(lines.toSorted(), files.map((file) => `${file}: OK`).toSorted());
    const { name, version } = packageFile;
    const expected = [`${name}-${version}.cdx.json`, `${name}-${version}.tgz`];
    assert.deepEqual(files.toSorted(), [...expected, `${name}-client-${version}.tgz`]);
  });

  await suite.test('starts with npx, without an installation', async (t) => {
    const { folder: cwd, url } = databaseFile(t);
    cpSync(tarball, join(cwd, basename(tarball))); // npx looks for it in the folder of the next package.json
    const serving = ['serve', '--port', '0', '--database', url];
    const args = ['--yes', '--prefer-offline', `./${basename(tarball)}`, ...serving];
    const child = spawn('npx', args, {
      cwd,
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const ended = once(child, 'close');
    t.after(async () => {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL'); // with the service
      await ended;
    });
    const address = await firstMatch(child.stdout, /listens on (\S+)/);
    assert.equal((await call(`${address}/readyz`, 'GET')).status, 200);
  });

  await suite.test('contains its documentation, whose links work', () => {
    const files = readdirSync(home, { recursive: true, encoding: 'utf8' });
    for (const file of ['LICENSE', 'SECURITY.md', 'openapi.json', 'deploy/plant-store.service']) {
      assert.ok(files.includes(file), file);
    }
    const pages = files.filter((file) => file.endsWith('.md') && !file.startsWith('dist'));
    assert.ok(pages.length > 10);
    for (const page of pages) {
      for (const link of new Page(join(home, page)).links) {
        const [path = ''] = link.split('#');
        const target = path === '' ? page : relative(home, join(home, dirname(page), path));
        const isThere = existsSync(join(home, target)) || onlyInRepository.test(target);
        assert.ok(isThere, `${page} links to ${link}`);
      }
    }
  });

  await suite.test('serves, creates tokens, and backs up', async (t) => {
    const cwd = join(tempFolder(t), 'data');
    cpSync(join(folder, 'package.json'), join(cwd, 'package.json'));
    symlinkSync(join(folder, 'node_modules'), join(cwd, 'node_modules'));
    const { address } = await serve(t, [], { cwd, program: join(home, 'bin/plant-store.js') });
    const token = await npx(cwd, 'token', 'create', 'alice');
    const json = { name: 'Monstera' };
    assert.equal((await call(`${address}/plants`, 'POST', { token, json })).status, 201);
    for (const path of ['/', '/client/client.js', '/docs', '/openapi.json', '/readyz']) {
      assert.equal((await call(address + path, 'GET')).status, 200, path);
    }
    await npx(cwd, 'backup', 'plants.backup');
    assert.ok(existsSync(join(cwd, 'plants.backup')));
  });

  await suite.test('exports no module', async () => {
    for (const module of ['plant-store', 'plant-store/dist/client/client.js']) {
      const args = ['--input-type=module', '--eval', `import '${module}'`];
      const imported = promisify(execFile)(process.execPath, args, { cwd: folder });
      await assert.rejects(imported, /ERR_PACKAGE_PATH_NOT_EXPORTED/);
    }
  });

  await suite.test('uses PostgreSQL once pg is installed beside it', async (t) => {
    const { url } = await emptyDatabase(t, 'PostgreSQL');
    const create = ['token', 'create', 'alice', '--database', url] as const;
    await assert.rejects(npx(folder, ...create), /npm install pg/);
    const pg = `pg@${packageFile.devDependencies.pg}`;
    await npm(folder, 'install', '--prefer-offline', pg);
    assert.match(await npx(folder, ...create), /^plant_/);
  });

  await suite.test('uses Redis once its client is installed beside it', async (t) => {
    const { url } = await startRedis(t);
    const settings = ['--rate-limit', '1/s', '--rate-limit-redis', url];
    const program = join(home, 'bin/plant-store.js');
    const refused = await run(['serve', '--port', '0', ...settings], { cwd: folder, program });
    assert.equal(refused.status, 1);
    assert.match(refused.stderr, /npm install @redis\/client/);
    const client = `@redis/client@${packageFile.devDependencies['@redis/client']}`;
    await npm(folder, 'install', '--prefer-offline', client);
    const service = await serve(t, settings, { cwd: folder, program });
    assert.equal(await service.stop(), 0);
    assert.doesNotMatch(service.log(), /Redis/);
  });

  await suite.test(
    'has tools for assistants once the protocol is installed beside it',
    async () => {
      const options = {
        cwd: folder,
        program: join(home, 'bin/plant-store.js'),
        env: { PLANT_STORE_TOKEN: 'plant_0' },
      };
      const refused = await run(['mcp'], options);
      assert.equal(refused.status, 1);
      assert.match(refused.stderr, /npm install @modelcontextprotocol\/server/);
      const version = packageFile.devDependencies['@modelcontextprotocol/server'];
      await npm(folder, 'install', '--prefer-offline', `@modelcontextprotocol/server@${version}`);
      assert.equal((await run(['mcp'], options)).status, 0);
    },
  );
});

/** Readers of these files have the repository. */
const onlyInRepository =
  /^(test|bench|tools|src|docs\/decisions)(\/|$)|^(CONTRIBUTING\.md|compose\.yaml|deploy\/Dockerfile)$/;

async function firstMatch(stream: NodeJS.ReadableStream, pattern: RegExp): Promise<string> {
  for await (const line of createInterface({ input: stream })) {
    const [, found] = pattern.exec(line) ?? [];
    if (found !== undefined) return found;
  }
  throw new Error(`no line matches ${pattern}`);
}

/** Releases a copy of the checkout, because that writes dist/ and release/. */
async function release(temp: string): Promise<string> {
  const copy = join(temp, 'checkout');
  const excluded = [
    'node_modules',
    '.git',
    '.cache',
    'dist',
    'dist-client',
    'release',
    'test',
    'bench',
    'site',
  ];
  const filter = (file: string) => !excluded.includes(relative(root, file));
  cpSync(root, copy, { recursive: true, filter });
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  await promisify(execFile)(process.execPath, ['tools/release.ts'], { cwd: copy, env });
  return join(copy, 'release', `plant-store-${packageFile.version}.tgz`);
}

/** npm and npx start the Node that runs this test, and what they are told here: not the package of an npx that runs it. */
const { npm_config_package: _, ...inherited } = process.env;
const env = { ...inherited, PATH: `${dirname(process.execPath)}:${process.env['PATH']}` };

async function npm(cwd: string, ...args: string[]): Promise<void> {
  await promisify(execFile)('npm', [...args, '--no-audit', '--no-fund'], { cwd, env });
}

/** Runs a command of the package, and returns its trimmed standard output. */
async function npx(cwd: string, ...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)('npx', ['plant-store', ...args], { cwd, env });
  return stdout.trim();
}
