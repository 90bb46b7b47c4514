/**
 * Stops a server without dropping an accepted request.
 */
import { once } from 'node:events';
import type { Server } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { endsOf } from './connections.ts';

/** How often idle connections are closed. They first stay open for as long, because a request can be on its way. */
const idleIntervalMs = 500;
/** How long requests in progress can take; then all connections are closed. */
const drainTimeoutMs = 10_000;

/**
 * Call it before the server listens. The returned function closes its listening sockets at once and resolves when no
 * connection is left. The app closes each connection with its next response (the onSend hook of app.ts).
 */
export function createDrain(server: Server): (sockets: readonly NetServer[]) => Promise<void> {
  const hasTls = 'setSecureContext' in server;
  const connections = new Set<Socket>();
  // With TLS there are two sockets for each connection: the accepted one, and one for the data after the handshake.
  const secured = new Set<Socket>();
  for (const event of ['connection', 'secureConnection']) {
    server.on(event, (socket: Socket) => {
      const sets = event === 'connection' ? [connections] : [connections, secured];
      for (const set of sets) set.add(socket);
      socket.once('close', () => sets.forEach((set) => set.delete(socket)));
    });
  }
  // For Node, a connection is idle once its response is written, even if the client has not read it. So none is
  // closed while any has unsent data.
  const isSending = () => connections.values().some((socket) => socket.writableLength > 0);

  return async (sockets) => {
    const closed = Promise.all(sockets.map((socket) => once(socket, 'close'))).then(() => true);
    // Not close() of http.Server: it closes idle connections at once, though a request can be on its way.
    for (const socket of sockets) NetServer.prototype.close.call(socket);
    const endMs = performance.now() + drainTimeoutMs;
    while (!(await Promise.race([closed, wait(idleIntervalMs, false, { ref: false })]))) {
      if (performance.now() > endMs) {
        // Not closeAllConnections(): it leaves those whose TLS handshake is not complete.
        for (const socket of connections) socket.destroy();
      } else if (!isSending()) {
        server.closeIdleConnections();
        // For Node, connections in their TLS handshake are not idle, not even if their client has gone meanwhile. Nor is,
        // for Node 24, a connection on which nothing was received.
        const ends = new Set(secured.values().map(endsOf));
        const isInHandshake = (socket: Socket) => hasTls && !ends.has(endsOf(socket));
        for (const socket of connections) {
          if (socket.bytesRead === 0 || isInHandshake(socket)) socket.destroy();
        }
      }
    }
  };
}
