/**
 * Creates the server of the app, over TCP or TLS, with the limits on its connections and on the heads of requests.
 */
import type { RequestListener, Server, ServerOptions } from 'node:http';
import type { Logger } from 'pino';
import type { Connections } from './connections.ts';
import { idleTimeoutMs, maxHeaderBytes, maxHeaders, requestTimeoutMs } from '../limits.ts';

export type ServerFactory = (options: ServerOptions, handler: RequestListener) => Server;

// An import would load every export of node:http, and for WebSocket a complete HTTP client.
const { createServer } = process.getBuiltinModule('node:http');

/** Each request reaches the handler once the earlier ones of its connection have their responses. */
export function createLimitedServer(
  connections: Connections,
  log: Logger,
  handler: RequestListener,
  create: ServerFactory = createServer,
): Server {
  const options: ServerOptions = {
    maxHeaderSize: maxHeaderBytes,
    requestTimeout: requestTimeoutMs,
    connectionsCheckingInterval: 1_000, // how often Node checks for requests that exceed it
    keepAliveTimeout: idleTimeoutMs,
    requireHostHeader: false, // head.ts responds with a problem
  };
  const server = create(options, (_request, response) => connections.schedule(response));
  server.setTimeout(idleTimeoutMs);
  server.maxHeadersCount = maxHeaders + 1; // one more, because Node 24 silently drops the rest
  // A client that has closed its side of the connection still gets its responses. Node's types lack this.
  (server as { httpAllowHalfOpen?: boolean }).httpAllowHalfOpen = true;
  // Without these listeners, Node would respond to expectations. head.ts refuses unsupported ones, and body.ts asks
  // for the body once its request is acceptable.
  for (const event of ['checkContinue', 'checkExpectation']) {
    server.on(event, (request, response) => server.emit('request', request, response));
  }
  connections.serve(server, handler, log);
  return server;
}
