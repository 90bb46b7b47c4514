/**
 * HAProxy as set up in docs/how-to/replicas.md, while thousands of connections send requests that never become
 * complete.
 */
import assert from 'node:assert/strict';
import { readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { balance } from './support/balancer.ts';
import { serve, type Service } from './support/command.ts';
import { databaseFile, fill } from './support/database.ts';
import { exchange, request } from './support/raw.ts';
import { partialRequests, startSlowClients, type SlowClients } from './support/slow-clients.ts';
import { until } from './support/until.ts';

/** Enough to exhaust a balancer that accepts 4,000 connections and has no timeout for a whole request. */
const slowConnections = 4_100;
const responseTimeoutMs = 2_000;

/** Opens the slow connections, and sends requests as a new client until `isDone`. */
export async function keepsAnswering(
  t: TestContext,
  isDone: (slow: SlowClients, answered: number) => boolean,
): Promise<{ answered: number; slowestMs: number; slow: SlowClients }> {
  const { path, url } = databaseFile(t);
  const token = await fill(path, 1);
  const service = await serve(t, ['--database', url]);
  const port = Number(new URL(await balance(t, [service.address])).port);
  const get = request('GET /plants?fields=id', ['Host: x', `Authorization: Bearer ${token}`]);
  const slow = startSlowClients(t, port, partialRequests(slowConnections));
  await until('all are connected', () => slow.open() === slowConnections);

  let answered = 0;
  let slowestMs = 0;
  while (!isDone(slow, answered)) {
    const startedMs = performance.now();
    const timeout = pause(responseTimeoutMs, 'no response in time', { ref: false });
    const response = await Promise.race([exchange(port, get), timeout]);
    assert.match(response, /^HTTP\/1\.1 200 [^]*\[\{"id":1\}\]/);
    slowestMs = Math.max(slowestMs, performance.now() - startedMs);
    answered++;
    assert.ok(socketsOf(service) < 100, 'slow connections stay with the balancer');
  }
  return { answered, slowestMs, slow };
}

/** The open sockets of the service's process, as Linux lists them. */
function socketsOf({ child }: Service): number {
  const folder = `/proc/${child.pid}/fd`;
  const targets = readdirSync(folder).map((descriptor) => {
    try {
      return readlinkSync(join(folder, descriptor));
    } catch {
      return 'closed meanwhile';
    }
  });
  return targets.filter((target) => target.startsWith('socket:')).length;
}
