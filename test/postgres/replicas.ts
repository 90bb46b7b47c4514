/**
 * Replicas of the service over one database, of which everything dies in turn. What they answer stays
 * true, and they come back by themselves.
 */
import type { TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { runOk, serve, type Service } from '../support/command.ts';
import { ledger } from '../support/ledger.ts';
import { until } from '../support/until.ts';
import { call } from '../support/app.ts';

/** How long the service may take once the database takes connections again. */
const maxRecoveryMs = 5_000;
const users = 8;
/** Between two blows, so that there is something to lose. */
const quietMs = 300;

export interface Setting {
  /** What each replica is given as --database. */
  database: string;
  replicas: number;
  /** Where requests go to: the replicas themselves, or something in front of them. */
  inFront?: (replicas: readonly string[]) => Promise<string>;
}

export interface Blows {
  /** Kills a replica and starts it again in its place. */
  killReplica(at: number): Promise<void>;
  /** Waits until every replica takes writes. */
  recovery(): Promise<void>;
  pause(): Promise<void>;
}

/** Loads the replicas while `strike` does its worst, and checks every answer and what is left. */
export async function survives(
  t: TestContext,
  { database, replicas: count, inFront }: Setting,
  strike: (blows: Blows) => Promise<void>,
): Promise<Record<string, number>> {
  const env = { PLANT_STORE_DATABASE: database, PLANT_STORE_LOG_LEVEL: 'silent' };
  const token = await runOk(['token', 'create', 'maria', '--role', 'manager'], { env });
  // In a store of its own, which nobody keeps a book of.
  const probe = await runOk(['token', 'create', 'probe', '--store', 'probe'], { env });
  const starts = Array.from({ length: count }, () => serve(t, [], { env }));
  const services: Service[] = await Promise.all(starts);
  const replicas = services.map(({ address }) => address);
  const addresses = inFront === undefined ? replicas : [await inFront(replicas)];

  const book = ledger(addresses, token);
  await book.begin();
  let goesOn = true;
  const work = Array.from({ length: users }, (_, user) => book.work(user + 1, () => goesOn));
  const takesWrites = (address: string) =>
    call(`${address}/plants`, 'POST', { token: probe, json: { name: 'probe' } }).then(
      ({ status }) => status === 201,
      () => false,
    );
  const struck = strike({
    async killReplica(at) {
      const { port } = new URL(replicas[at] ?? '');
      await services[at]?.stop('SIGKILL');
      services[at] = await serve(t, ['--port', port], { env });
    },
    async recovery() {
      for (const address of replicas) {
        await until(`${address} takes writes`, () => takesWrites(address), maxRecoveryMs);
      }
    },
    pause: () => pause(quietMs),
  }).then(() => until('there was load', () => (book.counts['POST 201'] ?? 0) > 100));
  await Promise.race([struck, ...work]).finally(() => (goesOn = false));
  await Promise.all([struck, ...work]);
  await book.check();
  return book.counts;
}
