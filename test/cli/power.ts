/**
 * A service whose writes and syncs are logged, clients that record their responses, and what is left
 * of its folder when the power fails.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { scopes } from '../../src/access/access.ts';
import type { Plant } from '../../src/plants/plant.ts';
import { openDatabase } from '../../src/sqlite/file/open.ts';
import { call } from '../support/app.ts';
import { run, runOk, serve, type Outcome, type Service } from '../support/command.ts';
import { Disk, readLog, type DiskEvent } from '../support/disk.ts';
import { seededRandom } from '../support/random.ts';
import { diskFolder, tempFolder } from '../support/temp.ts';
import { without } from '../support/programs.ts';

const source = fileURLToPath(new URL('../support/power-cut.c', import.meta.url));
/** A plant that a client sent, and when; undefined for what has not happened. */
interface Sent {
  name: string;
  tag: string;
  id?: number;
  createdNs?: bigint;
  deleteSentNs?: bigint;
  deletedNs?: bigint;
}

/** A share by the user of the plants, whose name is that of the receiver. */
type SentShare = Pick<Sent, 'name' | 'createdNs' | 'deleteSentNs' | 'deletedNs'>;

/** The failures to inject with power-cut.c. */
type Faults = Partial<Record<'POWER_CUT_FAIL' | 'POWER_CUT_LIMIT', string>>;

/** The service in a folder whose every change is logged. */
export interface Machine {
  token: string;
  /** Every plant that was sent, by its name. */
  sent: Map<string, Sent>;
  /** Every share that was sent, by its receiver. */
  shares: Map<string, SentShare>;
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
    shares: new Map(),
    serve: (faults) => serve(t, ['--database', `sqlite:${link}`], { env: { ...env, ...faults } }),
    migrate: (faults) => run(['migrate', '--database', url], { env: { ...env, ...faults } }),
    events: () => readLog(log),
  };
}

/** Creates plants, shares, and deletes some of them, until `count` were created or the service is gone. */
export async function work(
  { sent, shares, token }: Machine,
  { address }: Service,
  count: number,
  clients = 4,
) {
  let left = count;
  const request = (method: string, path: string, json?: object) =>
    call(address + path, method, { token, ...(json && { json }) }).catch(() => undefined);

  async function share(name: string, isEnded: boolean): Promise<void> {
    const sentShare: SentShare = { name };
    shares.set(name, sentShare);
    const path = `/shares/${encodeURIComponent(name)}`;
    const given = await request('PUT', path, { access: 'read' });
    if (given?.status !== 201) return;
    sentShare.createdNs = process.hrtime.bigint();
    if (!isEnded) return;
    sentShare.deleteSentNs = process.hrtime.bigint();
    const ended = await request('DELETE', path);
    if (ended?.status === 204) sentShare.deletedNs = process.hrtime.bigint();
  }

  async function client(): Promise<void> {
    while (left-- > 0) {
      const number = sent.size + 1;
      const plant: Sent = {
        name: `plant ${number} ${'🌵'.repeat(number % 80)}`,
        tag: `t${number % 7}`,
      };
      sent.set(plant.name, plant);
      const { name, tag } = plant;
      const created = await request('POST', '/plants?fields=id', { name, tag });
      if (created === undefined) return;
      if (created.status !== 201) continue;
      plant.createdNs = process.hrtime.bigint();
      plant.id = (created.json as { id: number }).id;
      if (number % 4 === 0) await share(`friend ${number}`, number % 8 === 0);
      if (number % 3 !== 0) continue;
      plant.deleteSentNs = process.hrtime.bigint();
      const deleted = await request('DELETE', `/plants/${plant.id}`);
      if (deleted?.status === 204) plant.deletedNs = process.hrtime.bigint();
    }
  }
  await Promise.all(Array.from({ length: clients }, client));
}

/**
 * Runs the service again and again, on a disk that fails most of the time, and ends it with and without
 * a kill. The disk of the last service is sound. Returns how each of them ended.
 */
export async function live(its: Machine, services: number, random: () => number) {
  const below = (max: number) => Math.floor(random() * max);
  const ends: string[] = [];
  for (let left = services - 1; left >= 0; left--) {
    const [suffix, maxNth] =
      [
        ['-wal', 30],
        ['-wal', 2],
        ['.db', 2],
      ][below(3)] ?? [];
    const nth = 1 + below(Number(maxNth));
    const steps = [0, below(80), -1][below(3)]; // until the kill; -1 for none
    const fail = left > 0 && random() < 0.75 ? `${suffix}:${nth}:${steps}` : undefined;
    let end: number | string | null;
    try {
      const service = await its.serve(fail === undefined ? {} : { POWER_CUT_FAIL: fail });
      await work(its, service, 20 + below(40));
      end = await service.stop(random() < 0.5 ? 'SIGKILL' : 'SIGTERM');
    } catch (error) {
      // It was killed at the start, or refused to start.
      assert.match(String(error), /serve ended: ($|error: .* cannot be synced)/);
      end = 'not started';
    }
    assert.ok([0, 3, null, 'not started'].includes(end), `it ended with ${end}`);
    ends.push(`${fail ?? 'sound'} ${end ?? 'killed'}`);
  }
  return ends;
}

