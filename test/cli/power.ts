/**
 * A service whose writes and syncs are logged, clients that note what they are told, and what is left
 * of its folder when the power fails.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, realpathSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openDatabase } from '../../src/sqlite/database.ts';
import { call } from '../support/app.ts';
import { runOk, serve, type Service } from '../support/command.ts';
import { Disk, randomBy, readLog, type DiskEvent } from '../support/disk.ts';
import { tempFolder } from '../support/temp.ts';

const source = fileURLToPath(new URL('../support/power-cut.c', import.meta.url));
const clients = 4;

/** A plant that somebody sent, and when; undefined for what has not happened. */
interface Sent {
  name: string;
  tag: string;
  id?: number;
  createdNs?: bigint;
  deleteSentNs?: bigint;
  deletedNs?: bigint;
}

export interface Machine {
  url: string;
  token: string;
  /** Every plant that was sent, by its name. */
  sent: Map<string, Sent>;
  /** Starts the service; `fail` is POWER_CUT_FAIL of power-cut.c. */
  serve: (options?: { fail?: string; args?: readonly string[] }) => Promise<Service>;
  /** What has happened to the files so far. */
  events: () => DiskEvent[];
}

/** An empty database whose folder is logged from the start; undefined if there is no C compiler. */
export async function machine(t: TestContext): Promise<Machine | undefined> {
  if (spawnSync('cc', ['--version']).status !== 0) {
    t.skip('there is no C compiler (cc) to build test/support/power-cut.c with');
    return undefined;
  }
  const place = realpathSync(tempFolder(t));
  const library = join(place, 'power-cut.so');
  const build = ['-shared', '-fPIC', '-O1', '-o', library, source, '-ldl', '-lpthread'];
  const { status, stderr } = spawnSync('cc', build, { encoding: 'utf8' });
  assert.equal(status, 0, stderr);

  const folder = join(place, 'folder');
  const log = join(place, 'log');
  mkdirSync(folder);
  const env = { LD_PRELOAD: library, POWER_CUT_FOLDER: folder, POWER_CUT_LOG: log };
  const url = `sqlite:${join(folder, 'plants.db')}`;
  const token = await runOk(['token', 'create', 'alice', '--database', url], { env });
  return {
    url,
    token,
    sent: new Map(),
    serve: ({ fail, args = [] } = {}) =>
      serve(t, ['--database', url, '--log-level', 'error', ...args], {
        env: { ...env, ...(fail !== undefined && { POWER_CUT_FAIL: fail }) },
      }),
    events: () => readLog(log),
  };
}

/** Creates plants and deletes some of them, until `count` were created or the service is gone. */
export async function work({ sent, token }: Machine, { address }: Service, count: number) {
  let left = count;
  const request = (method: string, path: string, json?: object) =>
    call(address + path, method, { token, ...(json && { json }) }).catch(() => undefined);

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
      if (number % 3 !== 0) continue;
      plant.deleteSentNs = process.hrtime.bigint();
      const deleted = await request('DELETE', `/plants/${plant.id}`);
      if (deleted?.status === 204) plant.deletedNs = process.hrtime.bigint();
    }
  }
  await Promise.all(Array.from({ length: clients }, client));
}

export interface Cuts {
  seed: number;
  count: number;
  /** The number of the first event that a cut can follow. */
  from?: number;
  ignoresSyncs?: boolean;
}

/**
 * Cuts the power at random moments and checks what is left each time. Returns what is wrong, a line for
 * each image that lost something acknowledged or is damaged.
 */
export async function faultsOf(
  t: TestContext,
  { sent }: Machine,
  events: readonly DiskEvent[],
  { seed, count, from = 1, ignoresSyncs = false }: Cuts,
): Promise<string[]> {
  const random = randomBy(seed);
  const cuts = Array.from({ length: count }, () => {
    return from + Math.floor(random() * (events.length + 1 - from));
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
      const fault = faultOf(image, sent.values(), events[at + 1]?.atNs ?? process.hrtime.bigint());
      if (fault !== undefined) faults.push(`cut after event ${at + 1} (seed ${seed}): ${fault}`);
    }
  }
  return faults;
}

function faultOf(folder: string, sent: Iterable<Sent>, cutNs: bigint): string | undefined {
  const before = (ns: bigint | undefined) => ns !== undefined && ns < cutNs;
  const path = join(folder, 'plants.db');
  if (!existsSync(path)) {
    return [...sent].some(({ createdNs }) => before(createdNs))
      ? 'there is no database'
      : undefined;
  }
  const found = new Map<unknown, unknown>();
  let lastId: number;
  try {
    using database = openDatabase(path, { create: false });
    const check = database.prepare('PRAGMA integrity_check').get();
    if (check?.['integrity_check'] !== 'ok') return `damaged: ${JSON.stringify(check)}`;
    for (const { id, name, tag } of database.prepare('SELECT id, name, tag FROM plants').all()) {
      found.set(name, `${String(id)} ${String(tag)}`);
    }
    lastId = Number(database.prepare('SELECT max(last_id) AS last FROM stores').get()?.['last']);
  } catch (error) {
    return `damaged: ${String(error)}`;
  }
  const faults: string[] = [];
  for (const { id, name, tag, createdNs, deleteSentNs, deletedNs } of sent) {
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
