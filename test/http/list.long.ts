/**
 * Lists that are longer than what is kept of them.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { json } from 'node:stream/consumers';
import { startApp } from '../support/app.ts';
import { it } from '../support/storages.ts';

it('follows pages of 110,000 plants to the end while plants are created in between', async (t) => {
  const app = await startApp(t);
  const token = await app.token('alice');
  const ids = Array.from({ length: 240_000 }, (_, at) => (at + 1) * 2);
  await app.database.fill(ids.map((id) => ({ id, tag: '', name: 'x'.repeat(40) })));
  const seen: number[] = [];
  let created = 1;
  let next: string | undefined = '/plants?fields=id,name&limit=110000';
  while (next !== undefined) {
    const sent = get(app.address + next, { headers: { authorization: `Bearer ${token}` } });
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    // The page is counted by now, and not yet sent to its end.
    for (let at = 0; at < 3; at++, created += 40_000) {
      await app.call('POST', '/plants', { token, json: { id: created, name: 'new' } });
    }
    const page = (await json(response)) as { id: number }[];
    assert.ok(page.length <= 110_000, `${page.length} plants`);
    seen.push(...page.map(({ id }) => id));
    [, next] = /^<(.+)>; rel="next"$/.exec(String(response.headers['link'])) ?? [];
  }
  const found = new Set(seen);
  assert.equal(found.size, seen.length, 'none twice');
  assert.ok(
    ids.every((id) => found.has(id)),
    'all that were there',
  );
});
