import { it } from 'node:test';
import { PostgresServer } from '../support/postgres.ts';
import { survives } from './replicas.ts';

it('PostgreSQL: two replicas lose the database and each other, and nothing that they acknowledged', async (t) => {
  const server = await PostgresServer.make();
  t.after(() => server[Symbol.asyncDispose]());
  await survives(t, { database: server.url(), replicas: 2 }, async (blows) => {
    await blows.pause();
    await server.stop('SIGQUIT');
    await blows.pause();
    await server.start();
    await blows.recovery();
    await blows.killReplica(0);
    await blows.recovery();
  });
});
