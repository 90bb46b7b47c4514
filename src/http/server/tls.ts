/**
 * Serves HTTP/1.1 over TLS. From its first moment, an accepted socket counts as a connection without a valid token. So
 * clients that never complete the handshake are the first to lose their connections (connections.ts).
 */
import type { RequestListener } from 'node:http';
import { createServer, type Server, type ServerOptions } from 'node:https';
import type { SecureContextOptions } from 'node:tls';
import type { Logger } from 'pino';
import { requestTimeoutMs } from '../limits.ts';

/** A certificate, which its chain can follow, and its private key, both in PEM format. */
export interface KeyPair {
  cert: string;
  key: string;
}

/** For TLS 1.2: forward secrecy and authenticated encryption, which every cipher of TLS 1.3 has. */
const ciphers = 'ECDHE+AESGCM:ECDHE+CHACHA20';

/** `setSecureContext` of a server needs all of them again. */
export function secureContextOptions({ cert, key }: KeyPair): SecureContextOptions {
  return { cert, key, minVersion: 'TLSv1.2', ciphers };
}

/** `options` are those of the HTTP server. */
export function createTlsServer(
  pair: KeyPair,
  log: Logger,
  options: ServerOptions,
  handler: RequestListener,
): Server {
  const server = createServer(
    {
      ...options,
      ...secureContextOptions(pair),
      allowHalfOpen: true, // as node:http does
      ALPNProtocols: ['http/1.1'],
      handshakeTimeout: requestTimeoutMs,
    },
    handler,
  );
  // Node emits clientError too.
  server.on('tlsClientError', (err) => log.debug({ err }, 'TLS handshake failed'));
  return server;
}
