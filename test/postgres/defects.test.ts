/**
 * A defect in our own code must not be reported as an unavailable storage.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { addToken } from '../support/app.ts';
import { testDatabase } from '../support/storages.ts';
import { identify } from '../support/tokens.ts';

const defect = new Error('a value that pg cannot send');

/** Fails when the driver converts it to bytes. The defect is that it is used as an id or a name. */
const unsendable = {
  toPostgres() {
    throw defect;
  },
} as never;

it('PostgreSQL: rejects with the error of a defect, and other requests get their own results', async (t) => {
  const database = await testDatabase(t, 'PostgreSQL');
  await using storage = await database.open();
  const grant = await identify(storage, await addToken(storage, 'alice'));
  assert.ok(grant);
  const { caller } = grant;
  const create = (name: string) => storage.plants.create(caller, { name });
  const find = (id: number) => storage.plants.find(caller, id);
  const created = await Promise.all(['a', 'b', 'c'].map(create));
  const plants = created.map(({ id, name, tag, owner }) => ({ id, name, tag, owner }));
  const findAll = () => Promise.all(plants.map(({ id }) => find(id)));

  const passesThrough = (error: unknown) => error === defect;
  const [before, , after] = await Promise.all([
    findAll(),
    assert.rejects(find(unsendable), passesThrough),
    findAll(),
    assert.rejects(create(unsendable), passesThrough),
    assert.rejects(storage.plants.delete(caller, unsendable), passesThrough),
  ]);
  assert.deepEqual([before, after], [plants, plants]);

  assert.equal((await create('d')).name, 'd');
  assert.deepEqual(await findAll(), plants);
});
