/**
 * Many connections that send requests without a pause. They run on a separate thread, so that sending does not
 * affect the test's measurements.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { makeToken } from '../../src/access/token.ts';

export interface FloodOptions {
  port: number;
  /** The source address of the connections. */
  localAddress: string;
  connections: number;
  /** Requests that each connection has in flight. */
  depth: number;
  target: string;
  /** The token of all requests. */
  token?: string;
  /** Whether each request has a different unknown token. */
  withUnknownToken?: boolean;
  /** Further sockets that connect and immediately close, each once per second. */
  reconnecting?: number;
}

/** Number of responses by status. */
export type ResponseCounts = Record<string, number>;

export class Flood {
  readonly #worker: Worker;

  private constructor(worker: Worker) {
    this.#worker = worker;
  }

  /** Resolves when all connections have received their first responses, and the other sockets reconnect. Ends the flood after the test. */
  static async start(t: Pick<TestContext, 'after'>, options: FloodOptions): Promise<Flood> {
    const worker = new Worker(new URL(import.meta.url), { workerData: options });
    t.after(() => worker.terminate());
    await message(worker);
    return new Flood(worker);
  }

  async stop(): Promise<ResponseCounts> {
    this.#worker.postMessage('stop');
    const counts = await message(this.#worker);
    await this.#worker.terminate();
    return counts as ResponseCounts; // the second message of flood()
  }
}

function message(worker: Worker): Promise<unknown> {
  return new Promise((resolve, reject) => {
    worker.once('message', resolve).once('error', reject);
  });
}

const reconnectMs = 1_000;
/** The length of `HTTP/1.1 200`. */
const statusLineChars = 12;

async function flood(options: FloodOptions): Promise<void> {
  const { port, localAddress, connections, depth, target, withUnknownToken } = options;
  const tokenOf = () => (withUnknownToken ? makeToken(1) : options.token);
  const { reconnecting = 0 } = options;
  const counts: ResponseCounts = {};
  let started = 0;
  const requests = () =>
    Array.from({ length: depth }, () => {
      const token = tokenOf();
      const authorization = token === undefined ? '' : `Authorization: Bearer ${token}\r\n`;
      return `GET ${target} HTTP/1.1\r\nHost: x\r\n${authorization}\r\n`;
    }).join('');
  const send = (socket: Socket) => {
    let left = depth;
    let isFirst = true;
    let text = '';
    socket.setEncoding('latin1').on('data', (chunk: unknown) => {
      text += String(chunk);
      let end = 0;
      for (const { 1: status = '', 0: line, index } of text.matchAll(/HTTP\/1\.1 (\d{3})/g)) {
        counts[status] = (counts[status] ?? 0) + 1;
        left--;
        end = index + line.length;
      }
      text = text.slice(Math.max(end, text.length - statusLineChars)); // keeps a partial status line
      if (left > 0) return;
      left = depth;
      if (isFirst && ++started === connections) startReconnecting();
      isFirst = false;
      socket.write(requests());
    });
    socket.write(requests());
  };
  const open = () => {
    const socket = connect({ port, host: '127.0.0.1', localAddress });
    socket.on('error', () => {}); // `close` follows
    // The service closes connections if too many pipelined requests wait. Clients then open others.
    socket.once('close', () => send(open()));
    return socket;
  };
  const reconnect = () => {
    const socket = connect({ port, host: '127.0.0.1', localAddress });
    socket.on('error', () => {}); // `close` follows
    socket.once('connect', () => socket.destroy());
    socket.once('close', () => setTimeout(reconnect, reconnectMs));
  };
  const startReconnecting = () => {
    for (let at = 0; at < reconnecting; at++) {
      setTimeout(reconnect, (at / reconnecting) * reconnectMs);
    }
    const warmUpMs = reconnecting > 0 ? 2 * reconnectMs : 0;
    setTimeout(() => parentPort?.postMessage('started'), warmUpMs);
  };
  // One at a time, because the server's backlog of unaccepted connections is limited.
  const sockets: Socket[] = [];
  for (let at = 0; at < connections; at++) {
    const socket = open();
    await once(socket, 'connect');
    sockets.push(socket);
  }
  for (const socket of sockets) send(socket);
  parentPort?.once('message', () => parentPort?.postMessage(counts));
}

if (!isMainThread) await flood(workerData as FloodOptions);
