/**
 * Machines of a Citus cluster hang, die and disappear from the network while two replicas are under load:
 * `npm run test:citus`, with the variables of test/support/citus.ts. Stores on other machines must not notice. The
 * machines must be on this computer. No other program may use the cluster meanwhile.
 */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { addToken, call } from '../support/app.ts';
import { isCitus, onWorkers } from '../support/citus.ts';
import { run, runOk, serve } from '../support/command.ts';
import { ClusterUnderLoad, notLocal, type Report } from '../support/cluster-under-load.ts';
import { cannotDropPackets, machineOf, type Machine } from '../support/machine.ts';
import { query } from '../support/postgres.ts';
import { testDatabase } from '../support/storages.ts';
import { until } from '../support/until.ts';

assert.ok(isCitus, 'PLANT_STORE_TEST_CITUS_WORKERS names no workers');

const quietMs = 20_000;
const faultMs = 30_000;
const maxRecoveryMs = 5_000;
/** The time in which each recovery is measured. */
const recoveryTimeoutMs = 60_000;
/** How long writes are tried on an unsafe worker. */
const unsafeMs = 8_000;
const tryEachMs = 50;
const tokensAtOnce = 8;
const tokensBeforeCrash = 20;
const crashes = 5;
/** Among so many stores, some are on each worker. */
const storesToFind = 30;
const maxBad = 0.01;
const maxSlower = 3;
/** Below this, the scheduling of the processes of this computer decides. */
const minQuietP99Ms = 10;
/** The longest response time in any state of the database: docs/how-to/replicas.md. */
const maxResponseMs = 12_000;

const skip = await notLocal();

describe('Citus: stores on other machines are not affected', { skip }, () => {
  for (const [what, begin, end, cannot] of [
    ['hangs for 30 s', (worker) => worker.pause(), (worker) => worker.resume(), false],
    ['is killed', (worker) => worker.kill(), (worker) => worker.start(), false],
    [
      'is cut off: its packets are dropped',
      (worker) => worker.cutOff(),
      (worker) => worker.reconnect(),
      cannotDropPackets(),
    ],
  ] satisfies [string, Fault['begin'], Fault['end'], string | false][]) {
    it(`a worker that ${what}`, { skip: cannot }, async (t) => {
      const { failed } = await oneFails(t, {
        select: ({ workers: [worker = assert.fail()] }) => worker,
        begin,
        end,
        recovery: (cluster, worker) => cluster.recovery(worker, recoveryTimeoutMs),
      });
      const { slowestMs, late } = failed;
      assert.ok(slowestMs < maxResponseMs, `a response took ${slowestMs} ms`);
      assert.ok(late < maxBad, `of the responses of its stores, this part came late: ${late}`);
    });
  }

  for (const fault of ['kill', 'pause'] as const) {
    it(`the coordinator after ${fault}`, async (t) => {
      await oneFails(t, {
        select: ({ coordinator }) => coordinator,
        begin: (coordinator) => coordinator[fault](),
        end: (coordinator) => coordinator.restore(),
        /** Until a new store can be created. */
        async recovery({ env }) {
          const startedMs = performance.now();
          const create = ['token', 'create', 'new', '--store', 'new'];
          const creates = async () => (await run(create, { env })).status === 0;
          await until('a new store can be created', creates, maxRecoveryMs);
          return performance.now() - startedMs;
        },
      });
    });
  }
});

/** How long a command waits for hosts of its address that do not answer (hosts.ts). */
const surveyMs = 1_000;

