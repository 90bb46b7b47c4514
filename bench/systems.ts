/**
 * The systems that are compared. Each runs as its own process:
 *
 * - service: the package as production installs it
 * - bare: node:http without a storage (bare.ts)
 * - synced log: bare with a synced log, for changes only (synced-log.ts)
 * - typical: the same API as it is usually written (peers/server.js)
 */
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Seeded, Store } from './seed.ts';
import { launch, run } from './workspace.ts';
import type { Load } from './wrk.ts';

export type StorageName = 'sqlite' | 'postgres';
export type SystemName = 'service' | 'bare' | 'synced log' | 'typical';

interface System {
  name: SystemName;
  /** The requests that it supports; undefined for all. */
  requests?: readonly Load['requests'][];
  /** The arguments of node that start it. */
  args(seeded: Seeded): readonly string[];
  /** Its data on disk; undefined if it stores nothing. */
  store(seeded: Seeded): Store | undefined;
}

export interface Running extends AsyncDisposable {
  name: SystemName;
  requests: System['requests'];
  address: string;
  pid: number;
  store: Store | undefined;
}

const root = fileURLToPath(new URL('..', import.meta.url));
const bareServer = join(import.meta.dirname, 'bare.ts');
const peersFolder = join(import.meta.dirname, 'peers');
const quietly = '--loglevel=error';

const bare: System = { name: 'bare', args: () => [bareServer], store: () => undefined };

function syncedLogIn(folder: string): System {
  const file = join(folder, 'synced.log');
  return {
    name: 'synced log',
    requests: ['create', 'update', 'delete'],
    args: () => [bareServer, file],
    // It responds to any delete, so it needs no disposable plants.
    store: () => ({ address: file, addDisposable: () => {}, trim: () => truncateSync(file) }),
  };
}

function typicalOn(storage: StorageName): System {
  const server = { sqlite: 'server.js', postgres: 'postgres.js' }[storage];
  return {
    name: 'typical',
    args: ({ typical: { address } }) => [join(peersFolder, server), address],
    store: (seeded) => seeded.typical,
  };
}

/** The service, started from this executable file. */
export function serviceAt(executable: string): System {
  return {
    name: 'service',
    args: ({ service: { address } }) => [
      executable,
      'serve',
      '--port=0',
      '--log-level=warn',
      `--database=${address}`,
    ],
    store: (seeded) => seeded.service,
  };
}

/** Installs the service into `folder`, and the packages of its peers into their own folder. */
export async function install(folder: string, storage: StorageName): Promise<System[]> {
  await run('npm', ['pack', quietly, '--pack-destination', folder], root);
  const [tarball = ''] = readdirSync(folder).filter((file) => file.endsWith('.tgz'));
  const packed = [join(folder, tarball), ...(storage === 'postgres' ? [driver()] : [])];
  await run('npm', ['install', quietly, '--omit=dev', '--prefix', folder, ...packed]);
  await installPeers();
  const service = serviceAt(join(folder, 'node_modules/plant-store/bin/plant-store.js'));
  return [service, bare, syncedLogIn(folder), typicalOn(storage)];
}

/** The PostgreSQL driver, an optional dependency of the package, in the version that the tests use. */
function driver(): string {
  const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  return `pg@${devDependencies.pg}`;
}

async function installPeers(): Promise<void> {
  const lockFile = join(peersFolder, 'package-lock.json');
  const installed = join(peersFolder, 'node_modules', '.package-lock.json');
  const isCurrent =
    existsSync(installed) && statSync(installed).mtimeMs > statSync(lockFile).mtimeMs;
  if (!isCurrent) await run('npm', ['ci', quietly, '--prefix', peersFolder]);
}

/** Starts a system and waits until it prints its URL. Disposal sends SIGTERM. */
export async function start(system: System, seeded: Seeded): Promise<Running> {
  const child = launch(process.execPath, system.args(seeded));
  const closed = once(child, 'close');
  const { pid } = child;
  for await (const line of createInterface({ input: child.stdout })) {
    const [, address] = /listens on (\S+)$/.exec(line) ?? [];
    if (address === undefined || pid === undefined) continue;
    return {
      name: system.name,
      requests: system.requests,
      address,
      pid,
      store: system.store(seeded),
      async [Symbol.asyncDispose]() {
        child.kill();
        await closed;
      },
    };
  }
  throw new Error(`${system.name} exited before it listened`);
}
