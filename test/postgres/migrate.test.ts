/**
 * Migrations of large tables.
 */
import { it } from 'node:test';
import { runOk } from '../support/command.ts';
import { emptyDatabase } from '../support/storages.ts';
import { newerProgram } from '../support/versions.ts';
import {
  assertMigrated,
  createPlants,
  limitSessions,
  removeLimits,
  statements,
} from './migrate.ts';

const plants = 30_000;

it('PostgreSQL: migrate has no time limit, whatever the limits of the role are', async (t) => {
  const database = await emptyDatabase(t, 'PostgreSQL');
  await createPlants(database, plants);
  const { url } = database;
  await limitSessions([url]);
  const program = newerProgram(t, { older: 'refused', postgres: statements }); // its session waits idle
  await runOk(['migrate', '--database', url], { program });
  await removeLimits([url]);
  await assertMigrated(url, plants);
});
