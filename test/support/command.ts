/**
 * Runs the commands: in this process, which is cheap, or as separate processes.
 */
import { spawn, type ChildProcess, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { Readable, Writable } from 'node:stream';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { main } from '../../src/cli/main.ts';

export const executable = fileURLToPath(new URL('../../bin/plant-store.js', import.meta.url));

export interface Outcome {
  status: number | null;
  stdout: string;
  stderr: string;
}

export interface RunOptions {
  cwd?: string;
  env?: Record<string, string>;
  /** User id to run as, because root bypasses file permissions. */
  uid?: number;
  /** The executable of another version of the program. */
  program?: string;
  /** Standard input; empty if there is none. */
  input?: string;
  /** In this process only: whether the streams say that they are a terminal. */
  isTerminal?: boolean;
  /** With `runHere` only: called with each piece of output, before the command continues. */
  onOutput?: (text: string) => void;
  /** A wrapper command, such as `strace`. */
  under?: readonly string[];
  /** File descriptors that the process gets as from systemd (sd_listen_fds(3)). They stay open in this process. */
  sockets?: readonly number[];
}

/**
 * Runs a command to its end. It runs in this process unless `options` are about a process of its own. Commands in
 * this process take turns, so a test of commands at the same time uses `runProcess`.
 */
export async function run(args: readonly string[], options: RunOptions = {}): Promise<Outcome> {
  const { cwd, env = {}, input, isTerminal, ...ofProcess } = options;
  const needsProcess =
    args[0] === 'serve' ||
    Object.keys(ofProcess).length > 0 ||
    !Object.keys(env).every((name) => /^(?:PLANT_STORE_|XDG_CONFIG_HOME$)/.test(name));
  return needsProcess
    ? runProcess(args, options)
    : runHere(args, {
        env,
        ...(cwd !== undefined && { cwd }),
        ...(input && { input }),
        ...(isTerminal && { isTerminal }),
      });
}

let lastRun: Promise<unknown> = Promise.resolve();

/** Runs a command in this process: also `serve`, if its arguments are refused. Once it stops, it kills a process that lasts. */
export async function runHere(
  args: readonly string[],
  options: Pick<RunOptions, 'cwd' | 'env' | 'input' | 'isTerminal' | 'onOutput'> = {},
): Promise<Outcome> {
  const outcome = lastRun.then(() => runNow(args, options));
  lastRun = outcome.catch(() => {});
  return outcome;
}

async function runNow(
  args: readonly string[],
  {
    cwd,
    env = {},
    input = '',
    isTerminal = false,
    onOutput = () => {},
  }: Parameters<typeof runHere>[1] & object,
): Promise<Outcome> {
  const [before, folder] = [process.env, process.cwd()];
  if (cwd !== undefined) process.chdir(cwd);
  process.env = { ...withoutSettings(before), ...env };
  const [stdout, stderr] = [collector(onOutput), collector(onOutput)];
  try {
    const stdin = Readable.from(input === '' ? [] : [Buffer.from(input)]);
    const streams = { stdin, stdout, stderr };
    for (const stream of Object.values(streams)) Object.assign(stream, { isTTY: isTerminal });
    const status = await main([process.execPath, executable, ...args], streams);
    return { status, stdout: stdout.text(), stderr: stderr.text() };
  } finally {
    process.env = before;
    process.chdir(folder);
  }
}

function collector(onOutput: (text: string) => void) {
  const chunks: Buffer[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk);
      onOutput(chunk.toString());
      done();
    },
  });
  return Object.assign(stream, { text: () => Buffer.concat(chunks).toString() });
}

/** Runs a command to its end, in a process of its own. */
export async function runProcess(
  args: readonly string[],
  options: RunOptions = {},
): Promise<Outcome> {
  const child = start(args, options);
  const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)];
  const [status] = (await once(child, 'close')) as [number | null];
  return { status, stdout: await stdout, stderr: await stderr };
}

/** Runs a command and returns its trimmed standard output. Throws if it fails. */
export async function runOk(args: readonly string[], options: RunOptions = {}): Promise<string> {
  const { status, stdout, stderr } = await run(args, options);
  if (status !== 0)
    throw new Error(`plant-store ${args.join(' ')} ended with ${status}: ${stderr}`);
  return stdout.trim();
}

export interface Service {
  address: string;
  child: ChildProcess;
  /** Standard output so far. */
  output(): string;
  /** Standard error so far, which has the log. */
  log(): string;
  /** Resolves to the exit status, or null after a signal. */
  ended: Promise<number | null>;
  /** Sends a signal, by default SIGTERM, and waits for the exit. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

/** Starts `serve` on a free port and waits until it listens. Kills it after the test. */
export async function serve(
  t: Pick<TestContext, 'after'>,
  args: readonly string[],
  options: RunOptions = {},
): Promise<Service> {
  const child = start(['serve', '--port', '0', ...args], options);
  const closed = once(child, 'close') as Promise<[number | null]>;
  const ended = closed.then(([status]) => status);
  t.after(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  let logged = '';
  child.stderr.setEncoding('utf8').on('data', (chunk) => (logged += String(chunk)));
  let printed = '';
  const address = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      printed += `${line}\n`;
      const [, found] = /^Plant Store listens on (\S+)$/.exec(line) ?? [];
      if (found !== undefined) resolve(found);
    });
    void ended.then(() => reject(new Error(`serve ended: ${printed}${logged}`)));
  });
  return {
    address,
    child,
    output: () => printed,
    log: () => logged,
    ended,
    async stop(signal = 'SIGTERM') {
      child.kill(signal);
      return ended;
    },
  };
}

/** Starts a command. The caller waits for its exit. */
export function start(args: readonly string[], options: RunOptions = {}) {
  const { cwd, env, uid, program = executable, under = [], input, sockets = [] } = options;
  const passing = ['sh', '-c', `LISTEN_PID=$$ LISTEN_FDS=${sockets.length} exec "$0" "$@"`];
  const [command, ...rest] = [
    ...(sockets.length > 0 ? passing : []),
    ...under,
    process.execPath,
    program,
    ...args,
  ];
  const child = spawn(command ?? '', rest, {
    env: { ...withoutSettings(process.env), ...env },
    ...(cwd !== undefined && { cwd }),
    ...(uid !== undefined && { uid, gid: uid }),
    stdio: ['pipe', 'pipe', 'pipe', ...sockets],
  }) as ChildProcessWithoutNullStreams; // of the first three
  child.stdin.on('error', () => {}).end(input); // a command can end before it has read everything
  return child;
}

/** Settings of the test run, and where its user is signed in, must not affect the tests. */
function withoutSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const others = Object.entries(env).filter(([name]) => !name.startsWith('PLANT_STORE_'));
  return { ...Object.fromEntries(others), XDG_CONFIG_HOME: '/nowhere' };
}

async function collect(stream: NodeJS.ReadableStream): Promise<string> {
  const chunks: string[] = [];
  stream.setEncoding('utf8');
  for await (const chunk of stream) chunks.push(String(chunk));
  return chunks.join('');
}
