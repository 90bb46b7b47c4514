/**
 * Standard output of the commands: when it cannot be written, the command has failed.
 */
import { fstatSync, writeFileSync } from 'node:fs';

/** Call it before anything is printed. */
export function failWhenOutputIsLost(): void {
  const { stdout } = process;
  // Without a listener, console.log() ignores the error. One message is enough.
  stdout.once('error', outputLost).on('error', () => {});
  // Node writes to a file once, and ignores it when only a part fits on the disk.
  // oxlint-disable-next-line no-underscore-dangle -- what a stream writes with (stream.Writable)
  if (fstatSync(stdout.fd).isFile()) stdout._write = writeWhole;
}

function outputLost(error: NodeJS.ErrnoException): void {
  process.exitCode = 1;
  if (error.code === 'EPIPE') return; // the reader has enough, as `head` does
  console.error(`error: The output cannot be written: ${error.message}.`);
}

function writeWhole(chunk: Buffer, _encoding: string, done: (error?: Error) => void): void {
  try {
    writeFileSync(process.stdout.fd, chunk);
    done();
  } catch (error) {
    done(error as Error); // of the system: node:fs throws nothing else
  }
}
