/**
 * The commands, run as processes the way that people run them.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';

export const executable = fileURLToPath(new URL('../../bin/plant-store.js', import.meta.url));

export interface Outcome {
  status: number | null;
  stdout: string;
  stderr: string;
}

export interface RunOptions {
  cwd?: string;
  env?: Record<string, string>;
  /** User id to run as, for what root may do and others may not. */
  uid?: number;
  /** The executable of another version of the program. */
  program?: string;
  /** A command that runs it, such as `strace`. */
  under?: readonly string[];
}

/** Runs a command to its end. */
export async function run(args: readonly string[], options: RunOptions = {}): Promise<Outcome> {
  const child = start(args, options);
  const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)];
  const [status] = (await once(child, 'close')) as [number | null];
  return { status, stdout: await stdout, stderr: await stderr };
}

/** Runs a command that is expected to succeed and returns its standard output, trimmed. */
export async function runOk(args: readonly string[], options: RunOptions = {}): Promise<string> {
  const { status, stdout, stderr } = await run(args, options);
  if (status !== 0)
    throw new Error(`plant-store ${args.join(' ')} ended with ${status}: ${stderr}`);
  return stdout.trim();
}

export interface Service {
  address: string;
  child: ChildProcess;
  /** What it has printed so far. */
  output(): string;
  /** What it has logged so far. */
  log(): string;
  /** Its exit status, once it has ended. */
  ended: Promise<number | null>;
  /** Sends SIGTERM and waits for the end. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

/** Starts `serve` on a free port and waits until it listens; it is ended with the test. */
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

/** Starts a command; the caller waits for its end. */
export function start(args: readonly string[], options: RunOptions = {}) {
  const { cwd, env, uid, program = executable, under = [] } = options;
  const [command, ...rest] = [...under, process.execPath, program, ...args];
  return spawn(command ?? '', rest, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...withoutSettings(process.env), ...env },
    ...(cwd !== undefined && { cwd }),
    ...(uid !== undefined && { uid, gid: uid }),
  });
}

/** The variables of whoever runs the tests must not change what they show. */
function withoutSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(env).filter(([name]) => !name.startsWith('PLANT_STORE_')),
  );
}

async function collect(stream: NodeJS.ReadableStream): Promise<string> {
  const chunks: string[] = [];
  stream.setEncoding('utf8');
  for await (const chunk of stream) chunks.push(String(chunk));
  return chunks.join('');
}
