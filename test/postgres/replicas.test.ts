/**
 * Replicas of the service on one database, while the database and the replicas die in turn. Responses
 * stay correct, and the replicas recover by themselves.
 */
import { it, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { scopes } from '../../src/access/access.ts';
import { call } from '../support/app.ts';
import { runOk, serve, type Service } from '../support/command.ts';
import { ledger } from '../support/ledger.ts';
import { PostgresServer } from '../support/postgres.ts';
import { until } from '../support/until.ts';

/** The longest recovery after the database accepts connections again. */
const maxRecoveryMs = 5_000;
const users = 8;
/** The time between two faults, so that there is something to lose. */
const quietMs = 300;

interface Setting {
  /** What each replica is given as --database. */
  database: string;
  replicas: number;
  /** Where requests go to: the replicas themselves, or something in front of them. */
  inFront?: (replicas: readonly string[]) => Promise<string>;
}

interface Faults {
  /** Kills a replica and starts it again in its place. */
  killReplica(at: number): Promise<void>;
  /** Waits until every replica accepts writes. */
  recovery(): Promise<void>;
  pause(): Promise<void>;
}

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

/** Loads the replicas during the faults of `inject`, and checks every response and the stored plants. */
export async function survives(
  t: TestContext,
  { database, replicas: count, inFront }: Setting,
  inject: (faults: Faults) => Promise<void>,
): Promise<void> {
  const env = { PLANT_STORE_DATABASE: database, PLANT_STORE_LOG_LEVEL: 'silent' };
  const manager = ['maria', '--role', 'manager', '--scope', scopes.join()];
  const token = await runOk(['token', 'create', ...manager], { env });
  // In a store of its own, which the ledger does not check.
  const probe = await runOk(['token', 'create', 'probe', '--store', 'probe'], { env });
  const starts = Array.from({ length: count }, () => serve(t, [], { env }));
  const services: Service[] = await Promise.all(starts);
  const replicas = services.map(({ address }) => address);
  const addresses = inFront === undefined ? replicas : [await inFront(replicas)];

  const book = ledger(addresses, token, { isSharing: true });
  await book.begin();
  let isRunning = true;
  const work = Array.from({ length: users }, (_, user) => book.work(user + 1, () => isRunning));
  const acceptsWrites = (address: string) =>
    call(`${address}/plants`, 'POST', { token: probe, json: { name: 'probe' } }).then(
      ({ status }) => status === 201,
      () => false,
    );
  const injected = inject({
    async killReplica(at) {
      const { port } = new URL(replicas[at] ?? '');
      await services[at]?.stop('SIGKILL');
      services[at] = await serve(t, ['--port', port], { env });
    },
    async recovery() {
      for (const address of replicas) {
        await until(`${address} accepts writes`, () => acceptsWrites(address), maxRecoveryMs);
      }
    },
    pause: () => pause(quietMs),
  }).then(() => until('there is load', () => (book.counts['POST 201'] ?? 0) > 100));
  await Promise.race([injected, ...work]).finally(() => (isRunning = false));
  await Promise.all([injected, ...work]);
  await book.check();
  t.diagnostic(JSON.stringify(book.counts));
}
