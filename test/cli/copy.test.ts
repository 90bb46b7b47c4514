import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { describe, it } from 'node:test';
import { displayName, fileOf, openArchive } from '../../src/cli/database.ts';
import { addToken, call, startApp } from '../support/app.ts';
import { run, runHere, runOk } from '../support/command.ts';
import { emptyDatabase } from '../support/storages.ts';
import { until } from '../support/until.ts';
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

  it('refuses a target with part of the copy, and serve does too, until it is resumed', async (t) => {
    const source = await sourceOf(t, 'SQLite', 10);
    const target = await emptyDatabase(t, 'PostgreSQL');
    await using archive = await openArchive(target.url, { create: true });
    await archive.beginCopy(displayName(source.url));
    const args = ['copy', '--from', source.url, '--to', target.url];
    assert.match(
      (await run(args)).stderr,
      /already contains part of this copy\. Continue with --r/,
    );
    const served = await runHere(['serve', '--port', '0', '--database', target.url]);
    assert.equal(served.status, 1);
    assert.match(served.stderr, /is an incomplete copy\. Finish it with/);
    digestIn(await runOk([...args, '--resume']));
  });

  it('detects a change in the source after it was read', async (t) => {
    const source = await sourceOf(t, 'SQLite', plants);
    const target = await emptyDatabase(t, 'SQLite');
    using database = new DatabaseSync(fileOf(source.url));
    let isChanged = false;
    const { status, stderr } = await runHere(['copy', '--from', source.url, '--to', target.url], {
      isTerminal: true, // which shows the progress
      onOutput: (text) => {
        if (isChanged || !text.includes('Comparing')) return;
        isChanged = true;
        database.exec('DELETE FROM plants WHERE id = 1');
      },
    });
    assert.equal(status, 1);
    assert.match(stderr, /The copy differs from the original: one of them changed during the copy/);
  });

  it('is not ready before it is complete, even on a service that already runs', async (t) => {
    for (const storage of ['SQLite', 'PostgreSQL'] as const) {
      const database = await emptyDatabase(t, storage);
      const { url } = database;
      const app = await startApp(t, { open: () => database.open() });
      const readyz = async () => (await app.call('GET', '/readyz')).status;
      assert.equal(await readyz(), 200);
      await using archive = await openArchive(url, { create: false });
      // The result of the check is shared for a short time.
      await archive.beginCopy('somewhere');
      await until('it is not ready', async () => (await readyz()) === 503);
      await archive.finishCopy();
      await until('it is ready again', async () => (await readyz()) === 200);
    }
  });

  it('copies an empty database, and between two of the same engine', async (t) => {
    for (const storage of ['SQLite', 'PostgreSQL'] as const) {
      const [from, to] = [await emptyDatabase(t, storage), await emptyDatabase(t, storage)];
      await runOk(['migrate', '--database', from.url]);
      const printed = await runOk(['copy', '--from', from.url, '--to', to.url]);
      assert.match(
        printed,
        / \(stores: 0, users: 0, plants: 0, changes: 0, idempotency_keys: 0, shares: 0, tokens: 0\)\./,
      );
    }
  });
});
