/**
 * Clients that send their requests a few bytes at a time, and connect again when they are dropped.
 */
import { connect, type Socket } from 'node:net';
import type { TestContext } from 'node:test';

const everyMs = 1_000;
const bytes = 'aaaaaa';
/** Not all connect in the same moment: they share this process with who measures. */
const spreadMs = 1_000;

export interface Drips {
  /** Those that are connected now. */
  open(): number;
  /** How often each was dropped, at least. */
  drops(): number;
  /** What the last one that was dropped had been answered. */
  lastAnswer(): string;
}

/** Opens a connection for each of the beginnings of requests, and feeds all until the test ends. */
export function drip(
  t: Pick<TestContext, 'after'>,
  port: number,
  beginnings: readonly string[],
): Drips {
  const sockets = new Map<number, Socket>();
  const drops = beginnings.map(() => 0);
  let goesOn = true;
  let lastAnswer = '';
  const start = (at: number) => {
    if (!goesOn) return;
    let answer = '';
    const socket = connect({ host: '127.0.0.1', port });
    socket.setEncoding('latin1').on('data', (text) => (answer += String(text)));
    socket.on('error', () => {}); // a drop shows as `close`
    socket.once('connect', () => {
      sockets.set(at, socket);
      socket.write(beginnings[at] ?? '');
    });
    socket.once('close', () => {
      sockets.delete(at);
      if (!goesOn) return;
      drops[at] = (drops[at] ?? 0) + 1;
      lastAnswer = answer;
      setTimeout(start, at % spreadMs, at);
    });
  };
  for (const at of beginnings.keys()) setTimeout(start, at % spreadMs, at);
  const feed = setInterval(() => {
    for (const socket of sockets.values()) socket.write(bytes);
  }, everyMs);
  t.after(() => {
    goesOn = false;
    clearInterval(feed);
    for (const socket of sockets.values()) socket.destroy();
  });
  return {
    open: () => sockets.size,
    drops: () => Math.min(...drops),
    lastAnswer: () => lastAnswer,
  };
}

const head = 'POST /plants HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n';

/** So many requests, of which half drip in their headers and half in their bodies. */
export function dripping(count: number): string[] {
  const inHeader = `${head}X-Drip: `;
  const inBody = `${head}Content-Length: 16384\r\n\r\n`;
  return Array.from({ length: count }, (_, at) => (at % 2 === 0 ? inHeader : inBody));
}
