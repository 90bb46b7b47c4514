/**
 * Standard output of the commands. A command fails if its output cannot be written.
 */
import { fstatSync, writeFileSync } from 'node:fs';

/** Prints the result of a command: `value` as one line of JSON with --json, otherwise the text for people. */
export function printResult(
  { json }: { json?: true | undefined },
  value: object,
  text: string,
): void {
  console.log(json ? JSON.stringify(value) : text);
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
  process.exitCode = 1;
  if (error.code === 'EPIPE') return; // the reader closed the pipe on purpose, as `head` does
  console.error(`error: Cannot write the output: ${error.message}.`);
}

function writeAll(chunk: Buffer, _encoding: string, done: (error?: Error) => void): void {
  try {
    writeFileSync(process.stdout.fd, chunk);
    done();
  } catch (error) {
    done(error as Error); // node:fs throws only errors of the system
  }
}
