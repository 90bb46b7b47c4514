/**
 * Listens on one address with several sockets, among which the system distributes the connections. From each socket,
 * Node accepts one connection per iteration of the event loop (libuv 1.52). With a single socket, clients that make
 * iterations long would keep new clients waiting.
 */
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import type { Server } from 'node:http';
import {
  createServer,
  type AddressInfo,
  type ListenOptions,
  type Server as NetServer,
} from 'node:net';

/** How many connections each process accepts per iteration, at most. */
const sockets = 32;
/** Maximum number of connections of a socket that wait to be accepted. The system can lower it. */
const backlog = 4_096;

/** Whether the system distributes connections. Elsewhere, there is one socket, which workers share (node:cluster). */
const hasSharedPorts = process.platform === 'linux';

/**
 * Resolves with the sockets to close (drain.ts). Rejects if another service listens there. A process that joins others
 * at their address is not the first, and skips this check.
 */
export async function listen(
  server: Server,
  { host, port }: { host: string; port: number },
  isFirst = true,
): Promise<NetServer[]> {
  // One address, because the others of localhost could lead to another service.
  const { address } = await lookup(host);
  const options = { host: address, port, backlog };
  if (!hasSharedPorts) return [await start(server, options)];
  // Sockets with reusePort would also join those of another service, so one without it goes first.
  if (isFirst) options.port = await findFreePort(address, port);
  const others = Array.from({ length: sockets - 1 }, () =>
    createServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
      server.emit('connection', socket),
    ),
  );
  const all = [server, ...others];
  const starts = all.map((one) => start(one, { ...options, reusePort: true }));
  await Promise.all(starts).catch(async (error: unknown) => {
    await Promise.allSettled(starts);
    for (const one of all) one.close(); // those that listen would keep the process running
    throw error;
  });
  return all;
}

/** Returns `port`, or a free one for 0. Rejects with EADDRINUSE if it is in use. */
export async function findFreePort(host: string, port: number): Promise<number> {
  const probe = await start(createServer(), { host, port, exclusive: true });
  const address = probe.address() as AddressInfo; // it listens on a port
  probe.close(); // immediately frees the port
  return address.port;
}

async function start(server: NetServer, options: ListenOptions): Promise<NetServer> {
  await once(server.listen(options), 'listening');
  return server;
}
