/**
 * The tests of follow.ts, larger, and what takes long: a wait without a change, outages and a restore.
 */
import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { PlantStore, type PlantStoreError } from '../../src/client/client.ts';
import { startApp } from '../support/app.ts';
import { runOk, serve } from '../support/command.ts';
import { databaseFile } from '../support/database.ts';
import { cutBefore, startGateway } from '../support/gateway.ts';
import { freePort } from '../support/postgres.ts';
import { tempFolder } from '../support/temp.ts';

await import('./follow.ts');

it('a request waits 25 seconds for a change, and following survives more failures than other calls', async (t) => {
  const app = await startApp(t);
  const gateway = await startGateway(t, app.address);
  const token = await app.token('alice');
  const store = new PlantStore({ url: gateway.address, token, timeoutMs: 5_000 });
  const batches = store.changes();
  await batches.next();
  const next = batches.next();
  await gateway.received(3); // after a wait without a change
  const [, waited, again] = gateway.requests.map(({ atMs }) => atMs);
  assert.ok(waited !== undefined && again !== undefined && again - waited > 24_000);
  gateway.plan.push(cutBefore, cutBefore, cutBefore, cutBefore, cutBefore);
  await new PlantStore({ url: app.address, token }).create({ name: 'Ficus' });
  assert.equal((await next).value.changes.length, 1);
  const failing = batches.next();
  await gateway.received(9);
  await new PlantStore({ url: app.address, token }).create({ name: 'Aloe' });
  assert.equal((await failing).value.changes.length, 1);
});

it('a mirror survives a kill of the service, and a restore of its database', async (t) => {
  const { path, url } = databaseFile(t);
  const [port, backup] = [await freePort(), join(tempFolder(t), 'backup.db')];
  const start = () => serve(t, ['--database', url, '--port', String(port)]);
  const token = await runOk(['token', 'create', 'alice', '--database', url, '--yes']);
  let service = await start();
  const store = new PlantStore({ url: service.address, token });
  const stop = new AbortController();
  t.after(() => stop.abort());
  const mirror = await store.mirror({ fields: ['name'], signal: stop.signal });
  const names = () => [...mirror.plants.values()].map(({ name }) => name);
  await store.create({ name: 'kept' });
  await runOk(['backup', backup, '--database', url]);

  await store.create({ name: 'lost' });
  await service.stop('SIGKILL');
  service = await start();
  await store.create({ name: 'lost too' });
  await mirror.until();
  assert.deepEqual(names(), ['kept', 'lost', 'lost too']);

  await service.stop();
  await rm(path);
  await runOk(['restore', backup, '--database', url]);
  service = await start();
  await store.create({ name: 'new' });
  await mirror.until().catch(({ reason }: PlantStoreError) => assert.equal(reason, 'restored'));
  await mirror.until();
  assert.deepEqual(names(), ['kept', 'new']);
  stop.abort();
  await mirror.ended;
});
