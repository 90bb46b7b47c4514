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

export interface Where {
  host: string;
  port: number;
}

/**
 * Reserves an address for the sockets of one service: those with `reusePort` would also join the sockets of another one,
 * even if both start at once. The reservation ends with the process, or when `lock` closes. Rejects with EADDRINUSE.
 */
export async function reserve({ host, port }: Where): Promise<Where & { lock: NetServer[] }> {
  // One address, because the others of localhost could lead to another service.
  const { address } = await lookup(host);
  const lock = hasSharedPorts && port !== 0 ? [await lockAddress(address, port)] : [];
  const actualPort = await findFreePort(address, port);
  if (hasSharedPorts && port === 0) lock.push(await lockAddress(address, actualPort));
  return { host: address, port: actualPort, lock };
}

/** Listens at a reserved address. Resolves with the sockets to close (drain.ts). */
export async function listen(server: Server, { host, port }: Where): Promise<NetServer[]> {
  const { address } = await lookup(host);
  const options = { host: address, port, backlog };
  if (!hasSharedPorts) return [await start(server, options)];
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

/** Reserves the address and listens there. */
export async function listenAlone(server: Server, where: Where): Promise<NetServer[]> {
  const { lock, ...address } = await reserve(where);
  return [...(await listen(server, address)), ...lock];
}

/**
 * An abstract Unix socket is a lock: one process can have each name, and the system frees it when that process ends, which
 * the lock does not delay.
 */
function lockAddress(address: string, port: number): Promise<NetServer> {
  const lock = createServer().unref();
  lock.maxConnections = 0; // every user of the machine can connect to it
  return start(lock, { path: `\0plant-store ${address}:${port}` });
}

/** Returns `port`, or a free one for 0. Rejects with EADDRINUSE if it is in use. */
async function findFreePort(host: string, port: number): Promise<number> {
  const probe = await start(createServer(), { host, port, exclusive: true });
  const address = probe.address() as AddressInfo; // it listens on a port
  probe.close(); // immediately frees the port
  return address.port;
}

async function start(server: NetServer, options: ListenOptions): Promise<NetServer> {
  await once(server.listen(options), 'listening');
  return server;
}
