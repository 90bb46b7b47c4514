/**
 * A TCP proxy that is not to be relied on: it cuts connections where it is told to, or lets nothing
 * through any more.
 */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { testDatabase } from './storages.ts';

export class Proxy implements AsyncDisposable {
  /** How many bytes, both ways together, the next connection lives for. */
  bytesToLive: () => number = () => Infinity;
  /** How long the next connection takes each way. */
  latencyMs: () => number = () => 0;
  /** How many bytes all connections together may still send; then there is no network any more. */
  bytesLeft = Infinity;
  /** While true nothing that comes is passed on, and nobody is told. */
  isStuck = false;
  /** Connections that it has cut. */
  cuts = 0;
  readonly #server: Server;
  readonly #targetPort: number;
  readonly #sockets = new Set<Socket>();

  private constructor(targetPort: number) {
    this.#targetPort = targetPort;
    this.#server = createServer((socket) => this.#join(socket));
  }

  /** Listens on this machine, on a free port unless one is given, for a server on another. */
  static async to(targetPort: number, host = '127.0.0.1', port = 0): Promise<Proxy> {
    const proxy = new Proxy(targetPort);
    proxy.#server.listen(port, host);
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port; // it listens on a port
  }

  /** Cuts all there are. */
  cutAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cutAll();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #join(client: Socket): void {
    const server = connect(this.#targetPort, '127.0.0.1');
    let left = this.bytesToLive();
    const latencyMs = this.latencyMs();
    // Timers of one duration fire in the order in which they were set.
    const passOn = (work: () => void) =>
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
      from.on('error', () => {}); // it closes as well
      from.on('data', (bytes: Buffer) => {
        if (this.isStuck || left <= 0) return;
        const room = Math.min(left, this.bytesLeft);
        passOn(() => to.write(bytes.subarray(0, Math.max(0, room))));
        left -= bytes.length;
        this.bytesLeft -= bytes.length;
        if (room > bytes.length) return;
        left = 0;
        this.cuts++;
        // What was passed on arrives; nothing after it does.
        passOn(() => to.end(() => end()));
      });
    }
  }
}

/** An empty PostgreSQL database: its address behind a proxy, and its own. */
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
