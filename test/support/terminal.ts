/**
 * A shell and a service in an empty folder, which run the examples of the documentation unchanged.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { SqliteStorage } from '../../src/sqlite/storage.ts';
import { executable } from './command.ts';
import { tempFolder } from './temp.ts';

const curl = fileURLToPath(new URL('./curl.ts', import.meta.url));
const client = fileURLToPath(new URL('../../src/client', import.meta.url));

export const shownAddress = 'http://127.0.0.1:8080';
/** Of a program of the reader. */
const shownPort = /(?<=127\.0\.0\.1:|listen\()3000\b/g;
export const shownFolder = '/home/you/plant-store';

type Cleanup = Pick<TestContext, 'after'>;

export class Terminal {
  readonly #test: Cleanup;
  readonly #folder: string;
  readonly #port: number;
  readonly #env: Record<string, string>;
  readonly #shell: ChildProcess;
  readonly #shellClosed: Promise<unknown>;
  readonly #output: () => string;
  #service: Service | undefined;
  #commands = 0;

  constructor(t: Cleanup, port: number) {
    this.#test = t;
    this.#port = port;
    t.after(() => this.#close()); // before the folders are deleted
    this.#folder = tempFolder(t);
    // Programs can import the client, as after `npm install`.
    mkdirSync(join(this.#folder, 'node_modules'));
    symlinkSync(client, join(this.#folder, 'node_modules/plant-store-client'));
    const tools = tempFolder(t);
    // In a checkout, `npx plant-store` runs this executable. This script saves the start of npx.
    const npx = `#!/bin/sh\n[ "$1" = plant-store ] || exit 127\nshift\nexec '${process.execPath}' '${executable}' "$@"\n`;
    writeFileSync(join(tools, 'npx'), npx);
    chmodSync(join(tools, 'npx'), 0o755);
    if (spawnSync('curl', ['--version']).error !== undefined) {
      writeFileSync(join(tools, 'curl'), `#!/bin/sh\nexec '${process.execPath}' '${curl}' "$@"\n`);
      chmodSync(join(tools, 'curl'), 0o755);
    }
    // curl shows its progress if its output is a pipe, as here, but not on a terminal.
    writeFileSync(join(tools, '.curlrc'), 'silent\nshow-error\n');
    this.#env = {
      PATH: `${tools}:${dirname(process.execPath)}:${process.env['PATH']}`,
      CURL_HOME: tools,
      HOME: tools,
      no_proxy: '*',
      LC_ALL: 'C.UTF-8',
    };
    this.#shell = spawn('sh', { cwd: this.#folder, env: this.#env, detached: true });
    this.#output = collect(this.#shell);
    this.#shell.stdin?.write('exec 2>&1\n');
    this.#shellClosed = once(this.#shell, 'close');
  }

  /** Runs a command to its end and returns its output. Throws if it fails. */
  async run(command: string): Promise<string> {
    const marker = `end of command ${++this.#commands}:`;
    const start = this.#output().length;
    this.#shell.stdin?.write(
      `${this.#withAddress(command)}\nprintf '\\n%s %s\\n' '${marker}' "$?"\n`,
    );
    const pattern = new RegExp(`\\n${marker} (\\d+)\\n`);
    const [printed, status] = await untilPrinted(this.#shell, this.#output, pattern);
    const output = printed.slice(start).replace(pattern, '');
    assert.equal(status, '0', `${command} ended with ${status}: ${output}`);
    return this.#shown(output);
  }

  async createDatabase(): Promise<void> {
    await using _ = new SqliteStorage(join(this.#folder, 'plant-store.db'), { create: true });
  }

  /** Writes a file to the folder, with the actual address of the service. */
  write(name: string, content: string): void {
    writeFileSync(join(this.#folder, name), this.#withAddress(content));
  }

  /** Starts the service on a free port, and returns its output until it listens. */
  async startService({ tty, flags = '' }: { tty: boolean; flags?: string }): Promise<string> {
    await this.stopService();
    const command = `echo $$; exec '${process.execPath}' '${executable}' serve --port 0 ${flags} 2>&1`;
    const onTerminal =
      process.platform === 'darwin'
        ? ['-q', '/dev/null', 'sh', '-c', command]
        : ['-qec', command, '/dev/null'];
    const child = tty
      ? spawn('script', onTerminal, { cwd: this.#folder, env: this.#env })
      : spawn('sh', ['-c', command], { cwd: this.#folder, env: this.#env });
    const closed = once(child, 'close');
    this.#test.after(() => child.kill('SIGKILL')); // in case it never listens
    const output = collect(child);
    const [all, pid] = await untilPrinted(child, output, /^(\d+)[^]*\blistening\b.*\r?\n/);
    const printed = all.slice(all.indexOf('\n') + 1);
    const [, address = ''] = /listens on (\S+)/.exec(printed) ?? [];
    this.#service = { address, pid: Number(pid), closed };
    // A reader's service keeps its port after a restart. Here, the variable of the reader gets the new one.
    this.#shell.stdin?.write(`[ -z "$PLANT_STORE_URL" ] || PLANT_STORE_URL='${address}'\n`);
    return this.#shown(printed);
  }

  get isServiceRunning(): boolean {
    return this.#service !== undefined;
  }

  async stopService(): Promise<void> {
    if (this.#service === undefined) return;
    process.kill(this.#service.pid, 'SIGTERM'); // not the child, which can be a shell
    await this.#service.closed;
    this.#service = undefined;
  }

  async #close(): Promise<void> {
    await this.stopService();
    const { pid, exitCode } = this.#shell;
    if (pid !== undefined && exitCode === null) process.kill(-pid, 'SIGKILL'); // also what runs in the background
    await this.#shellClosed;
  }

  #withAddress(text: string): string {
    return text
      .replaceAll(shownAddress, this.#service?.address ?? shownAddress)
      .replaceAll(shownPort, String(this.#port));
  }

  #shown(text: string): string {
    return text.replaceAll(this.#folder, shownFolder);
  }
}

interface Service {
  address: string;
  pid: number;
  closed: Promise<unknown>;
}

function collect(child: ChildProcess): () => string {
  let text = '';
  child.stdout?.setEncoding('utf8').on('data', (chunk) => (text += String(chunk)));
  return () => text;
}

/** Resolves to all output, and to the first group of the pattern, when the output matches. */
function untilPrinted(
  child: ChildProcess,
  output: () => string,
  pattern: RegExp,
): Promise<[printed: string, group: string]> {
  return new Promise((resolve, reject) => {
    const check = () => {
      const [, group] = pattern.exec(output()) ?? [];
      if (group === undefined) return;
      child.stdout?.off('data', check);
      child.off('close', onClose);
      resolve([output(), group]);
    };
    const onClose = () => reject(new Error(`The process ended: ${output()}`));
    child.stdout?.on('data', check);
    child.once('close', onClose);
    check();
  });
}
