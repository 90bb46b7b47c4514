/**
 * Ends a server without dropping a request that it accepted.
 */
import { once } from 'node:events';
import type { Server } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';

/** What a client that has just sent a request on an idle connection is given to be heard. */
const graceMs = 500;
/** What the requests under way are given to end; then their connections are cut. */
const deadlineMs = 10_000;
const sweepMs = 50;

/**
 * Call it before the server listens. What it returns stops listening at once and resolves when no
 * connection is left: the app (the onSend hook of app.ts) asks for the end of each with its next answer, and
 * one that stays idle is closed after a grace.
 */
export function createDrain(server: Server): () => Promise<void> {
  const connections = new Set<Socket>();
  server.on('connection', (socket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
  });
  // Node takes a connection for idle once an answer is handed over, though the client may still
  // have to read it; so nobody is cut off while anything is on its way to anybody.
  const isSending = () => connections.values().some((socket) => socket.writableLength > 0);

  return async () => {
    const closed = once(server, 'close').then(() => true);
    // Not the close() of http.Server: that cuts idle connections at once, whose next request may be
    // on its way already.
    NetServer.prototype.close.call(server);
    const startedMs = performance.now();
    while (!(await Promise.race([closed, wait(sweepMs, false)]))) {
      const elapsedMs = performance.now() - startedMs;
      if (elapsedMs > deadlineMs) {
        // Not closeAllConnections(): Node no longer counts a connection that asked for a tunnel.
        for (const socket of connections) socket.destroy();
      } else if (elapsedMs > graceMs && !isSending()) {
        server.closeIdleConnections();
        // Nothing ever came over it; Node 24 does not count that as idle.
        for (const socket of connections) if (socket.bytesRead === 0) socket.destroy();
      }
    }
  };
}
