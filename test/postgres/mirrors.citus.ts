/**
 * Mirrors that follow a store whose shard moves: `npm run test:citus`, with the variables of test/support/citus.ts.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { codeOf } from '../../src/postgres/errors.ts';
import { PostgresStorage } from '../../src/postgres/storage.ts';
import { isCitus, moveShard, peers, shardOf } from '../support/citus.ts';
import { runOk } from '../support/command.ts';
import { startReplicas } from '../support/fault-injection.ts';
import { followUnderFaults } from '../support/mirrors-under-faults.ts';
import { query } from '../support/postgres.ts';
import { testDatabase } from '../support/storages.ts';
import { until } from '../support/until.ts';

assert.ok(isCitus, 'PLANT_STORE_TEST_CITUS_WORKERS names no workers');

/** SQLSTATE of whatever Citus refuses. */
const citusError = 'XX000';
const maxMoveMs = 60_000;
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
    const isMoved = async () => {
      await query(url, 'CALL citus_cleanup_orphaned_resources()');
      return moveShard(url, id, from, to, mode).then(
        () => true,
        (error: unknown) => {
          if (codeOf(error) !== citusError) throw error;
          return false; // somebody still reads the tables that the last move has left
        },
      );
    };
    await until('the store can move', isMoved, maxMoveMs);
  };
  const faults = {
    'move the store': move('block_writes'),
    'move the store while it is written': move('force_logical'),
    'kill a replica': () => service.killOne(),
  };
  const size = { changes, mirrors: 20, writers: 16, changesPerFault: 150 };
  await followUnderFaults(t, { addresses: service.addresses, open, faults }, size);
});
