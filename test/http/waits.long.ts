/**
 * As many requests that wait for changes as a process holds, and some more.
 */
import assert from 'node:assert/strict';
import { maxWaitingRequests } from '../../src/http/limits.ts';
import { nextOf, startApp, type Answer } from '../support/app.ts';
import { itOnce } from '../support/storages.ts';
import { until } from '../support/until.ts';

const maxOfFamily = 16;
const surplus = 3 * maxOfFamily;

itOnce('waits for changes beyond the maximum are refused, and the others continue', async (t) => {
  const app = await startApp(t);
  const manager = await app.user('manager', { role: 'manager' });
  const begin = await manager('GET', '/changes');
  const families = (maxWaitingRequests + surplus) / maxOfFamily;
  const readers = await Array.fromAsync({ length: families }, (_, at) =>
    app.user(`reader ${at}`, { role: 'manager' }),
  );
  const answers: Answer[] = [];
  const waits = readers.flatMap((reader) =>
    Array.from({ length: maxOfFamily }, async () =>
      answers.push(await reader('GET', `${nextOf(begin)}&wait=25`)),
    ),
  );
  await until('the surplus is refused', () => answers.length >= surplus);
  assert.equal(answers.length, surplus);
  for (const { status, headers, json } of answers) {
    assert.equal(status, 503);
    assert.match(headers.get('retry-after') ?? '', /^\d+$/);
    assert.match((json as { detail: string }).detail, /wait/);
  }
  assert.equal((await manager('GET', '/plants?limit=1')).status, 200);
  assert.equal((await manager('POST', '/plants', { json: { name: 'Fern' } })).status, 201);
  await Promise.all(waits);
  const shown = answers.filter(({ status, text }) => status === 200 && text.includes('"created"'));
  assert.equal(shown.length, maxWaitingRequests);
});
