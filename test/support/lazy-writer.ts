/**
 * A process of its own that opens a storage without `warmUp`, so that its first write starts the writer thread:
 * `lazy-writer.ts FILE TOKEN`. For each message it tries to create a plant, and sends the kind of the problem, or `stored`.
 */
import assert from 'node:assert/strict';
import { Problem } from '../../src/problem.ts';
import { SqliteStorage } from '../../src/sqlite/storage.ts';
import { identify } from './tokens.ts';

const [, , path = '', token = ''] = process.argv;
const storage = new SqliteStorage(path, { create: false });
const { caller } = (await identify(storage, token)) ?? assert.fail();
process.on('message', () => {
  void storage.plants.create(caller, { name: 'stored' }).then(
    () => process.send?.('stored'),
    (error: unknown) => process.send?.(error instanceof Problem ? error.kind : String(error)),
  );
});
process.send?.('ready');
