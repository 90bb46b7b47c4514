/**
 * Runs a command on a terminal of its own, as a person would.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { TestContext } from 'node:test';
import { executable } from './command.ts';
import { until } from './until.ts';
import { without } from './programs.ts';

export interface OnTerminal {
  /** Everything that the terminal has shown so far, both output and what was typed. */
  output(): string;
  /** Waits until the terminal shows this. */
  shows(what: RegExp, timeoutMs?: number): Promise<void>;
  type(keys: string): void;
  /** Resolves to the exit status. */
  ended: Promise<number | null>;
}

/** For a shell: the executable, in quotes. */
export const quotedExecutable = `'${process.execPath}' '${executable}'`;

/** Undefined, and the test is skipped, without the program `script` of util-linux. */
export function startOnTerminal(
  t: TestContext,
  command: string,
  cwd?: string,
): OnTerminal | undefined {
  const missing = process.platform === 'linux' ? without('script') : 'needs script of util-linux';
  if (missing !== false) {
    t.skip(missing);
    return undefined;
  }
  const child = spawn('script', ['-qfec', `stty cols 500; ${command}`, '/dev/null'], {
    env: { ...process.env, SHELL: '/bin/sh' }, // shells differ in what Ctrl+C does to them
    ...(cwd !== undefined && { cwd }),
  });
  const closed = once(child, 'close') as Promise<[number | null]>;
  t.after(async () => {
    child.kill('SIGKILL'); // which closes the terminal and ends what runs there
    await closed;
  });
  let printed = '';
  child.stdout.setEncoding('utf8').on('data', (chunk) => (printed += String(chunk)));
  const output = () => printed.replaceAll('\r\n', '\n');
  return {
    output,
    shows: (what, timeoutMs) =>
      until(`the terminal shows ${what}`, () => what.test(output()), timeoutMs),
    type: (keys) => child.stdin.write(keys),
    ended: closed.then(([status]) => status),
  };
}