describe('Citus: while another machine is down', { skip }, () => {
  for (const fault of ['kill', 'pause'] as const)
    it(`a token is listed and revoked at once, after ${fault}`, async (t) => {
      await using cluster = await ClusterUnderLoad.start(t);
      const [failed, other] = cluster.workers;
      assert.ok(failed && other);
      const [store] = cluster.storesOn(other);
      assert.ok(store);
      const make = () => addToken(cluster.storage, 'robin', { store: store.name });
      const tokens = [await make(), await make()];
      const list = ['token', 'list', '--json', '--store', store.name];
      const timed = async (args: string[]) => {
        const startedMs = performance.now();
        const stdout = await runOk(args, { env: cluster.env });
        return { stdout, tookMs: performance.now() - startedMs };
      };
      const idsOf = (stdout: string) =>
        // The documented output of `token list --json`.
        (JSON.parse(stdout) as { id: string; user: string; state: string }[])
          .filter(({ user, state }) => user === 'robin' && state === 'active')
          .map(({ id }) => id);
      const statuses = (token: string) =>
        Promise.all(
          cluster.addresses.map(
            async (address) => (await call(`${address}/plants?limit=1`, 'GET', { token })).status,
          ),
        );

      const quiet = await timed(list);
      const [id = ''] = idsOf(quiet.stdout);
      for (const token of tokens) assert.deepEqual(await statuses(token), [200, 200]);
      await failed[fault]();
      const listed = await timed(list);
      assert.equal(idsOf(listed.stdout).length, 2);
      const revoked = await timed(['token', 'revoke', id]);
      describeTo(t, { quietMs: quiet.tookMs, listMs: listed.tookMs, revokeMs: revoked.tookMs });
      const remaining = async () => {
        const all = await Promise.all(tokens.map(statuses));
        return all.filter((each) => each.every((status) => status === 200)).length;
      };
      await until('both replicas refuse the token', async () => (await remaining()) === 1, 1_000);
      const maxMs = 3 * quiet.tookMs + surveyMs;
      assert.ok(listed.tookMs < maxMs, `${listed.tookMs} ms`);
      assert.ok(revoked.tookMs < maxMs, `${revoked.tookMs} ms`);
    });
});

describe('Citus: a worker that comes back', { skip }, () => {
  it('without synchronous_commit acknowledges no write', async (t) => {
    await using cluster = await ClusterUnderLoad.start(t);
    const [worker] = cluster.workers;
    assert.ok(worker);
    await worker.kill();
    await cluster.addReplica(); // it has never seen the worker
    worker.configure('synchronous_commit', 'off');
    await worker.start();
    /** The statuses of a create in each store of the worker through each replica. */
    const create = () =>
      Promise.all(
        cluster.addresses.flatMap((address) =>
          cluster.storesOn(worker).map(async ({ users: [{ token } = assert.fail()] }) => {
            const json = { name: 'unsafe' };
            return (await call(`${address}/plants`, 'POST', { token, json })).status;
          }),
        ),
      );
    const acknowledged: number[] = [];
    const untilMs = performance.now() + unsafeMs;
    while (performance.now() < untilMs) {
      acknowledged.push(...(await create()).filter((status) => status < 400));
      await pause(tryEachMs);
    }
    assert.equal(acknowledged.length, 0, 'writes were acknowledged');
    await worker.resetConfiguration();
    const works = async () => (await create()).every((status) => status === 201);
    await until('every store accepts writes', works, maxRecoveryMs);
  });

  it('after a copy of it has taken its place acknowledges no write', async (t) => {
    const database = await testDatabase(t, 'PostgreSQL');
    const storage = await database.open();
    const stores = Array.from({ length: storesToFind }, (_, at) => `store ${at}`);
    const tokens = await Promise.all(stores.map((store) => addToken(storage, 'alice', { store })));
    await storage[Symbol.asyncDispose]();
    const [url = ''] = onWorkers(database.url);
    const worker = await machineOf(url);
    const { hostname, port } = new URL(url);
    const newPort = Number(port) + 100;
    await worker.kill();
    await using _ = await worker.startCopy(newPort);
    await query(
      database.url,
      `SELECT citus_update_node(nodeid, '${hostname}', ${newPort}, true) FROM pg_dist_node
       WHERE nodename = '${hostname}' AND nodeport = ${port}`,
    );
    await worker.start();
    // Its own map is from before its failure: it has its place and its stores.
    const outdatedFirst = database.url.replace(
      /@[^/]+/,
      `@${worker.host},${new URL(database.url).host}`,
    );
    const { address } = await serve(t, ['--database', outdatedFirst]);
    const created = await Promise.all(
      tokens.map((token) => call(`${address}/plants`, 'POST', { token, json: { name: 'kept' } })),
    );
    assert.deepEqual(new Set(created.map(({ status }) => status)), new Set([201]));
    const [row] = await query(
      database.url,
      'SELECT count(*)::int AS plants FROM plant_store.plants',
    );
    assert.deepEqual(row, { plants: stores.length });
  });

  it('leaves no store locked if it crashed while tokens were made', async (t) => {
    await using cluster = await ClusterUnderLoad.start(t);
    const [worker] = cluster.workers;
    assert.ok(worker);
    const stopping = new AbortController();
    let made = 0;
    const make = async (number: number) => {
      for (let at = 0; !stopping.signal.aborted; at++) {
        const store = at % 2 === 0 ? `new ${number} ${at}` : cluster.storesOn(worker)[0]?.name;
        // It fails while the worker is down.
        await addToken(cluster.storage, `user ${number} ${at}`, { store: store ?? '' }).then(
          () => made++,
          () => pause(10),
        );
      }
    };
    const makers = Array.from({ length: tokensAtOnce }, (_, number) => make(number));
    const lockedMs: number[] = [];
    try {
      for (let round = 0; round < crashes; round++) {
        const before = made;
        await until('tokens are made', () => made > before + tokensBeforeCrash);
        await worker.kill();
        await worker.start();
        lockedMs.push(await cluster.recovery(worker, recoveryTimeoutMs));
        const left = await query(worker.url, 'SELECT gid, prepared FROM pg_prepared_xacts');
        describeTo(t, { made, lockedMs, left });
      }
    } finally {
      stopping.abort();
      await Promise.all(makers);
    }
    assert.ok(Math.max(...lockedMs) < maxRecoveryMs, `locked for ${lockedMs.join()} ms`);
  });
});

