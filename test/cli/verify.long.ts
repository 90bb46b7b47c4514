/**
 * Databases of services that were killed while users wrote: `verify` finds nothing. Each round has a new database.
 */
import assert from 'node:assert/strict';
import { scopes } from '../../src/access/access.ts';
import { runOk, serve } from '../support/command.ts';
import { ledger } from '../support/ledger.ts';
import { firstSeed } from '../support/rounds.ts';
import { seededRandom } from '../support/random.ts';
import { it, storageOf, testDatabase } from '../support/storages.ts';
import { until } from '../support/until.ts';

/** Of each engine. */
const databases = 25;
const users = 8;

it('verify finds nothing in databases after kills', async (t) => {
  const random = seededRandom(firstSeed);
  const isSqlite = storageOf(t) === 'SQLite';
  let changes = 0;
  t.diagnostic(`PLANT_STORE_TEST_SEED=${firstSeed}`);
  for (let at = 0; at < databases; at++) {
    const { url } = await testDatabase(t);
    const env = { PLANT_STORE_DATABASE: url };
    const role = ['--role', 'manager', '--scope', scopes.join()];
    const token = await runOk(['token', 'create', 'maria', ...role], { env });
    // Two processes that write: workers on SQLite, replicas on PostgreSQL.
    const args = isSqlite ? ['--workers', '2'] : [];
    const services = [await serve(t, args, { env })];
    if (!isSqlite) services.push(await serve(t, args, { env }));
    const addresses = services.map(({ address }) => address);
    const book = ledger(addresses, token, { isSharing: true });
    await book.begin();
    let isRunning = true;
    const work = Array.from({ length: users }, (_, user) => book.work(user + 1, () => isRunning));
    const enough = 20 + Math.floor(random() * 200);
    await until('users have written', () => (book.counts['POST 201'] ?? 0) >= enough);
    await runOk(['verify'], { env }); // beside the service
    const killed = services.map((service) => service.stop('SIGKILL'));
    isRunning = false;
    await Promise.all([...killed, ...work]);
    const { sha256, faults } = JSON.parse(await runOk(['verify', '--json'], { env }));
    assert.deepEqual(faults, []);
    const log = await runOk(['log', '--json'], { env });
    changes += log.split('\n').length;
    assert.match(sha256, /^[\da-f]{64}$/);
  }
  t.diagnostic(`${changes} changes in ${databases} databases`);
});
