/**
 * A TCP proxy that simulates network faults: it can delay, cut or stall connections.
 */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { testDatabase } from './storages.ts';

export class Proxy implements AsyncDisposable {
  /** The next connection is cut after this many bytes in both directions together. */
  bytesToLive: () => number = () => Infinity;
  /** Latency of the next connection in each direction. */
  latencyMs: () => number = () => 0;
  /** All connections together are cut after this many bytes. */
  bytesLeft = Infinity;
  /** Returns what to forward to the server. */
  rewrite: (sent: Buffer) => Buffer = (sent) => sent;
  /** If true, the proxy silently drops all data. */
  isStuck = false;
  /** How often data arrived from the client after data from the server. */
  turns = 0;
  /** Connections that the proxy has cut after a number of bytes. */
  cuts = 0;
  onCut = () => {};
  #isServerLast = false;
  readonly #server: Server;
  readonly #targetPort: number;
  readonly #sockets = new Set<Socket>();

  private constructor(targetPort: number) {
    this.#targetPort = targetPort;
    this.#server = createServer((socket) => this.#accept(socket));
  }

  /** Forwards connections to a local port. Listens on a free port by default. */
  static async to(targetPort: number, host = '127.0.0.1', port = 0): Promise<Proxy> {
    const proxy = new Proxy(targetPort);
    proxy.#server.listen(port, host);
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port; // it listens on a port
  }

  get hasConnections(): boolean {
    return this.#sockets.size > 0;
  }

  cutAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cutAll();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #accept(client: Socket): void {
    const server = connect(this.#targetPort, '127.0.0.1');
    let left = this.bytesToLive();
    const latencyMs = this.latencyMs();
    // Timers with the same delay fire in the order in which they were set.
    const delayed = (work: () => void) =>
      void (latencyMs > 0 ? setTimeout(work, latencyMs) : work());
    const end = () => {
      client.destroy();
      server.destroy();
    };
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(from);
      from.setNoDelay(true);
      from.on('close', () => {
        this.#sockets.delete(from);
        end();
      });
      from.on('error', () => {}); // `close` follows
      from.on('data', (received: Buffer) => {
        if (this.isStuck || left <= 0) return;
        const bytes = from === client ? this.rewrite(received) : received;
        if (from === client && this.#isServerLast) this.turns++;
        this.#isServerLast = from === server;
        const room = Math.min(left, this.bytesLeft);
        delayed(() => to.write(bytes.subarray(0, Math.max(0, room))));
        left -= bytes.length;
        this.bytesLeft -= bytes.length;
        if (room > bytes.length) return;
        left = 0;
        this.cuts++;
        this.onCut();
        // Everything that was forwarded still arrives.
        delayed(() => to.end(() => end()));
      });
    }
  }
}

/** An empty PostgreSQL database, with its addresses through the proxy and without. */
export async function databaseBehindProxy(
  t: Pick<TestContext, 'after'>,
): Promise<{ url: string; proxy: Proxy; direct: string }> {
  const { url: direct } = await testDatabase(t, 'PostgreSQL');
  const url = new URL(direct);
  const proxy = await Proxy.to(Number(url.port));
  t.after(() => proxy[Symbol.asyncDispose]());
  url.port = String(proxy.port);
  return { url: url.href, proxy, direct };
}