interface Fault {
  select: (cluster: ClusterUnderLoad) => Machine;
  begin: (machine: Machine) => void | Promise<void>;
  end: (machine: Machine) => void | Promise<void>;
  /** Resolves to the milliseconds until what the machine does is possible again. */
  recovery: (cluster: ClusterUnderLoad, machine: Machine) => Promise<number>;
}

/** One machine fails for a while, and the stores on the others do not notice. */
async function oneFails(t: TestContext, { select, begin, end, recovery }: Fault): Promise<Report> {
  await using cluster = await ClusterUnderLoad.start(t);
  const machine = select(cluster);
  await pause(quietMs);
  const faultAtMs = performance.now();
  await begin(machine);
  await pause(faultAtMs + faultMs - performance.now());
  const endMs = performance.now();
  const newReplicaMs = await cluster.addReplica();
  await end(machine);
  const recoveryMs = await recovery(cluster, machine);
  const report = await cluster.report(faultAtMs, endMs, machine);
  describeTo(t, { ...report, newReplicaMs, recoveryMs });
  assertOthersServed(report);
  assert.ok(newReplicaMs < Infinity, 'a new replica is ready while a machine is down');
  assert.ok(recoveryMs < maxRecoveryMs, `recovered after ${recoveryMs} ms`);
  return report;
}

function assertOthersServed({ falseAnswers, faults, readiness, others }: Report): void {
  assert.deepEqual(falseAnswers, []);
  assert.deepEqual(faults, []);
  assert.deepEqual(readiness, { 200: readiness[200] }, 'the replicas are ready');
  for (const [kind, { bad, quietP99Ms, p99Ms }] of Object.entries(others)) {
    assert.ok(bad <= maxBad, `${kind}s of other stores that failed: ${bad}`);
    const bound = maxSlower * Math.max(quietP99Ms, minQuietP99Ms);
    assert.ok(p99Ms <= bound, `p99 of ${kind}s of other stores: ${p99Ms} ms`);
  }
}

function describeTo(t: TestContext, facts: object): void {
  const rounded = (_key: string, value: unknown) =>
    typeof value === 'number' ? Number(value.toPrecision(3)) : value;
  t.diagnostic(JSON.stringify(facts, rounded));
}
