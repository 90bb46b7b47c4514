import { it } from 'node:test';
import { balance } from '../support/balancer.ts';
import { PostgresServer } from '../support/postgres.ts';
import { survives } from './replicas.test.ts';

const restarts = 10;
const replicas = 3;

it('PostgreSQL: three replicas behind a balancer survive ten restarts and a death of each', async (t) => {
  const server = await PostgresServer.make();
  t.after(() => server[Symbol.asyncDispose]());
  const inFront = (all: readonly string[]) => balance(t, all);
  const database = server.url();
  await survives(t, { database, replicas, inFront }, async (faults) => {
    for (let restart = 0; restart < restarts; restart++) {
      await faults.pause();
      // A fast stop, an immediate stop, and a crash.
      await server.stop((['SIGINT', 'SIGQUIT', 'SIGKILL'] as const)[restart % 3]);
      await faults.pause();
      await server.start();
      await faults.recovery();
      if (restart < replicas) await faults.killReplica(restart);
    }
    await faults.recovery();
  });
});

it('PostgreSQL: a standby takes over from a primary that dies, and nothing is lost', async (t) => {
  const primary = await PostgresServer.make();
  t.after(() => primary[Symbol.asyncDispose]());
  const standby = await primary.standby();
  t.after(() => standby[Symbol.asyncDispose]());
  const database = primary.urlWith(standby);
  await survives(t, { database, replicas }, async (faults) => {
    await faults.pause();
    await primary.stop('SIGKILL');
    await faults.pause();
    await standby.query('SELECT pg_promote()');
    await faults.recovery();
    await faults.pause();
  });
});
