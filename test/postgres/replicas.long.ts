import { it } from 'node:test';
import { balance } from '../support/balancer.ts';
import { PostgresServer } from '../support/postgres.ts';
import { survives } from './replicas.ts';

const restarts = 10;
const replicas = 3;

it('PostgreSQL: three replicas behind a balancer outlive ten restarts and a death of each', async (t) => {
  const server = await PostgresServer.make();
  t.after(() => server[Symbol.asyncDispose]());
  const inFront = (all: readonly string[]) => balance(t, all);
  const counts = await survives(t, { database: server.url(), replicas, inFront }, async (blows) => {
    for (let restart = 0; restart < restarts; restart++) {
      await blows.pause();
      // In order, at once, and as when the machine fails.
      await server.stop((['SIGINT', 'SIGQUIT', 'SIGKILL'] as const)[restart % 3]);
      await blows.pause();
      await server.start();
      await blows.recovery();
      if (restart < replicas) await blows.killReplica(restart);
    }
    await blows.recovery();
  });
  t.diagnostic(JSON.stringify(counts));
});

it('PostgreSQL: a standby takes over from a primary that dies, and nothing is lost', async (t) => {
  const primary = await PostgresServer.make();
  t.after(() => primary[Symbol.asyncDispose]());
  const standby = await primary.standby();
  t.after(() => standby[Symbol.asyncDispose]());
  const database = primary.url().replace(/(127\.0\.0\.1:\d+)/, `$1,127.0.0.1:${standby.port}`);
  const counts = await survives(t, { database, replicas }, async (blows) => {
    await blows.pause();
    await primary.stop('SIGKILL');
    await blows.pause();
    await standby.query('SELECT pg_promote()');
    await blows.recovery();
    await blows.pause();
  });
  t.diagnostic(JSON.stringify(counts));
});
