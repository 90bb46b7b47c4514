/**
 * HAProxy as docs/scaling.md sets it up, while somebody holds thousands of connections with requests
 * that never become whole.
 */
import assert from 'node:assert/strict';
import { readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { balance } from './support/balancer.ts';
import { serve, type Service } from './support/command.ts';
import { databaseFile, fill } from './support/database.ts';
import { drip, dripping, type Drips } from './support/drips.ts';
import { exchange, request } from './support/raw.ts';
import { until } from './support/until.ts';

/** Enough to fill a balancer that takes 4,000 and waits for each as long as it keeps sending. */
const drips = 4_100;
const responseTimeoutMs = 2_000;

/** Opens the connections and asks as a new client, again and again until it is over. */
export async function keepsAnswering(
  t: TestContext,
  isOver: (drips: Drips, answered: number) => boolean,
): Promise<{ answered: number; slowestMs: number; drips: Drips }> {
  const { path, url } = databaseFile(t);
  const token = await fill(path, 1);
  const service = await serve(t, ['--database', url]);
  const port = Number(new URL(await balance(t, [service.address])).port);
  const get = request('GET /plants?fields=id', ['Host: x', `Authorization: Bearer ${token}`]);
  const held = drip(t, port, dripping(drips));
  await until('all are connected', () => held.open() === drips);

  let answered = 0;
  let slowestMs = 0;
  while (!isOver(held, answered)) {
    const startedMs = performance.now();
    const late = pause(responseTimeoutMs, 'no answer in time', { ref: false });
    const answer = await Promise.race([exchange(port, get), late]);
    assert.match(answer, /^HTTP\/1\.1 200 [^]*\[\{"id":1\}\]/);
    slowestMs = Math.max(slowestMs, performance.now() - startedMs);
    answered++;
    assert.ok(socketsOf(service) < 100, 'what drips stays with the balancer');
  }
  return { answered, slowestMs, drips: held };
}

/** Of the service's process, as Linux lists them. */
function socketsOf({ child }: Service): number {
  const folder = `/proc/${child.pid}/fd`;
  const targets = readdirSync(folder).map((descriptor) => {
    try {
      return readlinkSync(join(folder, descriptor));
    } catch {
      return 'closed by now';
    }
  });
  return targets.filter((target) => target.startsWith('socket:')).length;
}
