import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { describe, it } from 'node:test';
import { hashToken, makeToken } from '../../src/access/token.ts';
import { fileOf, openArchive } from '../../src/cli/database.ts';
import { addToken, call, nextOf, startApp, type TestApp } from '../support/app.ts';
import { run, runHere, runOk } from '../support/command.ts';
import { emptyDatabase, storageNames } from '../support/storages.ts';
import { digestIn, sourceOf } from './copy.ts';

/** More than one batch. */
const plants = 5_000;

describe('copy', () => {
  it('copies everything from SQLite to PostgreSQL and back, and only to an empty database', async (t) => {
    const source = await sourceOf(t, 'SQLite', plants);
    const [middle, end] = [await emptyDatabase(t, 'PostgreSQL'), await emptyDatabase(t, 'SQLite')];
    const copy = (from: string, to: string) => runOk(['copy', '--from', from, '--to', to]);
    const there = digestIn(await copy(source.url, middle.url));
    assert.equal(digestIn(await copy(middle.url, end.url)), there);
    for (const to of [middle, end]) {
      const { status, stderr } = await run(['copy', '--from', source.url, '--to', to.url]);
      assert.equal(status, 1);
      assert.match(stderr, / is not empty: it contains stores\. Copy to an empty database\./);
    }

    // The copy can be used at once: new ids and users come after the old ones.
    const opened = await middle.open();
    const token = await addToken(opened, 'carol');
    const alice = await addToken(opened, 'alice');
    await opened[Symbol.asyncDispose]();
    const { address } = await startApp(t, { open: () => middle.open() });
    const shared = await call(`${address}/plants?limit=1`, 'GET', { token });
    assert.deepEqual(shared.json, [{ name: 'Plant é 𝒳 "0" \\', tag: 'bed 0' }]);
    const created = await call(`${address}/plants`, 'POST', { token, json: { name: 'new' } });
    assert.equal(created.headers.get('location'), `/plants/${3 * (plants - 1) + 2}`);
    const page = await call(`${address}/plants?limit=1&fields=id,name,tag`, 'GET', {
      token: alice,
    });
    assert.deepEqual(page.json, [{ id: 1, name: 'Plant é 𝒳 "0" \\', tag: 'bed 0' }]);
    const copied = { token: source.token };
    const copiedPage = await call(`${address}/plants?limit=1`, 'GET', copied);
    assert.deepEqual(copiedPage.json, [{ name: 'Plant é 𝒳 "0" \\', tag: 'bed 0' }]);
    assert.equal((await call(`${address}/token`, 'DELETE', copied)).status, 204);
    assert.equal((await call(`${address}/plants`, 'GET', copied)).status, 401);
  });

  it('ends the cursors of each database in the others', async (t) => {
    const source = await sourceOf(t, 'SQLite', 10);
    const copies = await Promise.all(storageNames.map((storage) => emptyDatabase(t, storage)));
    for (const { url } of copies) await runOk(['copy', '--from', source.url, '--to', url]);
    const apps: TestApp[] = [];
    for (const each of [source, ...copies])
      apps.push(await startApp(t, { open: () => each.open() }));
    for (const own of apps) {
      const begin = await own.call('GET', '/changes', { token: source.token });
      const next = nextOf(begin);
      for (const app of apps) {
        const { status, json } = await app.call('GET', next, { token: source.token });
        const expected = app === own ? [200, undefined] : [410, 'restored'];
        assert.deepEqual([status, (json as { reason?: string }).reason], expected);
      }
    }
  });

  it('leaves nothing of a copy whose source changes after it was read', async (t) => {
    const source = await sourceOf(t, 'SQLite', plants);
    using database = new DatabaseSync(fileOf(source.url));
    for (const [at, storage] of storageNames.entries()) {
      const target = await emptyDatabase(t, storage);
      const args = ['copy', '--from', source.url, '--to', target.url];
      let isChanged = false;
      const { status, stderr } = await runHere(args, {
        isTerminal: true, // which shows the progress
        onOutput: (text) => {
          if (isChanged || !text.includes('Comparing')) return;
          isChanged = true;
          database.exec(`DELETE FROM plants WHERE id = ${3 * at + 1}`);
        },
      });
      assert.equal(status, 1);
      assert.match(stderr, /The copy differs from the original: one of them changed/);
      digestIn(await runOk(args)); // the target is empty
    }
  });

  it('shows a service that already runs on the target nothing before it is complete', async (t) => {
    const target = await emptyDatabase(t, 'PostgreSQL');
    const app = await startApp(t, { open: () => target.open() });
    const token = makeToken(1);
    const status = async () => (await app.call('GET', '/plants', { token })).status;
    await using archive = await openArchive(target.url, { create: false });
    await archive.fill(async (empty) => {
      await empty.add('stores', [[1, 'main', 0, 1, 0]]);
      await empty.add('users', [[1, 1, 'alice', 'member', null, 0]]);
      await empty.add('tokens', [
        [1, hashToken(token), 1, 'plants:read', '', 0, null, null, null, null, null, '', null],
      ]);
      assert.equal(await status(), 401);
    });
    assert.equal(await status(), 200);
  });

  it('is refused while a service uses a SQLite file', async (t) => {
    const source = await sourceOf(t, 'SQLite', 10);
    const target = await emptyDatabase(t, 'SQLite');
    await using _ = await target.open();
    const { status, stderr } = await run(['copy', '--from', source.url, '--to', target.url]);
    assert.equal(status, 1);
    assert.match(
      stderr,
      /plants\.db is in use\. Stop every process that has it open, and try again\./,
    );
  });

  it('copies an empty database, and between two of the same engine', async (t) => {
    for (const storage of ['SQLite', 'PostgreSQL'] as const) {
      const [from, to] = [await emptyDatabase(t, storage), await emptyDatabase(t, storage)];
      await runOk(['migrate', '--database', from.url]);
      const printed = await runOk(['copy', '--from', from.url, '--to', to.url]);
      assert.match(
        printed,
        / \(stores: 0, changes: 0, users: 0, plants: 0, idempotency_keys: 0, shares: 0, tokens: 0, webhooks: 0\)\./,
      );
    }
  });
});
