/**
 * Clients that send their requests a few bytes at a time, and reconnect when they are dropped (Slowloris).
 */
import { connect, type Socket } from 'node:net';
import type { TestContext } from 'node:test';

const sendIntervalMs = 1_000;
const chunk = 'aaaaaa';
/** Connections open over this time: they share the process with the test's measurements. */
const connectMs = 1_000;

export interface SlowClients {
  /** Number of open connections. */
  open(): number;
  /** How often every client was dropped, at least. */
  drops(): number;
  /** The response to the client that was dropped last. */
  lastResponse(): string;
}

/** Opens a connection for each partial request, and sends more of it until the test ends. */
export function startSlowClients(
  t: Pick<TestContext, 'after'>,
  port: number,
  beginnings: readonly string[],
): SlowClients {
  const sockets = new Map<number, Socket>();
  const drops = beginnings.map(() => 0);
  let isRunning = true;
  let lastResponse = '';
  const start = (at: number) => {
    if (!isRunning) return;
    let response = '';
    const socket = connect({ host: '127.0.0.1', port });
    socket.setEncoding('latin1').on('data', (text) => (response += String(text)));
    socket.on('error', () => {}); // `close` follows
    socket.once('connect', () => {
      sockets.set(at, socket);
      socket.write(beginnings[at] ?? '');
    });
    socket.once('close', () => {
      sockets.delete(at);
      if (!isRunning) return;
      drops[at] = (drops[at] ?? 0) + 1;
      lastResponse = response;
      setTimeout(start, at % connectMs, at);
    });
  };
  for (const at of beginnings.keys()) setTimeout(start, at % connectMs, at);
  const interval = setInterval(() => {
    for (const socket of sockets.values()) socket.write(chunk);
  }, sendIntervalMs);
  t.after(() => {
    isRunning = false;
    clearInterval(interval);
    for (const socket of sockets.values()) socket.destroy();
  });
  return {
    open: () => sockets.size,
    drops: () => Math.min(...drops),
    lastResponse: () => lastResponse,
  };
}

const head = 'POST /plants HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n';

/** `count` partial requests: half end within a header, and half within the body. */
export function partialRequests(count: number): string[] {
  const inHeader = `${head}X-Slow: `;
  const inBody = `${head}Content-Length: 16384\r\n\r\n`;
  return Array.from({ length: count }, (_, at) => (at % 2 === 0 ? inHeader : inBody));
}
