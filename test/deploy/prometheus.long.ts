/**
 * Prometheus watches the service with the files of deploy/ while parts of it die, and all six alerts fire and clear. The
 * alerts wait for seconds instead of minutes; alerts.test.yml tests their own times.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { Client } from 'pg';
import { call } from '../support/app.ts';
import { makeCertificateFor, replaceFiles } from '../support/certificate.ts';
import { runOk, serve, type Service } from '../support/command.ts';
import { freePort, PostgresServer } from '../support/postgres.ts';
import { without } from '../support/programs.ts';
import { Prometheus } from '../support/prometheus.ts';
import { startWithCertificate } from '../support/service.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

const clients = 8;

describe('Prometheus', { skip: without('prometheus'), concurrency: true }, () => {
  it('sees replicas die and return, and the alerts of a database fire and clear', async (t) => {
    const server = await PostgresServer.make();
    t.after(() => server[Symbol.asyncDispose]());
    const database = ['--database', server.url()];
    const token = await runOk(['token', 'create', 'alice', ...database]);
    const ports = await Promise.all([freePort(), freePort(), freePort()]);
    const metricsPorts = await Promise.all([freePort(), freePort(), freePort()]);
    const start = (at: number) =>
      serve(t, [
        ...database,
        '--port',
        String(ports[at]),
        '--metrics-port',
        String(metricsPorts[at]),
      ]);
    const replicas = await Promise.all([start(0), start(1), start(2)]);
    const prometheus = await Prometheus.start(t, metricsPorts, (rules) =>
      rules.replace('> 3600', '> 3'),
    );
    startLoad(
      t,
      replicas.map(({ address }) => address),
      token,
    );
    await until('all replicas are seen', async () => {
      const up = await prometheus.query(
        'up == 1 and on (instance) rate(plant_store_commit_writes_total[10s]) > 0',
      );
      return up.length === 3;
    });
    assert.deepEqual(await prometheus.firing(), []);

    for (const [at, port] of metricsPorts.entries()) {
      await replicas[at]?.stop('SIGKILL');
      await prometheus.fires('PlantStoreDown', `127.0.0.1:${port}`);
      await start(at);
      await prometheus.clears('PlantStoreDown', `127.0.0.1:${port}`);
    }

    await server.stop('SIGQUIT');
    await prometheus.fires('PlantStoreFailing', 'POST');
    await server.start();
    await prometheus.clears('PlantStoreFailing', 'POST');

    const client = new Client({ connectionString: server.url() });
    await client.connect();
    const reader = prometheus.fires('PlantStoreDiskFilling', `127.0.0.1:${metricsPorts[0]}`);
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
    await reader;
    await client.query('COMMIT');
    await prometheus.clears('PlantStoreDiskFilling', `127.0.0.1:${metricsPorts[0]}`);

    const slow = new AbortController();
    const locks = (async () => {
      while (!slow.signal.aborted) {
        await client.query('BEGIN; LOCK TABLE plant_store.plants IN EXCLUSIVE MODE');
        await pause(1_500);
        await client.query('COMMIT');
        await pause(20);
      }
    })();
    await Promise.race([prometheus.fires('PlantStoreSlow', 'POST'), locks]).finally(() =>
      slow.abort(),
    );
    await locks;
    await client.end();
    await prometheus.clears('PlantStoreSlow', 'POST');
    assert.deepEqual(await prometheus.firing(), []);
    // A count falls only when its own process dies.
    const falls = await prometheus.query(
      'max by (instance) (resets(plant_store_commit_writes_total[10m]))',
    );
    assert.deepEqual(
      falls.map(([, times]) => times),
      [1, 1, 1],
    );
  });

  it(
    'sees workers die and return, and the alerts of disks and a certificate fire and clear',
    { skip: without('mount', 'openssl', 'ps') },
    async (t) => {
      const [disk, backups] = [mountDisk(t, '1100m'), mountDisk(t, '1m')];
      if (disk === undefined || backups === undefined)
        return t.skip('a small disk cannot be mounted here: it takes root');
      const database = ['--database', `sqlite:${join(disk, 'plants.db')}`];
      const token = await runOk(['token', 'create', 'alice', ...database]);
      const [port, tlsPort] = [await freePort(), await freePort()];
      const [instance, tlsInstance] = [`127.0.0.1:${port}`, `127.0.0.1:${tlsPort}`];
      const settings = (own: number, folder: string) =>
        `--metrics-port ${own} --backup-every 10s --backup-dir ${folder}`.split(' ');
      const args = [...database, '--workers', '2', ...settings(port, backups)];
      const service = await serve(t, args);
      const tls = await startWithCertificate(t, { args: settings(tlsPort, tempFolder(t)) });
      const prometheus = await Prometheus.start(t, [port, tlsPort], (rules) =>
        rules.replace('offset 26h', 'offset 15s'),
      );
      startLoad(t, [service.address], token);
      const areSeen = async () => {
        const rates = await prometheus.query(
          `rate(plant_store_commit_writes_total{instance="${instance}"}[10s]) > 0`,
        );
        return new Set(rates.map(([{ worker }]) => worker)).isSupersetOf(new Set(['1', '2']));
      };
      await until('both workers are seen', areSeen);

      await prometheus.fires('PlantStoreBackupTooOld', instance);
      spawnSync('mount', ['-o', 'remount,size=200m', backups]);
      await prometheus.clears('PlantStoreBackupTooOld', instance);

      const dead = workersOf(service)[1] ?? 0;
      process.kill(dead, 'SIGKILL');
      await until('a new worker replaces it', () => {
        const now = workersOf(service);
        return now.length === 2 && !now.includes(dead);
      });
      await until('both workers are seen', areSeen);
      for (const pid of workersOf(service)) process.kill(pid, 'SIGSTOP');
      await prometheus.fires('PlantStoreDown', instance);
      for (const pid of workersOf(service)) process.kill(pid, 'SIGCONT');
      await prometheus.clears('PlantStoreDown', instance);

      const filler = join(disk, 'filler');
      writeFileSync(filler, Buffer.alloc(200e6));
      await prometheus.fires('PlantStoreDiskFilling', instance);
      rmSync(filler);
      await prometheus.clears('PlantStoreDiskFilling', instance);

      await prometheus.fires('PlantStoreCertificateEnding', tlsInstance);
      const endMs = Date.now() + 60 * 86_400_000;
      replaceFiles(tls.certificate, makeCertificateFor(tls.folder, 'next', Date.now(), endMs));
      await prometheus.clears('PlantStoreCertificateEnding', tlsInstance);

      assert.deepEqual(await prometheus.firing(), []);
      // A count falls only when its own worker dies, and the number of the dead worker is that of the new one.
      const falls = await prometheus.query(
        `max by (worker) (resets(plant_store_commit_writes_total{instance="${instance}"}[10m]))`,
      );
      assert.deepEqual(
        falls.map(([, times]) => times).reduce((sum, times) => sum + times),
        1,
      );
      assert.equal(falls.length, 2);
    },
  );
});

/** Creates and lists plants until the test ends, whatever the responses are. */
function startLoad(t: TestContext, addresses: readonly string[], token: string): void {
  const ended = new AbortController();
  const work = addresses.flatMap((address) =>
    Array.from({ length: clients }, async () => {
      const send = (method: string, json?: object) =>
        call(`${address}/plants`, method, { token, ...(json && { json }) }).catch(() => {});
      while (!ended.signal.aborted) {
        await send('POST', { name: 'Monstera' });
        await send('HEAD');
        await pause(50);
      }
    }),
  );
  t.after(async () => {
    ended.abort();
    await Promise.all(work);
  });
}

/** A disk of this size in memory; undefined without the right to mount it. */
function mountDisk(t: TestContext, size: string): string | undefined {
  let folder = '';
  t.after(() => spawnSync('umount', ['-l', folder])); // before the folder is removed
  folder = tempFolder(t);
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder]);
  return status === 0 ? folder : undefined;
}

/** The workers. Other children of a service make its backups. */
function workersOf({ child: { pid } }: Service): number[] {
  const args = ['--ppid', String(pid), '-o', 'pid=,args='];
  const { stdout } = spawnSync('ps', args, { encoding: 'utf8' });
  return stdout
    .split('\n')
    .filter((line) => line.includes(' serve '))
    .map((line) => parseInt(line, 10));
}
