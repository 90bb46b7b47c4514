/**
 * serve --metrics-port and --log-requests, as Prometheus and readers of the log see them.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { describe, test, type TestContext } from 'node:test';
import { help, textOf } from '../src/metrics/metrics.ts';
import { backupName } from '../src/sqlite/backup-folder.ts';
import { call } from './support/app.ts';
import { run, runOk, serve, type Service } from './support/command.ts';
import { databaseFile } from './support/database.ts';
import { listen } from './support/listen.ts';
import { without } from './support/programs.ts';
import { exchange } from './support/raw.ts';
import { startReceiver } from './support/receiver.ts';
import { startService, startWithCertificate } from './support/service.ts';
import { it, storageOf, testDatabase } from './support/storages.ts';
import { tempFolder } from './support/temp.ts';
import { until } from './support/until.ts';

/** The values of the service by the text of their series. */
type Metrics = Record<string, number>;

async function scrape(service: Service): Promise<{ text: string; metrics: Metrics }> {
  const [, url = ''] = /^Metrics: (\S+)$/m.exec(service.output()) ?? [];
  const response = await fetch(url);
  assert.equal(response.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
  const text = await response.text();
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const values = lines.map((line) => {
    const end = line.lastIndexOf(' ');
    return [line.slice(0, end), Number(line.slice(end))] as const;
  });
  assert.ok(
    values.every(([, value]) => !Number.isNaN(value)),
    text,
  );
  return { text, metrics: Object.fromEntries(values) };
}

/** Scrapes until the series has the value. */
async function untilHas(service: Service, series: string, value: number): Promise<Metrics> {
  let metrics: Metrics = {};
  await until(`${series} is ${value}`, async () => {
    ({ metrics } = await scrape(service));
    return metrics[series] === value;
  });
  return metrics;
}

/** What promtool finds wrong. */
function faultsIn(text: string): string {
  const { status, output } = spawnSync('promtool', ['check', 'metrics'], { input: text });
  return `${status === 0 ? '' : status}${output.join('')}`;
}

async function startMeasured(t: TestContext, ...args: readonly string[]) {
  const { url } = await testDatabase(t);
  const token = await runOk(['token', 'create', 'alice', '--database', url]);
  const service = await serve(t, ['--database', url, '--metrics-port', '0', ...args]);
  const send = (method: string, path: string, options = {}) =>
    call(`${service.address}${path}`, method, { token, ...options });
  return { service, send, url, port: Number(new URL(service.address).port) };
}

it('metrics: counts requests, refusals and commits, and measures the storage', async (t) => {
  const { service, send, port } = await startMeasured(t);
  for (let at = 0; at < 3; at++) await send('POST', '/plants', { json: { name: 'Fern' } });
  await send('DELETE', '/plants/1');
  await send('GET', '/plants/1');
  await send('GET', '/plants?tag=secret', { token: '' });
  await send('GET', '/secret');
  await exchange(port, 'secret\r\n\r\n'); // it is not even HTTP
  const { headers } = await send('GET', '/changes');
  const [, next = ''] = /<(.*)>/.exec(headers.get('link') ?? '') ?? [];
  const leaving = new AbortController();
  const waiting = send('GET', `${next}&wait=20`, { signal: leaving.signal });
  const found = await untilHas(service, 'plant_store_waiting_requests{worker="1"}', 1);
  assert.equal(found['http_server_active_requests{worker="1"}'], 1);
  leaving.abort();
  await assert.rejects(waiting);
  await untilHas(service, 'plant_store_waiting_requests{worker="1"}', 0);

  const { text, metrics } = await scrape(service);
  const requests = (method: string, route: string, status: number) => {
    const labels = `http_request_method="${method}",http_route="${route}",http_response_status_code="${status}",worker="1"`;
    const count = metrics[`http_server_request_duration_seconds_count{${labels}}`];
    const buckets = Object.keys(metrics).filter((series) => series.includes(`{${labels},le=`));
    assert.equal(buckets.length, 15);
    assert.equal(metrics[buckets.at(-1) ?? ''], count);
    return count;
  };
  assert.equal(requests('POST', '/plants', 201), 3);
  assert.equal(requests('DELETE', '/plants/:id', 204), 1);
  assert.equal(requests('GET', '/plants/:id', 404), 1);
  assert.equal(requests('GET', '/plants', 401), 1);
  assert.equal(requests('GET', 'unknown', 404), 1);
  assert.equal(requests('GET', '/changes', 499), 1, 'the client left before the response');
  for (const kind of ['plant-not-found', 'invalid-token', 'path-not-found', 'invalid-request']) {
    assert.equal(metrics[`plant_store_refusals_total{kind="${kind}",worker="1"}`], 1);
  }
  assert.equal(metrics['plant_store_commit_writes_total{worker="1"}'], 4);
  const ofCommits = (suffix: string) =>
    metrics[`plant_store_commit_duration_seconds_${suffix}{worker="1"}`] ?? 0;
  assert.ok(ofCommits('count') >= 1 && ofCommits('count') <= 4);
  assert.ok(ofCommits('sum') > 0);
  assert.equal(metrics['plant_store_pending_writes{worker="1"}'], 0);
  assert.ok((metrics['v8js_memory_heap_used_bytes{worker="1"}'] ?? 0) > 1e6);
  await until('the event loop is measured', async () => {
    const now = await scrape(service);
    return 'nodejs_eventloop_delay_p99_seconds{worker="1"}' in now.metrics;
  });
  assert.doesNotMatch(text, /secret|Fern|alice/);

  assert.ok((metrics['plant_store_database_size_bytes'] ?? 0) > 50_000);
  const storage = storageOf(t);
  const [info = ''] = Object.keys(metrics);
  const version = `storage="${storage === 'SQLite' ? 'sqlite' : 'postgres'}",storage_version="\\d+\\.`;
  assert.match(info, new RegExp(`^plant_store_info\\{version=".*",node="\\d.*",${version}`));
  if (storage === 'SQLite') {
    assert.ok((metrics['plant_store_wal_size_bytes'] ?? 0) > 0);
    assert.ok((metrics['plant_store_disk_free_bytes'] ?? 0) > 0);
    assert.equal(metrics['plant_store_plants'], 2);
    assert.equal(metrics['plant_store_tokens'], 1);
  } else {
    assert.ok((metrics['plant_store_wal_oldest_reader_seconds'] ?? -1) >= 0);
    assert.ok(!('plant_store_wal_size_bytes' in metrics), 'what cannot be known is left out');
  }
});

describe('serve --metrics-port', () => {
  test('is text that promtool accepts', { skip: without('promtool') }, async (t) => {
    const { service, send } = await startMeasured(t);
    await send('POST', '/plants', { json: { name: 'Fern' } });
    await untilHas(service, 'plant_store_plants', 1);
    assert.equal(faultsIn((await scrape(service)).text), '');
    const strange = textOf([['plant_store_info', 1, { version: 'a"b\\c\nd,{}' }]]);
    assert.match(strange, /\{version="a\\"b\\\\c\\nd,\{\}"\} 1\n$/);
    assert.equal(faultsIn(strange), '');
  });

  test('serves the metrics that the docs describe', () => {
    const page = readFileSync('docs/reference/operation.md', 'utf8');
    const [, section = ''] = /^## Metrics\n([^]*?)^## /m.exec(page) ?? [];
    const described = section.match(/(?<=`)[a-z\d]+_\w+(?=`)/g) ?? [];
    const names = new Set(described.filter((word) => word !== 'storage_version'));
    assert.deepEqual([...names].toSorted(), Object.keys(help).toSorted());
  });

  test('serves nothing else, and nothing without it', async (t) => {
    const { service } = await startMeasured(t);
    const [, url = ''] = /^Metrics: (\S+)$/m.exec(service.output()) ?? [];
    assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/metrics$/);
    assert.equal((await fetch(url.replace('metrics', 'plants'))).status, 404);
    assert.equal((await fetch(`${service.address}/metrics`)).status, 404);
    const other = await serve(t, ['--database', databaseFile(t).url]);
    assert.doesNotMatch(other.output(), /Metrics/);
  });

  test('estimates how many rows there are', async (t) => {
    const { service } = await startService(t, { plants: 20_000, args: ['--metrics-port', '0'] });
    const { plant_store_plants: plants = 0 } = (await scrape(service)).metrics;
    assert.ok(plants > 12_000 && plants < 30_000, `${plants}`);
  });

  test('shows messages to webhooks in progress, and how late they were', async (t) => {
    const receiver = await startReceiver(t);
    receiver.respond = () => {}; // it hangs
    const { service, send, url } = await startMeasured(t, '--webhook-networks', '127.0.0.1');
    const scopes = ['--scope', 'webhooks:write,plants:read'];
    const token = await runOk(['token', 'create', 'alice', '--database', url, ...scopes]);
    const created = await send('POST', '/webhooks', { token, json: { url: receiver.url } });
    assert.equal(created.status, 201);
    await send('POST', '/plants', { json: { name: 'Fern' } });
    await receiver.get(0);
    const metrics = await untilHas(service, 'plant_store_webhooks_sending{worker="1"}', 1);
    const delay = metrics['plant_store_webhook_delay_seconds{worker="1"}'] ?? -1;
    assert.ok(delay >= 0 && delay < 30, `${delay} s`);
  });

  test('shows when the certificate ends', { skip: without('openssl') }, async (t) => {
    const { service } = await startWithCertificate(t, { args: ['--metrics-port', '0'] });
    const { metrics } = await scrape(service);
    const end = metrics['plant_store_certificate_expiry_timestamp_seconds{worker="1"}'] ?? 0;
    assert.ok(end > Date.now() / 1_000);
  });

  test('shows the last verified backup in the folder', async (t) => {
    const folder = tempFolder(t);
    const args = ['--metrics-port', '0', '--backup-every', '6h', '--backup-dir', folder];
    const series = 'plant_store_backup_last_verified_timestamp_seconds';
    const service = await serve(t, ['--database', databaseFile(t).url, ...args]);
    await until('there is a backup', async () => series in (await scrape(service)).metrics);
    const { metrics } = await scrape(service);
    const [name = ''] = readdirSync(folder).filter((file) => file.endsWith('.backup'));
    assert.equal(backupName(new Date((metrics[series] ?? 0) * 1_000)), name);
  });

  test('exits with 1 and advice if its port is in use, also with workers', async (t) => {
    const port = await listen(t, createServer());
    for (const workers of ['1', '2']) {
      const args = ['--metrics-port', String(port), '--workers', workers, '--log-level', 'error'];
      const { url } = databaseFile(t);
      const { status, stderr } = await run(['serve', '--port', '0', '--database', url, ...args]);
      assert.equal(
        stderr,
        `error: Cannot listen on 127.0.0.1:${port}: the port is in use. ` +
          'Choose another with --metrics-port, or 0 for a free one.\n',
      );
      assert.equal(status, 1);
    }
  });

  test('has the series of each worker that answers, by a number that its replacement keeps', async (t) => {
    const args = ['--workers', '2', '--log-requests', 'info'];
    const { service } = await startMeasured(t, ...args);
    const pids = () =>
      new Set(
        Array.from(service.log().matchAll(/"pid":(\d+)[^\n]+"\/livez"/g), ([, pid]) => Number(pid)),
      );
    await until('both workers have responded', async () => {
      await call(`${service.address}/livez`, 'GET', { headers: { connection: 'close' } });
      return pids().size === 2;
    });
    const [pid = 0] = pids();
    const workersOf = ({ metrics }: { metrics: Metrics }) =>
      [1, 2].filter((worker) => `http_server_active_requests{worker="${worker}"}` in metrics);
    const both = await scrape(service);
    assert.deepEqual(workersOf(both), [1, 2]);
    assert.equal(both.text.match(/^plant_store_database_size_bytes /gm)?.length, 1);

    const [, metricsPort] = /^Metrics: http:.*:(\d+)/m.exec(service.output()) ?? [];
    const get = 'GET /metrics HTTP/1.1\r\nHost: a\r\n';
    const scrapes = `${get}\r\n`.repeat(15) + `${get}Connection: close\r\n\r\n`;
    const answers = await exchange(Number(metricsPort), scrapes);
    assert.equal(answers.match(/^http_server_active_requests\{/gm)?.length, 2 * 16);
    assert.doesNotMatch(service.log(), /Warning/);

    process.kill(pid, 'SIGSTOP');
    const hanging = await scrape(service);
    const [other = 0, ...more] = workersOf(hanging);
    assert.deepEqual(more, []);
    assert.ok('plant_store_database_size_bytes' in hanging.metrics);
    process.kill(pid, 'SIGKILL');
    await until(
      'another worker responds',
      async () => workersOf(await scrape(service)).length === 2,
    );
    const { metrics } = await scrape(service);
    const countOf = (worker: number) =>
      metrics[
        `http_server_request_duration_seconds_count{http_request_method="GET",http_route="/livez",http_response_status_code="200",worker="${worker}"}`
      ];
    assert.deepEqual([(countOf(other) ?? 0) > 0, countOf(3 - other)], [true, undefined]);
  });
});

describe('serve --log-requests', () => {
  test('logs each request with its user, token and trace, and nothing else of it', async (t) => {
    const { service, send } = await startMeasured(
      t,
      '--log-requests',
      'warn',
      '--log-level',
      'warn',
    );
    const [trace, parent] = ['0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331'];
    const headers: readonly (readonly [traceparent: string, traceId?: string])[] = [
      [`00-${trace}-${parent}-01`, trace],
      [`cc-${trace}-${parent}-01-more`, trace],
      [`00-${trace}-${parent}-01-more`],
      [`ff-${trace}-${parent}-01`],
      [`00-${trace.toUpperCase()}-${parent}-01`],
      [`00-${'0'.repeat(32)}-${parent}-01`],
      [`00-${trace}-${'0'.repeat(16)}-01`],
      [`00-${trace}-${parent}-1`],
      [`00-${trace}-${parent}-01, 00-${trace}-${parent}-01`],
      ['secret'],
    ];
    for (const [traceparent] of headers) {
      await send('GET', '/plants?tag=secret', { headers: { traceparent } });
    }
    await send('GET', '/secret', { token: 'secret' });
    const lines = () => service.log().split('\n').slice(0, -1);
    await until('all are logged', () => lines().length > headers.length);
    const entries = lines().map((line) => {
      const { level, route, method, status, ms, user, token, traceId } = JSON.parse(line);
      assert.equal(level, 40);
      assert.ok(ms > 0 && ms < 60_000);
      assert.ok(user === undefined || /^\w+-\w+$/.test(token), 'the id of the token');
      return { route, method, status, user, traceId };
    });
    const ofAlice = { route: '/plants', method: 'GET', status: 200, user: 'alice' };
    assert.deepEqual(entries, [
      ...headers.map(([, traceId]) => ({ ...ofAlice, traceId })),
      { route: undefined, method: 'GET', status: 404, user: undefined, traceId: undefined },
    ]);
    assert.doesNotMatch(service.log(), /secret/);
  });
});
