/**
 * Mirrors that follow a store whose shard moves: `npm run test:citus`, with the variables of test/support/citus.ts.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { PostgresStorage } from '../../src/postgres/storage.ts';
import { isCitus, moveShard, peers, shardOf } from '../support/citus.ts';
import { runOk } from '../support/command.ts';
import { startReplicas } from '../support/fault-injection.ts';
import { followUnderFaults } from '../support/mirrors-under-faults.ts';
import { testDatabase } from '../support/storages.ts';

assert.ok(isCitus, 'PLANT_STORE_TEST_CITUS_WORKERS names no workers');

const changes = Number(process.env['PLANT_STORE_TEST_CHANGES'] ?? 3_000);

it('Citus: mirrors equal the lists of their users, while their store moves and replicas die', async (t) => {
  const { url } = await testDatabase(t, 'PostgreSQL');
  await runOk(['migrate', '--database', url]);
  const open = async () => {
    const storage = new PostgresStorage(peers(url));
    await storage.open();
    return storage;
  };
  const service = await startReplicas(t, 2, peers(url));
  /** The first store. */
  const store = 1;
  const move = (mode: 'block_writes' | 'force_logical') => async () => {
    const { id, from, to } = await shardOf(url, store);
    await moveShard(url, id, from, to, mode);
  };
  const faults = {
    'move the store': move('block_writes'),
    'move the store while it is written': move('force_logical'),
    'kill a replica': () => service.killOne(),
  };
  const size = { changes, mirrors: 20, writers: 16, changesPerFault: 150 };
  await followUnderFaults(t, { addresses: service.addresses, open, faults }, size);
});
