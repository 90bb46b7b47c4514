/**
 * Upgrades under load, to this version and back, as docs/how-to/upgrade.md describes them. No request fails, and no
 * acknowledged change is lost. The older version is that of a commit, so this needs the history of the repository.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, symlinkSync } from 'node:fs';
import { BoundSocket } from 'node:net';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import packageFile from '../package.json' with { type: 'json' };
import { Page } from '../tools/markdown.ts';
import { call } from './support/app.ts';
import { balance, noBalancer } from './support/balancer.ts';
import { executable, runOk, serve, type RunOptions } from './support/command.ts';
import { databaseFile } from './support/database.ts';
import { ledger } from './support/ledger.ts';
import { freePort } from './support/postgres.ts';
import { emptyDatabase } from './support/storages.ts';
import { noSystemd, startSystemd } from './support/systemd.ts';
import { tempFolder } from './support/temp.ts';
import { until, untilCount } from './support/until.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
/** The last commit before the log has the checksum of what each change leaves. */
const olderCommit = '14da905e';
const hasHistory = spawnSync('git', ['cat-file', '-e', olderCommit], { cwd: root }).status === 0;
const noHistory =
  !hasHistory && `the commit ${olderCommit} is missing: clone the repository with its history`;
const users = 16;
const manager = ['token', 'create', 'maria', '--store', 'ledger', '--role', 'manager'];

describe('an upgrade under load, and back', () => {
  it('SQLite: two workers behind HAProxy', { skip: noHistory || noBalancer }, async (t) => {
    const { url } = databaseFile(t);
    const port = await freePort();
    const env = { PLANT_STORE_DATABASE: url, PLANT_STORE_WORKERS: '2' };
    const start = (program: string) => serve(t, ['--port', `${port}`], { env, program });
    const older = checkOut(t);
    let service = await start(older);
    const address = await balance(t, [service.address], withoutChecks);
    await underLoad(t, [address], await runOk(manager, { env }), async (loaded, forget) => {
      await runOk(['migrate'], { env });
      assert.equal(await service.stop(), 0);
      forget();
      for (const program of [executable, executable, older]) {
        service = await start(program);
        await loaded();
        if (program === executable) assert.equal(await service.stop(), 0);
      }
    });
  });

  it('PostgreSQL: three replicas behind HAProxy', { skip: noHistory || noBalancer }, async (t) => {
    const { url } = await emptyDatabase(t, 'PostgreSQL');
    const env = { PLANT_STORE_DATABASE: url };
    const ports = [await freePort(), await freePort(), await freePort()];
    const start = (program: string, port: number) =>
      serve(t, ['--port', `${port}`], { env, program });
    const older = checkOut(t);
    const services = await Promise.all(ports.map((port) => start(older, port)));
    const address = await balance(
      t,
      services.map((service) => service.address),
    );
    await underLoad(t, [address], await runOk(manager, { env }), async (loaded, forget) => {
      for (const program of [executable, older]) {
        if (program === executable) await runOk(['migrate'], { env, program });
        for (const [at, port] of ports.entries()) {
          assert.equal(await services[at]?.stop(), 0);
          if (program === executable) forget();
          const { address: replica } = (services[at] = await start(program, port));
          await until('it is ready', () => isReady(replica));
          await loaded();
        }
      }
    });
  });

  it('SQLite: the commands of upgrade.md, with systemd', { skip: noSystemd }, async (t) => {
    const { address, run } = await startSystemd(t, ['0.1.0', '0.2.0']);
    const page = new Page(join(root, 'docs/how-to/upgrade.md'));
    const upgrade = page.blocks.find(({ text }) => text.includes('systemctl restart'))?.text;
    assert.ok(upgrade);
    await run('systemctl start plant-store');
    await until('it is ready', () => isReady(address));
    const database = '--database sqlite:/var/lib/plant-store/plant-store.db';
    const token = await run(
      `cd /opt/plant-store && npx plant-store ${manager.join(' ')} ${database}`,
    );
    await underLoad(t, [address], token, async (loaded) => {
      await run(upgrade);
      await loaded();
      await run('ln -sfn /opt/plant-store-0.1.0 /opt/plant-store && systemctl restart plant-store');
      await loaded();
    });
    assert.equal(await run('ls /var/backups'), 'before-0.2.0.backup');
  });

  for (const workers of [1, 2]) {
    it(`SQLite: on sockets of systemd, without a proxy (workers: ${workers})`, async (t) => {
      const { url } = databaseFile(t);
      const socket = new BoundSocket({ host: '127.0.0.1' });
      t.after(() => socket.close());
      const env = { PLANT_STORE_DATABASE: url, PLANT_STORE_WORKERS: `${workers}` };
      const options: RunOptions = { env, sockets: [socket.fd()] };
      let service = await serve(t, [], options);
      await underLoad(t, [service.address], await runOk(manager, { env }), async (loaded) => {
        for (let restart = 0; restart < 5; restart++) {
          assert.equal(await service.stop(), 0);
          service = await serve(t, [], options);
          await loaded();
        }
      });
    });
  }
});

const isReady = (address: string) =>
  call(`${address}/readyz`, 'GET').then(
    ({ status }) => status === 200,
    () => false,
  );

/**
 * Asserts that no request failed meanwhile. `change` is called once there is load, and waits for more after each step. It
 * forgets what failed when the older version stopped: that one resets connections that it has not accepted yet.
 */
async function underLoad(
  t: TestContext,
  addresses: readonly string[],
  token: string,
  change: (loaded: () => Promise<void>, forget: () => void) => Promise<void>,
): Promise<void> {
  const book = ledger(addresses, token);
  await book.begin();
  let isRunning = true;
  t.after(() => (isRunning = false));
  const work = Array.from({ length: users }, (_, user) => book.work(user + 1, () => isRunning));
  const created = () => book.counts['POST 201'] ?? 0;
  const loaded = () => untilCount('creates', created() + 201, created);
  const forget = () => {
    for (const result of Object.keys(book.counts)) {
      if (/^no response$| outcome-unknown$/.test(result)) delete book.counts[result];
    }
  };
  await loaded();
  await Promise.race([change(loaded, forget), ...work]).finally(() => (isRunning = false));
  await Promise.all(work);
  await book.check();
  t.diagnostic(JSON.stringify(book.counts));
  const results = Object.keys(book.counts).toSorted();
  assert.deepEqual(results, ['DELETE 204', 'GET 200', 'POST 201']);
}

/** The executable of the older version. It runs on the packages of this one. */
function checkOut(t: TestContext): string {
  const folder = tempFolder(t);
  const git = (...args: string[]) =>
    execFileSync('git', args, { cwd: root, maxBuffer: 1024 * 1024 * 1024 });
  const older = JSON.parse(git('show', `${olderCommit}:package.json`).toString('utf8'));
  assert.deepEqual(older.dependencies, packageFile.dependencies);
  const files = git('archive', olderCommit, 'bin', 'src', 'package.json', 'openapi.json');
  execFileSync('tar', ['--extract', '--directory', folder], { input: files });
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  mkdirSync(join(folder, '.cache'));
  return join(folder, 'bin', 'plant-store.js');
}

/** For a single service, as docs/how-to/deploy.md says it. */
function withoutChecks(configuration: string): string {
  return configuration
    .replace('retries 1\n', 'retries 30\n')
    .replaceAll('default-server check', 'default-server');
}
