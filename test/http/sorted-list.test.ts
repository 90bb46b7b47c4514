/**
 * Sorted lists and counts over HTTP. test/sorted.test.ts has which plants are in them, and in which order.
 */
import assert from 'node:assert/strict';
import { inNewStore, startApp, type Answer, type Send } from '../support/app.ts';
import { fileScope, itOnce as it } from '../support/storages.ts';

const app = await startApp(fileScope());

/** A user of a new store with these plants, whose ids count from 1. */
async function userWith(...names: readonly string[]): Promise<Send> {
  const send = await inNewStore(app).user('alice');
  for (const name of names) await send('POST', '/plants', { json: { name } });
  return send;
}

function nextOf({ headers }: Answer): string | undefined {
  return /^<([^>]+)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1];
}

async function pagesOf(send: Send, first: string): Promise<unknown[]> {
  const pages: unknown[] = [];
  for (let path: string | undefined = first; path !== undefined;) {
    const page: Answer = await send('GET', path);
    assert.equal(page.status, 200, page.text);
    pages.push((page.json as { id: number }[]).map(({ id }) => id));
    path = nextOf(page);
  }
  return pages;
}

it('sorts by the folded name, then by id, in either direction', async () => {
  const alice = await userWith('ficus', 'Écorce', 'Aloe', 'FICUS', 'zebra', 'aloé');
  assert.deepEqual(await pagesOf(alice, '/plants?sort=name&limit=4&fields=id'), [
    [3, 6, 2, 1],
    [4, 5],
  ]);
  assert.deepEqual(await pagesOf(alice, '/plants?sort=-name&limit=3&fields=id'), [
    [5, 1, 4],
    [2, 3, 6],
  ]);
  const found = await pagesOf(alice, '/plants?sort=name&q=E&limit=2&fields=id');
  assert.deepEqual(found, [
    [3, 6],
    [2, 5],
  ]);
});

it('refuses a sorted list without a limit', async () => {
  const alice = await userWith('Ficus');
  for (const query of ['sort=name', 'sort=-name&after=0', 'sort=name&tag=&q=f&count=true']) {
    const { status, json } = await alice('GET', `/plants?${query}`);
    assert.equal(status, 400, query);
    assert.deepEqual((json as { errors: unknown }).errors, [
      {
        parameter: 'limit',
        detail: '"limit" is missing. Send a limit with "sort": an integer from 1 to 1000.',
      },
    ]);
  }
});

it('Total-Count is the length of the list without limit and after', async () => {
  const alice = await userWith('a', 'b', 'ab', 'c');
  await alice('PATCH', '/plants/1', { json: { tag: 't' } });
  for (const [query, count] of [
    ['limit=1', 4],
    ['limit=1&after=3', 4],
    ['', 4],
    ['limit=2&sort=-name', 4],
    ['q=B&limit=1', 2],
    ['tag=t', 1],
    ['tag=t&q=b', 0],
  ] as const)
    for (const method of ['GET', 'HEAD']) {
      const { status, headers } = await alice(method, `/plants?${query}&count=true`);
      assert.deepEqual([status, headers.get('total-count')], [200, String(count)], query);
    }
  for (const query of ['limit=1', 'limit=1&count=false']) {
    assert.equal((await alice('GET', `/plants?${query}`)).headers.get('total-count'), null);
  }
  const first = await alice('GET', '/plants?limit=3&count=true');
  assert.equal(nextOf(first), '/plants?limit=3&after=3&count=true');
  assert.match(
    (await alice('GET', '/plants?count=1')).text,
    /\\"count\\" is not valid. Use true or false/,
  );
});

it('refuses a cursor that is not of this order', async () => {
  const alice = await userWith('Ficus', 'Aloe', 'Monstera');
  const next = nextOf(await alice('GET', '/plants?sort=name&limit=1')) ?? assert.fail();
  const cursor = new URLSearchParams(next.split('?')[1]).get('after') ?? assert.fail();
  assert.equal((await alice('GET', `/plants?limit=1&sort=name&after=${cursor}`)).status, 200);
  assert.equal((await alice('GET', '/plants?limit=1&sort=name&after=0')).status, 200);
  const other = Buffer.from('2 Ficus').toString('base64url');
  for (const query of [
    `limit=1&sort=-name&after=${cursor}`,
    `after=${cursor}`,
    `limit=1&after=${cursor}`,
    'limit=1&sort=name&after=2',
    `limit=1&sort=name&after=${cursor.replace(/^./, (one) => (one === 'M' ? 'N' : 'M'))}`,
    `limit=1&sort=name&after=${cursor.replace(/[^.]*/, other)}`,
    `limit=1&sort=name&after=${cursor.slice(0, -1)}`,
    `limit=1&sort=name&after=${cursor.replace('.', '')}`,
    'limit=1&sort=name&after=x',
  ]) {
    const { status, json } = await alice('GET', `/plants?${query}`);
    const { errors } = json as { errors: { parameter: string; detail: string }[] };
    assert.equal(status, 400, query);
    assert.deepEqual(
      errors.map(({ parameter }) => parameter),
      ['after'],
      query,
    );
    assert.match(errors[0]?.detail ?? '', /^"after" is not (a cursor of this order|valid)\. Use /);
  }
  for (const query of ['sort=id', 'sort=', 'sort=name,-name', 'sort=name&sort=name'])
    assert.equal((await alice('GET', `/plants?${query}`)).status, 400, query);
});

it('continues behind a plant that was renamed or deleted meanwhile', async () => {
  const alice = await userWith('d', 'c', 'b', 'a');
  const next = nextOf(await alice('GET', '/plants?sort=name&limit=2&fields=id')) ?? assert.fail();
  await alice('DELETE', '/plants/3');
  await alice('PATCH', '/plants/4', { json: { name: 'e' } });
  await alice('POST', '/plants', { json: { name: 'B' } });
  assert.deepEqual(await pagesOf(alice, next), [
    [5, 2],
    [1, 4],
  ]);
});
