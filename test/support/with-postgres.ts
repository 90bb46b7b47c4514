/**
 * Runs a command with PLANT_STORE_TEST_DATABASE set to a new PostgreSQL server of another version.
 *
 *   node test/support/with-postgres.ts /usr/lib/postgresql/15/bin npm test
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { PostgresServer } from './postgres.ts';

const [, , binaries, command = '', ...args] = process.argv;
await using server = await PostgresServer.make(binaries);
const env = { ...process.env, PLANT_STORE_TEST_DATABASE: server.url() };
const [status] = await once(spawn(command, args, { stdio: 'inherit', env }), 'exit');
process.exitCode = status ?? 1; // null after a signal
