/**
 * Listens on one address with several sockets, among which the system distributes the connections. From each socket,
 * Node accepts one connection per iteration of the event loop (libuv 1.52). With a single socket, clients that make
 * iterations long would keep new clients waiting.
 */
import cluster from 'node:cluster';
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import type { Server } from 'node:http';
import net, {
  createServer,
  Socket,
  type AddressInfo,
  type ListenOptions,
  type Server as NetServer,
} from 'node:net';
import { UsageError } from '../../refusal.ts';

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
 * The file descriptors of sockets that systemd opened for this service (sd_listen_fds(3)). They stay open from one process
 * to the next, so new connections wait instead of being refused. Workers inherit them from the first process.
 */
export function inheritedSockets(): number[] {
  const { LISTEN_PID: owner, LISTEN_FDS: count } = process.env;
  if (owner !== String(cluster.isWorker ? process.ppid : process.pid)) return [];
  if (!/^[1-9]\d{0,2}$/.test(count ?? '')) refuseSockets();
  return Array.from({ length: Number(count) }, (_, at) => 3 + at);
}

/**
 * Reserves an address for the sockets of one service: those with `reusePort` would also join the sockets of another one,
 * even if both start at once. The reservation ends with the process, or when `lock` closes. Rejects with EADDRINUSE.
 * Inherited sockets have their address already.
 */
export async function reserve({ host, port }: Where): Promise<Where & { lock: NetServer[] }> {
  if (inheritedSockets().length > 0) return { host, port, lock: [] };
  // One address, because the others of localhost could lead to another service.
  const { address } = await lookup(host);
  const lock = hasSharedPorts && port !== 0 ? [await lockAddress(address, port)] : [];
  const actualPort = await findFreePort(address, port);
  if (hasSharedPorts && port === 0) lock.push(await lockAddress(address, actualPort));
  return { host: address, port: actualPort, lock };
}

/** Listens on inherited sockets, or else at a reserved address. Resolves with the sockets to close (drain.ts). */
export async function listen(server: Server, { host, port }: Where): Promise<NetServer[]> {
  const inherited = inheritedSockets();
  if (inherited.length > 0) return listenOnInherited(server, inherited).catch(refuseSockets);
  const { address } = await lookup(host);
  const place = () => ({ host: address, port, reusePort: hasSharedPorts });
  return startAll(server, Array.from({ length: hasSharedPorts ? sockets : 1 }, place));
}

async function listenOnInherited(server: Server, inherited: readonly number[]) {
  const handles = inherited.map((fd) => new Socket({ fd, readable: false }));
  if (handles.some(({ localPort }) => localPort === undefined)) refuseSockets(); // a Unix socket
  // Not `{ fd }`: the first process would then accept the connections, and lose those of a worker that dies.
  return startAll(server, handles);
}

function refuseSockets(cause?: unknown): never {
  const advice = 'Use ListenStream= with a port in the socket unit, and not Accept=yes.';
  throw new UsageError(`A socket of systemd is not of TCP, or does not listen. ${advice}`, {
    cause,
  });
}

/** The server listens at the first place. It also gets the connections of the others. */
async function startAll(
  server: Server,
  places: readonly (ListenOptions | Socket)[],
): Promise<NetServer[]> {
  const starts = places.map((place, at) => start(at === 0 ? server : passingTo(server), place));
  return Promise.all(starts).catch(async (error: unknown) => {
    for (const one of await Promise.allSettled(starts)) {
      if (one.status === 'fulfilled') one.value.close(); // it would keep the process running
    }
    throw error;
  });
}

function passingTo(server: Server): NetServer {
  return createServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
    server.emit('connection', socket),
  );
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
  // Before Node 26, the socket listens for a moment, and resets connections that clients attempt again and again.
  const probe =
    'BoundSocket' in net
      ? new net.BoundSocket({ host, port })
      : await start(createServer(), { host, port, exclusive: true });
  const { port: free } = probe.address() as AddressInfo; // not of a Unix socket
  probe.close(); // immediately frees the port
  return free;
}

async function start(server: NetServer, where: ListenOptions | Socket): Promise<NetServer> {
  await once(server.listen(where, backlog), 'listening');
  return server;
}
