/**
 * Where a command reads and prints, and its exit status. A command fails if its output cannot be written.
 */
import { once } from 'node:events';
import { fstatSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { PassThrough, type Readable, type Writable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { printable } from '../client/printable.ts';
import { Refusal, UsageError } from '../refusal.ts';
import { refuseUnreadable } from './errors.ts';
import { fitTables, printableJson, shownOn, tableOf, type Rows } from './terminal.ts';

export interface Io {
  stdin: Readable & { isTTY?: boolean };
  stdout: Writable & { isTTY?: boolean; columns?: number; fd?: number };
  stderr: Writable & { isTTY?: boolean };
}

/** The streams of the current command: those of the process, unless a test runs it. */
export let io: Io = process;
let status = 0;

/** Runs a command, one at a time. Resolves to its exit status. */
export async function runWith(streams: Io, command: () => Promise<void>): Promise<number> {
  io = streams;
  status = 0;
  fitTables(io.stdout);
  failWhenOutputIsLost(io);
  io.stderr.on('error', () => {}); // losing messages, or the log of the service, must not stop the command
  await command();
  await new Promise((resolve) => io.stdout.write('', resolve)); // an error shows up only now
  return status;
}

/** Sets the exit status, unless it is set. The command continues. */
export function failWith(failure: number): void {
  status ||= failure;
}

export function print(text: string): void {
  io.stdout.write(`${shownOn(io.stdout, text)}\n`);
}

/** Prints texts as fast as the reader reads. Returns early if the output is lost, which `runWith` reports. */
export async function printAll(texts: AsyncIterable<string>): Promise<void> {
  const { stdout } = io;
  let isLost = false;
  stdout.once('error', () => (isLost = true));
  for await (const text of texts) {
    const isFull = !stdout.write(shownOn(stdout, text));
    if (isFull && !isLost) await once(stdout, 'drain').catch(() => {}); // an error ends the wait too
    if (isLost) return;
  }
}

export function printError(text: string): void {
  io.stderr.write(`${shownOn(io.stderr, text)}\n`);
}

/** Whether standard error is a terminal with a cursor that escape sequences move. */
export function takesEscapes(): boolean {
  return io.stderr.isTTY === true && process.env['TERM'] !== 'dumb';
}

/** The result of a command: `value` as JSON, and the text for people. */
export interface Result {
  value: object;
  text: string;
}

/** A list as a result: a table with these columns for people, and as JSON `values`. */
export function listed<Column extends string>(
  columns: readonly Column[],
  rows: Rows<Column>,
  values: readonly object[] = rows,
): Result {
  return { value: values, text: tableOf(columns, rows) };
}

/** Returns the action of a command: it prints what `work` returns. */
export function printed<Args extends unknown[]>(work: (...args: Args) => Promise<Result>) {
  return async function action(
    this: { opts(): { json?: true | undefined } },
    ...args: Args
  ): Promise<void> {
    const { value, text } = await work(...args);
    print(this.opts().json ? printableJson(value) : text);
  };
}

/** Reads a file, or standard input for `-`. Rejects with a Refusal that says what could not be read. */
export async function readInput(what: string, file: string): Promise<Buffer> {
  const reading = file === '-' ? buffer(io.stdin) : readFile(file);
  return reading.catch(refuseUnreadable(`${what} from ${file}`));
}

/** Asks a question on the terminal. Refuses with `advice` unless the answer is yes. Without a terminal, nobody is asked: false. */
export async function confirm(question: string, advice: string): Promise<boolean> {
  if (!io.stdin.isTTY || !io.stderr.isTTY) return false;
  if (/^\s*y(es)?\s*$/i.test(await ask(`${question} [y/N] `))) return true;
  throw new Refusal(advice);
}

/** Reads a line from a terminal. The prompt is on standard error, because the output can be captured: TOKEN=$(...). */
export async function ask(prompt: string, { isSecret = false } = {}): Promise<string> {
  // For a secret, Node reads the keys, and shows them nowhere: before the prompt, so that nothing is typed too early.
  const shown = isSecret ? { output: new PassThrough().resume(), terminal: true } : {};
  const lines = createInterface({ input: io.stdin, ...shown });
  io.stderr.write(printable(prompt));
  try {
    for await (const line of lines) return line;
    if (!isSecret) io.stderr.write('\n'); // after Ctrl-D, the cursor is still behind the prompt
    return '';
  } finally {
    lines.close(); // otherwise the terminal keeps the process running
    if (isSecret) io.stderr.write('\n');
  }
}

/** Refuses unless a person on the terminal agrees, or `yes`. `action` is what the person is asked for. */
export async function agree(yes: boolean, question: string, action: string): Promise<void> {
  if (yes || (await confirm(question, 'Nothing was changed.'))) return;
  throw new UsageError(
    `Nothing was changed, because there is no terminal to ask on. Pass --yes to ${action}.`,
  );
}

function failWhenOutputIsLost({ stdout }: Io): void {
  stdout.once('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') return; // the reader closed the pipe on purpose, as `head` does
    failWith(1);
    printError(`error: Cannot write the output: ${error.message}.`);
  });
  stdout.on('error', () => {}); // only the first error is reported
  const { fd } = stdout;
  if (fd === undefined || !fstatSync(fd).isFile()) return;
  // For a file, Node writes once and ignores a short write, for example on a full disk.
  // oxlint-disable-next-line no-underscore-dangle -- the method that a stream writes with (stream.Writable)
  stdout._write = (chunk: Buffer, _encoding, done) => {
    try {
      writeFileSync(fd, chunk);
      done();
    } catch (error) {
      done(error as Error); // node:fs throws only errors of the system
    }
  };
}