export interface Cuts {
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
      const isServed = random() < served / count;
      const fault =
        (isServed ? await faultServed(t, its, image, cutNs) : undefined) ??
        faultOf(image, its, cutNs);
      if (fault !== undefined) faults.push(`cut after event ${at + 1} (seed ${seed}): ${fault}`);
    }
  }
  return faults;
}

/** What a client of a service on the image finds wrong: with its list, and with the next id. */
async function faultServed(t: TestContext, its: Machine, folder: string, cutNs: bigint) {
  const isThere = ({ createdNs, deleteSentNs }: Sent) =>
    createdNs !== undefined && createdNs < cutNs && !(deleteSentNs && deleteSentNs < cutNs);
  const expected = [...its.sent.values()].filter(isThere);
  if (expected.length === 0) return undefined; // the token may not be there either
  const service = await serve(t, ['--database', `sqlite:${join(folder, 'plants.db')}`]);
  const url = `${service.address}/plants?fields=id,name,tag`;
  const list = await call(url, 'GET', { token: its.token });
  const next = await call(url, 'POST', { token: its.token, json: { name: 'next' } });
  assert.deepEqual([list.status, next.status], [200, 201], service.log());
  const { id, name } = next.json as Plant;
  its.sent.set(name, { name, tag: '' });
  assert.equal(await service.stop(), 0);
  const found = new Map((list.json as Plant[]).map((plant) => [plant.id, plant]));
  const lost = expected.find((one) => {
    const plant = found.get(Number(one.id));
    return plant?.name !== one.name || plant.tag !== one.tag;
  });
  if (lost !== undefined) return `${lost.id} is lost for a client`;
  return expected.some((one) => Number(one.id) >= id) ? `${id} is assigned again` : undefined;
}

function faultOf(folder: string, its: Machine, cutNs: bigint): string | undefined {
  const before = (ns: bigint | undefined) => ns !== undefined && ns < cutNs;
  const path = join(folder, 'plants.db');
  if (!existsSync(path)) {
    return its.sent.values().some(({ createdNs }) => before(createdNs))
      ? 'there is no database'
      : undefined;
  }
  const found = new Map<unknown, unknown>();
  const foundShares = new Set<unknown>();
  let lastId: number;
  try {
    using database = openDatabase(path, { create: false });
    const check = database.prepare('PRAGMA integrity_check').get();
    if (check?.['integrity_check'] !== 'ok') return `damaged: ${JSON.stringify(check)}`;
    for (const { id, name, tag } of database.prepare('SELECT id, name, tag FROM plants').all()) {
      found.set(name, `${String(id)} ${String(tag)}`);
    }
    for (const share of database.prepare('SELECT user_name FROM shares').all()) {
      foundShares.add(share['user_name']);
    }
    lastId = Number(database.prepare('SELECT max(last_id) AS last FROM stores').get()?.['last']);
  } catch (error) {
    return `damaged: ${String(error)}`;
  }
  const faults: string[] = [];
  for (const { name, createdNs, deleteSentNs, deletedNs } of its.shares.values()) {
    const isShared = foundShares.delete(name);
    if (before(createdNs) && !before(deleteSentNs) && !isShared)
      faults.push(`the share with ${name} is lost`);
    if (before(deletedNs) && isShared) faults.push(`the share with ${name} is back`);
  }
  if (foundShares.size > 0) faults.push(`${foundShares.size} shares were never sent`);
  for (const { id, name, tag, createdNs, deleteSentNs, deletedNs } of its.sent.values()) {
    if (before(createdNs) && !before(deleteSentNs) && found.get(name) !== `${id} ${tag}`) {
      faults.push(`${id} is lost`);
    }
    if (before(deletedNs) && found.has(name)) faults.push(`${id} is back`);
    if (before(createdNs) && lastId < Number(id)) faults.push(`${id} can be assigned again`);
    found.delete(name);
  }
  if (found.size > 0) faults.push(`${found.size} plants were never sent`);
  return faults.length > 1 ? `${faults[0]}, and ${faults.length - 1} faults more` : faults[0];
}

/** Starts the service once more, and cuts the power while it starts and serves. Nothing acknowledged is lost. */
export async function restartAndCut(
  t: TestContext,
  its: Machine,
  cuts: { seed: number; count: number },
): Promise<void> {
  const from = its.events().length;
  const service = await its.serve();
  await work(its, service, 40);
  const events = its.events();
  // The start itself is when it is most delicate.
  assert.deepEqual(await faultsOf(t, its, events, { ...cuts, from, to: from + 40 }), []);
  assert.deepEqual(await faultsOf(t, its, events, { ...cuts, from }), []);
}
