/**
 * Many connections that send one request after another, from a thread of its own: what it costs to send
 * them must not show in what the test measures meanwhile.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { makeToken } from '../../src/token.ts';

export interface FloodOptions {
  port: number;
  /** Where it comes from. */
  localAddress: string;
  connections: number;
  /** Requests that each connection sends at once. */
  depth: number;
  target: string;
  /** Whether each request carries another token that nobody has made. */
  withUnknownToken: boolean;
}

/** How many answers each status has had. */
export type Answers = Record<string, number>;

export class Flood {
  readonly #worker: Worker;

  private constructor(worker: Worker) {
    this.#worker = worker;
  }

  /** Resolves when all its connections have had their first answers. */
  static async start(options: FloodOptions): Promise<Flood> {
    const worker = new Worker(new URL(import.meta.url), { workerData: options });
    await message(worker);
    return new Flood(worker);
  }

  async stop(): Promise<Answers> {
    this.#worker.postMessage('stop');
    const answers = await message(this.#worker);
    await this.#worker.terminate();
    return answers as Answers; // the second message of flood()
  }
}

function message(worker: Worker): Promise<unknown> {
  return new Promise((resolve, reject) => {
    worker.once('message', resolve).once('error', reject);
  });
}

/** Of `HTTP/1.1 200`. */
const statusLineChars = 12;

async function flood(options: FloodOptions): Promise<void> {
  const { port, localAddress, connections, depth, target, withUnknownToken } = options;
  const answers: Answers = {};
  let begun = 0;
  const requests = () =>
    Array.from({ length: depth }, () => {
      const token = withUnknownToken ? `Authorization: Bearer ${makeToken()}\r\n` : '';
      return `GET ${target} HTTP/1.1\r\nHost: x\r\n${token}\r\n`;
    }).join('');
  const begin = (socket: Socket) => {
    let left = depth;
    let isFirst = true;
    let text = '';
    socket.setEncoding('latin1').on('data', (chunk: unknown) => {
      text += String(chunk);
      let end = 0;
      for (const { 1: status = '', 0: line, index } of text.matchAll(/HTTP\/1\.1 (\d{3})/g)) {
        answers[status] = (answers[status] ?? 0) + 1;
        left--;
        end = index + line.length;
      }
      text = text.slice(Math.max(end, text.length - statusLineChars)); // it may have come in part
      if (left > 0) return;
      left = depth;
      if (isFirst && ++begun === connections) parentPort?.postMessage('all have answers');
      isFirst = false;
      socket.write(requests());
    });
    socket.write(requests());
  };
  // One after another, because a server has room for some that it has not accepted yet.
  const sockets: Socket[] = [];
  for (let at = 0; at < connections; at++) {
    const socket = connect({ port, host: '127.0.0.1', localAddress });
    await once(socket, 'connect');
    socket.on('error', () => {}); // it closes as well
    sockets.push(socket);
  }
  for (const socket of sockets) begin(socket);
  parentPort?.once('message', () => parentPort?.postMessage(answers));
}

if (!isMainThread) await flood(workerData as FloodOptions);
