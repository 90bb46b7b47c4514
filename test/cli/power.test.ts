/**
 * The power fails at random moments, and nothing that was acknowledged is lost: what is left of the files has every
 * acknowledged change in its log, and has what its log says.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { scopes } from '../../src/access/access.ts';
import { changeEvents } from '../../src/log/change-log.ts';
import { openDatabase } from '../../src/sqlite/file/open.ts';
import { call } from '../support/app.ts';
import { run, runOk, serve, type Outcome, type Service } from '../support/command.ts';
import { soundIds } from '../support/database.ts';
import { Disk, readLog, type DiskEvent } from '../support/disk.ts';
import { without } from '../support/programs.ts';
import { seededRandom } from '../support/random.ts';
import { firstSeed } from '../support/rounds.ts';
import { diskFolder, tempFolder } from '../support/temp.ts';

const source = fileURLToPath(new URL('../support/power-cut.c', import.meta.url));

it(`no acknowledged change is lost (PLANT_STORE_TEST_SEED=${firstSeed})`, async (t) => {
  const its = await machine(t);
  if (its === undefined) return;
  const service = await its.serve();
  await work(its, service, 60);
  assert.equal(await service.stop(), 0);
  const events = its.events();
  assert.deepEqual(await faultsOf(t, its, events, { seed: firstSeed, count: 30, served: 1 }), []);

  const control = await faultsOf(t, its, events, {
    seed: firstSeed,
    count: 20,
    ignoresSyncs: true,
  });
  assert.ok(control.length > 0, 'a disk that ignores syncs is detected');
  t.diagnostic(`30 images, 0 faults; of 20 without syncs, ${control.length} lost something`);
});

/** The failures to inject with power-cut.c. */
type Faults = Partial<Record<'POWER_CUT_FAIL' | 'POWER_CUT_LIMIT', string>>;

/** The service in a folder whose every change is logged. */
export interface Machine {
  token: string;
  /** The tag of every plant that was sent, by its name. */
  sent: Map<string, string>;
  /** The name of every plant that was created, by its id. */
  names: Map<number, string>;
  /** What the log has of each acknowledged change, and when the client knew of it. */
  acknowledged: { entry: string; atNs: bigint }[];
  serve: (faults?: Faults) => Promise<Service>;
  /** A command that does no more than open the database. */
  migrate: (faults?: Faults) => Promise<Outcome>;
  /** What has happened to the files so far. */
  events: () => DiskEvent[];
}

/** An empty database whose folder is logged from the start; undefined if that cannot be done here. */
export async function machine(t: TestContext): Promise<Machine | undefined> {
  const missing = process.platform === 'linux' ? without('cc') : 'power-cut.c needs Linux';
  if (missing !== false) {
    t.skip(missing);
    return undefined;
  }
  const place = realpathSync(diskFolder(t));
  const library = join(place, 'power-cut.so');
  const build = ['-shared', '-fPIC', '-O1', '-o', library, source, '-ldl', '-lpthread'];
  const { status, stderr } = spawnSync('cc', build, { encoding: 'utf8' });
  assert.equal(status, 0, stderr);

  const folder = join(place, 'folder');
  const log = join(place, 'log');
  mkdirSync(folder);
  const env = { LD_PRELOAD: library, POWER_CUT_FOLDER: folder, POWER_CUT_LOG: log };
  const url = `sqlite:${join(folder, 'plants.db')}`;
  const create = ['token', 'create', 'alice', '--scope', scopes.join(), '--database', url];
  const token = await runOk(create, { env });
  const link = join(place, 'link.db'); // SQLite puts its WAL beside the file and not beside a link to it
  symlinkSync(join(folder, 'plants.db'), link);
  return {
    token,
    sent: new Map(),
    names: new Map(),
    acknowledged: [],
    serve: (faults) => serve(t, ['--database', `sqlite:${link}`], { env: { ...env, ...faults } }),
    migrate: (faults) => run(['migrate', '--database', url], { env: { ...env, ...faults } }),
    events: () => readLog(log),
  };
}

/** Creates plants, shares, and deletes some of them, until `count` were sent or the service is gone. */
export async function work(its: Machine, { address }: Service, count: number, clients = 4) {
  const { sent, names, token } = its;
  let left = count;
  const request = (method: string, path: string, json?: object) =>
    call(address + path, method, { token, json }).catch(() => undefined);
  const acknowledge = (entry: string) =>
    its.acknowledged.push({ entry, atNs: process.hrtime.bigint() });

  async function share(user: string, isEnded: boolean): Promise<void> {
    const path = `/shares/${encodeURIComponent(user)}`;
    if ((await request('PUT', path, { access: 'read' }))?.status !== 201) return;
    acknowledge(`shared ${user}`);
    if (!isEnded || (await request('DELETE', path))?.status !== 204) return;
    acknowledge(`share-ended ${user}`);
  }

  async function client(): Promise<void> {
    while (left-- > 0) {
      const number = sent.size + 1;
      const [name, tag] = [`plant ${number} ${'🌵'.repeat(number % 80)}`, `t${number % 7}`];
      sent.set(name, tag);
      const created = await request('POST', '/plants?fields=id', { name, tag });
      if (created === undefined) return;
      if (created.status !== 201) continue;
      const { id } = created.json as { id: number }; // the service has sent it
      names.set(id, name);
      acknowledge(`created ${id}`);
      if (number % 4 === 0) await share(`friend ${number}`, number % 8 === 0);
      if (number % 3 !== 0 || (await request('DELETE', `/plants/${id}`))?.status !== 204) continue;
      acknowledge(`deleted ${id}`);
    }
  }
  await Promise.all(Array.from({ length: clients }, client));
}

