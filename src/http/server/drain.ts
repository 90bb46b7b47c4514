/**
 * Stops a server without dropping an accepted request.
 */
import { once } from 'node:events';
import type { Server } from 'node:http';
import { Server as NetServer } from 'node:net';
import { setImmediate as nextIteration, setTimeout as wait } from 'node:timers/promises';
import type { Connections } from './connections.ts';
import { inheritedSockets } from './listen.ts';

/**
 * How often idle connections are closed. They first stay open for as long, because a request can be on its way. They stay
 * longer if new connections wait in inherited sockets meanwhile, and are not refused.
 */
const idleIntervalMs = inheritedSockets().length > 0 ? 2_000 : 500;
/** Until each of several workers has stopped listening. A connection that closed sooner would be replaced at another one. */
const otherWorkersMs = 250;
/** How long connections that wait are accepted, and requests in progress can take; then all connections are closed. */
const drainTimeoutMs = 10_000;
const acceptTimeoutMs = drainTimeoutMs / 2;

/**
 * Closes the listening sockets once they have no connection left that waits, and then each connection with its next response.
 * Resolves when no connection is left.
 */
export async function drain(
  server: Server,
  connections: Connections,
  listening: readonly NetServer[],
): Promise<void> {
  const hasTls = 'setSecureContext' in server;
  const closed = Promise.all(listening.map((one) => once(one, 'close'))).then(() => true);
  const endMs = performance.now() + drainTimeoutMs;
  const hasOwnSockets = inheritedSockets().length === 0;
  if (hasOwnSockets) await acceptWaiting(server);
  // Not close() of http.Server: it closes idle connections at once, though a request can be on its way.
  for (const one of listening) NetServer.prototype.close.call(one);
  if (hasOwnSockets) await Promise.race([closed, wait(otherWorkersMs, false, { ref: false })]);
  connections.areClosing = true;
  while (!(await Promise.race([closed, wait(idleIntervalMs, false, { ref: false })]))) {
    await nextIteration(); // reads what has arrived: the connection of a request is then not idle
    const sockets = connections.sockets();
    if (performance.now() > endMs) {
      // Not closeAllConnections(): it leaves those whose TLS handshake is not complete.
      for (const socket of sockets) socket.destroy();
    } else if (sockets.every(({ writableLength }) => writableLength === 0)) {
      // For Node, a connection is idle once its response is written, even if the client has not read it. So none is
      // closed while any has unsent data.
      server.closeIdleConnections();
      // For Node, connections in their TLS handshake are not idle, not even if their client has gone meanwhile. Nor is,
      // for Node 24, a connection on which nothing was received.
      for (const socket of sockets) {
        const isInHandshake = hasTls && !('encrypted' in socket);
        if (socket.bytesRead === 0 || isInHandshake) socket.destroy();
      }
    }
  }
}

/**
 * Resolves after an iteration of the event loop without a new connection. The system resets connections that wait in a socket
 * when it closes, also if their requests have arrived.
 */
async function acceptWaiting(server: Server): Promise<void> {
  let isNew = true;
  const onConnection = () => (isNew = true);
  server.on('connection', onConnection);
  const endMs = performance.now() + acceptTimeoutMs;
  await nextIteration(); // the one that was interrupted by the signal
  while (isNew && performance.now() < endMs) {
    isNew = false;
    await nextIteration();
  }
  server.off('connection', onConnection);
}
