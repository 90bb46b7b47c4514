/**
 * As many requests that wait for changes as a process holds, and some more.
 */
import assert from 'node:assert/strict';
import { maxWaitingRequests } from '../../src/http/limits.ts';
import { metrics } from '../../src/metrics/metrics.ts';
import { nextOf, startApp, type Answer, type Send } from '../support/app.ts';
import { itOnce } from '../support/storages.ts';
import { untilCount } from '../support/until.ts';

const maxOfFamily = 16;
const surplus = 3 * maxOfFamily;

itOnce('waits for changes beyond the maximum are refused, and the others continue', async (t) => {
  const app = await startApp(t);
  const manager = await app.user('manager', { role: 'manager' });
  const families = (maxWaitingRequests + surplus) / maxOfFamily;
  const readers = await Array.fromAsync({ length: families }, (_, at) =>
    app.user(`reader ${at}`, { role: 'manager' }),
  );
  const begin = await manager('GET', '/changes');
  const refused: Answer[] = [];
  const shown: Answer[] = [];
  const waits: Promise<void>[] = [];
  // Not all connections at once: those beyond the backlog of the socket would begin seconds later.
  for (const reader of readers) {
    waits.push(...Array.from({ length: maxOfFamily }, () => waitWith(reader)));
    const begun = () => metrics.plant_store_waiting_requests + refused.length;
    await untilCount('waits and refusals', waits.length, begun);
  }
  assert.equal(refused.length, surplus);
  for (const { status, headers, json } of refused) {
    assert.equal(status, 503);
    assert.match(headers.get('retry-after') ?? '', /^\d+$/);
    assert.match((json as { detail: string }).detail, /wait/);
  }
  assert.equal((await manager('GET', '/plants?limit=1')).status, 200);
  assert.equal((await manager('POST', '/plants', { json: { name: 'Fern' } })).status, 201);
  await Promise.all(waits);
  assert.equal(refused.length, surplus);
  assert.equal(shown.length, maxWaitingRequests);

  /** Waits until a change or a refusal, again after an end without either, as a client does. */
  async function waitWith(reader: Send): Promise<void> {
    let answer: Answer;
    do {
      answer = await reader('GET', `${nextOf(begin)}&wait=25`);
    } while (answer.status === 200 && !answer.text.includes('"created"'));
    (answer.status === 200 ? shown : refused).push(answer);
  }
});
