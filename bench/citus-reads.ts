/**
 * The CPU time of a server for each read of a store: without Citus, planned by Citus, and sent to the tables of the shard
 * (src/postgres/shard-reads.ts). The variables are those of test/support/citus.ts; the servers must be on this computer.
 *
 *   PLANT_STORE_TEST_DATABASE=... PLANT_STORE_TEST_CITUS_WORKERS=... \
 *     node_modules/.bin/node bench/citus-reads.ts --binaries /usr/lib/postgresql/15/bin
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { Client } from 'pg';
import { maxId } from '../src/ids.ts';
import { plannerSettings, type Row, type Statement } from '../src/postgres/connection.ts';
import { refreshSql } from '../src/postgres/freshness.ts';
import { grantSql } from '../src/postgres/grants.ts';
import { listSql } from '../src/postgres/plants.ts';
import { ShardMap, shardSql, type Shard, type ShardRow } from '../src/postgres/shard-map.ts';
import { onShard } from '../src/postgres/shard-reads.ts';
import { isCitus, onWorkers } from '../test/support/citus.ts';
import { PostgresServer } from '../test/support/postgres.ts';
import { testDatabase } from '../test/support/storages.ts';
import { formatNumber, median, table } from './figures.ts';
import { fillStores, makeStores } from './many-stores.ts';

const { values } = parseArgs({ options: { binaries: { type: 'string' } } });

const stores = 60;
const plantsEach = 100;
const pagePlants = 20;
const rounds = 5;
/** Statements in a round, and those that are sent together. */
const statementsEach = 500;
const sentAtOnce = 20;

interface TokenRow {
  store: number;
  user: number;
  hash: Buffer;
}

type Read = readonly [title: string, statement: Statement, values: (row: TokenRow) => unknown[]];

const reads: readonly Read[] = [
  ['check of the version', refreshSql, ({ store }) => [store]],
  ['page of a member', listSql.owner, ({ store, user }) => [store, 0, maxId, pagePlants, user]],
  ['page of a manager', listSql.store, ({ store }) => [store, 0, maxId, pagePlants]],
  ['grant', grantSql.findByToken, ({ store, hash }) => [store, hash]],
];

async function fill(url: string): Promise<void> {
  const names = Array.from({ length: stores }, (_, at) => `store ${at}`);
  await fillStores(url, await makeStores(url, names), stores * plantsEach);
}

/** The medians of all rounds, in which the sessions take turns. */
async function measure(
  read: Read,
  sides: readonly (readonly [Session, (row: TokenRow) => Shard | undefined])[],
): Promise<number[]> {
  const figures: number[][] = sides.map(() => []);
  for (let round = 0; round <= rounds; round++) {
    for (const [at, [session, shardOf]] of sides.entries()) {
      const us = await session.run(read, shardOf);
      if (round > 0) figures[at]?.push(us); // the first round plans the statements
    }
  }
  return figures.map(median);
}

/** One connection, and the tokens of the stores that are on its server. */
class Session implements AsyncDisposable {
  readonly #client: Client;
  readonly #pid: number;
  #tokens: readonly TokenRow[] = [];

  private constructor(client: Client, pid: number) {
    this.#client = client;
    this.#pid = pid;
  }

  static async open(connectionString: string): Promise<Session> {
    const client = new Client({ connectionString, pipeline: true });
    await client.connect();
    await client.query(plannerSettings);
    const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    const session = new Session(client, rows[0]?.pid ?? 0);
    const tokens = await client.query<Record<keyof TokenRow, unknown>>(
      'SELECT store, user_id AS user, hash FROM plant_store.store_tokens',
    );
    const all = tokens.rows.map((row) => {
      return { store: Number(row.store), user: Number(row.user), hash: row.hash as Buffer };
    });
    const map = await session.map();
    const here = await session.#node();
    session.#tokens = all.filter(({ store }) => map.shardOfStore(store)?.node === here);
    return session;
  }

  /** Without Citus, it is empty. */
  async map(): Promise<ShardMap> {
    if ((await this.#node()) === undefined) return new ShardMap([]);
    const { rows } = await this.#client.query<unknown[]>({ text: shardSql.text, rowMode: 'array' });
    const toRow = ([name, ...numbers]: unknown[]) => [name, ...numbers.map(Number)];
    return new ShardMap(rows.map((row) => toRow(row) as unknown as ShardRow)); // the selected columns
  }

  /** Returns the CPU time of the server for a statement, in microseconds. */
  async run(
    [, statement, valuesOf]: Read,
    shardOf: (row: TokenRow) => Shard | undefined,
  ): Promise<number> {
    const before = this.#cpuUs();
    for (let sent = 0; sent < statementsEach; sent += sentAtOnce) {
      const responses = Array.from({ length: sentAtOnce }, async (_, at) => {
        const row = this.#tokens[(sent + at) % this.#tokens.length];
        assert.ok(row);
        const shard = shardOf(row);
        const { name, text } =
          (shard === undefined ? undefined : onShard<Row>(statement, shard)) ?? statement;
        return this.#client.query({ name, text, values: valuesOf(row) });
      });
      await Promise.all(responses);
    }
    return (this.#cpuUs() - before) / statementsEach;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.end();
  }

  /** `groupid`; undefined without Citus. */
  async #node(): Promise<number | undefined> {
    const { rowCount } = await this.#client.query(
      `SELECT 1 FROM pg_extension WHERE extname = 'citus'`,
    );
    if (rowCount === 0) return undefined;
    const { rows } = await this.#client.query<{ groupid: number }>(
      'SELECT groupid FROM pg_dist_local_group',
    );
    return rows[0]?.groupid;
  }

  /** In nanoseconds in /proc: the ticks of other files are too coarse. */
  #cpuUs(): number {
    const [ns] = readFileSync(`/proc/${this.#pid}/schedstat`, 'utf8').split(' ');
    return Number(ns) / 1_000;
  }
}

assert.ok(isCitus, 'PLANT_STORE_TEST_CITUS_WORKERS names no workers');
const cleanups: (() => unknown)[] = [];
const scope = { after: (cleanup: () => unknown) => void cleanups.push(cleanup) };
try {
  const { url } = await testDatabase(scope, 'PostgreSQL');
  await fill(url);
  const plain = await PostgresServer.make(values.binaries);
  cleanups.push(() => plain[Symbol.asyncDispose]());
  await fill(plain.url());
  const [worker = ''] = onWorkers(url);
  await using without = await Session.open(plain.url());
  await using planned = await Session.open(worker);
  await using ofShard = await Session.open(worker);
  const map = await ofShard.map();
  const rows = [];
  for (const read of reads) {
    const figures = await measure(read, [
      [without, () => undefined],
      [planned, () => undefined],
      [ofShard, ({ store }) => map.shardOfStore(store)],
    ]);
    rows.push([read[0], ...figures.map(formatNumber)]);
  }
  console.log(table(['CPU µs of the server', 'PostgreSQL', 'Citus', 'shard'], rows));
} finally {
  for (const cleanup of cleanups.toReversed()) await cleanup();
}
