/**
 * A PostgreSQL server on this computer that a test did not start, such as a machine of a Citus cluster. Its
 * processes are found through SQL, so that they can be paused, killed, started again and cut off.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, existsSync, readFileSync, readlinkSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { query } from './postgres.ts';
import { until } from './until.ts';

/** Throws if the server is on another computer, or if the test may not signal its processes. */
export async function machineOf(url: string): Promise<Machine> {
  const [row] = await query(url, `SELECT current_setting('data_directory') AS folder`);
  const { folder } = row as { folder: string }; // the selected column
  return new Machine(url, folder);
}

export class Machine {
  /** HOST:PORT, by which a cluster names it. */
  readonly host: string;
  /** The address of a database on it. */
  readonly url: string;
  /** The data directory. */
  readonly folder: string;
  readonly #binaries: string;
  /** The file to which it logs. */
  readonly #log: string;
  readonly #environment: NodeJS.ProcessEnv;
  /** Processes that are stopped by pause(). */
  #paused: readonly number[] = [];
  /** The setting that configure() has changed. */
  #configured: string | undefined;

  constructor(url: string, folder: string) {
    this.url = url;
    this.host = new URL(url).host;
    this.folder = folder;
    const { pid, port } = this.#postmaster();
    const expected = new URL(url).port;
    if (port !== expected) throw new Error(`${folder} is of port ${port}, not ${expected}`);
    process.kill(pid, 0);
    this.#binaries = dirname(readlinkSync(`/proc/${pid}/exe`));
    this.#environment = environmentOf(pid);
    const log = readlinkSync(`/proc/${pid}/fd/2`);
    this.#log = log.startsWith('/') ? log : '/dev/null'; // otherwise it is a pipe or a terminal
  }

  /** Stops all its processes with SIGSTOP. The kernel still accepts connections. */
  pause(): void {
    const { pid } = this.#postmaster();
    process.kill(pid, 'SIGSTOP'); // first, so that it starts no more
    const children = childrenOf(pid);
    for (const child of children) signal(child, 'SIGSTOP');
    this.#paused = [...children, pid];
  }

  /** Continues after pause(). Does nothing if it is not paused. */
  resume(): void {
    for (const pid of this.#paused) signal(pid, 'SIGCONT');
    this.#paused = [];
  }

  /** Kills all its processes with SIGKILL. Resolves when they are gone. */
  async kill(): Promise<void> {
    this.pause();
    const pids = this.#paused;
    this.#paused = [];
    for (const pid of pids) signal(pid, 'SIGKILL');
    await until(`${this.host} is dead`, () => !pids.some(isAlive));
  }

  /** Starts it as its owner after kill(), with the options and the environment that it had. Resolves when it accepts connections. */
  async start(): Promise<void> {
    await this.#pgCtl('restart', '-w', '-D', this.folder, '-l', this.#log);
  }

  /** Starts a copy of its folder on another port, after kill(). */
  async startCopy(port: number): Promise<AsyncDisposable> {
    const folder = `${this.folder}-copy`;
    // Not cpSync(): it would give the files to root.
    execFileSync('cp', ['--archive', this.folder, folder]);
    await this.#pgCtl('start', '-w', '-D', folder, '-l', this.#log, '-o', `-p ${port}`);
    return {
      [Symbol.asyncDispose]: async () => {
        await this.#pgCtl('stop', '-D', folder, '-m', 'immediate');
        rmSync(folder, { recursive: true });
      },
    };
  }

  async #pgCtl(...args: readonly string[]): Promise<void> {
    const { uid, gid } = statSync(this.folder);
    const command = spawn(join(this.#binaries, 'pg_ctl'), args, {
      uid,
      gid,
      cwd: this.folder,
      env: this.#environment, // with the HOME of root, it could not read certificates
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let printed = '';
    for (const stream of [command.stdout, command.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk) => (printed += String(chunk)));
    }
    const ended: unknown[] = await once(command, 'exit');
    if (ended[0] === 0) return;
    throw new Error(`pg_ctl ${args.join(' ')}: ${ended.join(' ')}: ${printed} See ${this.#log}.`);
  }

  /** Changes a setting while it is not running. */
  configure(setting: string, value: string): void {
    appendFileSync(join(this.folder, 'postgresql.auto.conf'), `${setting} = ${value}\n`);
    this.#configured = setting;
  }

  /** Undoes configure(). It must be running. */
  async resetConfiguration(): Promise<void> {
    if (this.#configured === undefined) return;
    const url = new URL(this.url);
    url.pathname = '/postgres'; // the database of a test can be dropped
    await query(url.href, `ALTER SYSTEM RESET ${this.#configured}`);
    await query(url.href, 'SELECT pg_reload_conf()');
    this.#configured = undefined;
  }

  /** Ends every fault. */
  async restore(): Promise<void> {
    this.resume();
    if (!cannotDropPackets()) this.reconnect();
    if (!isAlive(this.#postmaster().pid)) await this.start();
    await this.resetConfiguration();
  }

  /** Drops all packets to and from its port. */
  cutOff(): void {
    for (const rule of this.#dropRules()) execFileSync('iptables', ['--insert', ...rule]);
  }

  /** Ends cutOff(). Does nothing if it is not cut off. */
  reconnect(): void {
    for (const rule of this.#dropRules()) {
      while (spawnSync('iptables', ['--delete', ...rule]).status === 0); // until there is none left
    }
  }

  #dropRules(): string[][] {
    const { port } = new URL(this.url);
    return ['--dport', '--sport'].map((side) =>
      `INPUT -i lo -p tcp ${side} ${port} -j DROP`.split(' '),
    );
  }

  /** From postmaster.pid, which lists the process, the data directory, the time of the start and the port. */
  #postmaster(): { pid: number; port: string } {
    const lines = readFileSync(join(this.folder, 'postmaster.pid'), 'utf8').split('\n');
    return { pid: Number(lines[0]), port: lines[3] ?? '' };
  }
}

/** The reason why packets cannot be dropped, or false. */
export function cannotDropPackets(): string | false {
  const { error, status } = spawnSync('iptables', ['--list', 'INPUT']);
  if (error !== undefined) return 'iptables is not installed';
  return status === 0 ? false : 'needs the right to use iptables';
}

function environmentOf(pid: number): NodeJS.ProcessEnv {
  const variables = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').filter(Boolean);
  return Object.fromEntries(variables.map((variable) => variable.split(/=(.*)/s, 2)));
}

/** PostgreSQL starts all its processes from the main thread of the postmaster. */
function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    .split(' ')
    .filter(Boolean)
    .map(Number);
}

/** A process that has ended meanwhile is no error. */
function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** A dead process counts as alive until its parent has waited for it: PostgreSQL does not start before that. */
function isAlive(pid: number): boolean {
  return existsSync(`/proc/${pid}`);
}