interface Cuts {
  seed: number;
  count: number;
  /** How many of the images are also looked at through the whole service; none if undefined. */
  served?: number;
  /** The numbers of the first and the last event that a cut can follow; all if undefined. */
  from?: number;
  to?: number;
  ignoresSyncs?: boolean;
}

/**
 * Cuts the power at random moments and checks what is left each time. Returns what is wrong, a line for
 * each image that lost something acknowledged or is damaged.
 */
export async function faultsOf(
  t: TestContext,
  its: Machine,
  events: readonly DiskEvent[],
  { seed, count, served = 0, from = 1, to = events.length, ignoresSyncs = false }: Cuts,
): Promise<string[]> {
  const random = seededRandom(seed);
  const cuts = Array.from({ length: count }, () => {
    return from + Math.floor(random() * (to + 1 - from));
  }).toSorted((one, other) => one - other);
  const disk = new Disk({ ignoresSyncs });
  const image = join(tempFolder(t), 'image');
  const faults: string[] = [];
  for (const [at, event] of events.entries()) {
    disk.apply(event);
    for (; cuts[0] === at + 1; cuts.shift()) {
      rmSync(image, { recursive: true, force: true });
      mkdirSync(image);
      disk.cut(image, random);
      // What was acknowledged before the next event began was acknowledged before the cut.
      const cutNs = events[at + 1]?.atNs ?? process.hrtime.bigint();
      try {
        if (random() < served / count) await useService(t, its, image, cutNs);
        checkImage(image, its, cutNs);
      } catch (error) {
        faults.push(`cut after event ${at + 1} (seed ${seed}): ${String(error)}`);
      }
    }
  }
  return faults;
}

/** Throws if the service does not show what the image has, or assigns an id again. */
async function useService(t: TestContext, its: Machine, folder: string, cutNs: bigint) {
  if (its.acknowledged.every(({ atNs }) => atNs >= cutNs)) return; // the token may not be there either
  const { token } = its;
  const path = join(folder, 'plants.db');
  const service = await serve(t, ['--database', `sqlite:${path}`]);
  const plants = `${service.address}/plants?fields=id`;
  const before = await call(plants, 'GET', { token });
  its.sent.set('next', '');
  const next = await call(plants, 'POST', { token, json: { name: 'next' } });
  assert.deepEqual([before.status, next.status], [200, 201], service.log());
  assert.equal(await service.stop(), 0);
  const ids = [...(before.json as { id: number }[]), next.json as { id: number }];
  assert.deepEqual(
    ids.map(({ id }) => id),
    soundIds(path),
  );
}

/** Throws if the files are damaged, lack an acknowledged change, or do not have what their log says. */
function checkImage(folder: string, its: Machine, cutNs: bigint): void {
  const acknowledged = its.acknowledged.filter(({ atNs }) => atNs < cutNs);
  const path = join(folder, 'plants.db');
  if (!existsSync(path)) return assert.equal(acknowledged.length, 0, 'there is no database');
  const ids = soundIds(path);
  using database = openDatabase(path, { create: false });
  const log = new Set<string>();
  for (const { event, subject } of database
    .prepare('SELECT event, coalesce(plant, name) AS subject FROM changes')
    .all()) {
    log.add(`${changeEvents[Number(event)]} ${String(subject)}`);
  }
  const entries = new Set(acknowledged.map(({ entry }) => entry));
  assert.deepEqual(entries.difference(log), new Set(), 'lost');

  const logged = (event: string) =>
    [...log].flatMap((entry) =>
      entry.startsWith(`${event} `) ? entry.slice(event.length + 1) : [],
    );
  const left = (began: string, ended: string) =>
    logged(began).filter((subject) => !log.has(`${ended} ${subject}`));
  const idsLeft = left('created', 'deleted').map(Number);
  assert.deepEqual(
    ids,
    idsLeft.toSorted((a, b) => a - b),
    'the plants are those of the log',
  );
  const shares = database.prepare('SELECT user_name AS user FROM shares').all();
  const users = shares.map(({ user }) => String(user));
  assert.deepEqual(new Set(users), new Set(left('shared', 'share-ended')));
  for (const { id, name, tag } of database.prepare('SELECT id, name, tag FROM plants').all()) {
    assert.equal(its.sent.get(String(name)), tag, 'the plant was sent');
    if (entries.has(`created ${Number(id)}`)) assert.equal(its.names.get(Number(id)), name);
  }
  const { last } = database.prepare('SELECT max(last_id) AS last FROM stores').get() ?? {};
  const largest = Math.max(0, ...logged('created').map(Number));
  assert.ok(Number(last) >= largest, `${largest} can be assigned again`);
}
