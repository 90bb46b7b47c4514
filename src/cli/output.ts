/**
 * Standard output and standard error of the commands. A command fails if its output cannot be written.
 */
// oxlint-disable no-console -- everything else prints with these functions
import { fstatSync, writeFileSync } from 'node:fs';
import { printableJson, shownOn } from './printable.ts';

export function print(text: string): void {
  console.log(shownOn(process.stdout, text));
}

export function printError(text: string): void {
  console.error(shownOn(process.stderr, text));
}

/** Prints the result of a command: `value` as one line of JSON with --json, otherwise the text for people. */
export function printResult(
  { json }: { json?: true | undefined },
  value: object,
  text: string,
): void {
  print(json ? printableJson(value) : text);
}

/** Call it before anything is printed. */
export function failWhenOutputIsLost(): void {
  const { stdout } = process;
  // Without a listener, console.log() ignores the error. Only the first one is reported.
  stdout.once('error', reportLostOutput).on('error', () => {});
  // For a file, Node writes once and ignores a short write, for example on a full disk.
  // oxlint-disable-next-line no-underscore-dangle -- the method that a stream writes with (stream.Writable)
  if (fstatSync(stdout.fd).isFile()) stdout._write = writeAll;
}

function reportLostOutput(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') return; // the reader closed the pipe on purpose, as `head` does
  process.exitCode = 1;
  printError(`error: Cannot write the output: ${error.message}.`);
}

function writeAll(chunk: Buffer, _encoding: string, done: (error?: Error) => void): void {
  try {
    writeFileSync(process.stdout.fd, chunk);
    done();
  } catch (error) {
    done(error as Error); // node:fs throws only errors of the system
  }
}
