import { it } from 'node:test';
import { PostgresServer } from '../support/postgres.ts';
import { survives } from './replicas.ts';

it('PostgreSQL: two replicas lose no acknowledged change if the database or a replica dies', async (t) => {
  const server = await PostgresServer.make();
  t.after(() => server[Symbol.asyncDispose]());
  await survives(t, { database: server.url(), replicas: 2 }, async (faults) => {
    await faults.pause();
    await server.stop('SIGQUIT');
    await faults.pause();
    await server.start();
    await faults.recovery();
    await faults.killReplica(0);
    await faults.recovery();
  });
});
