/**
 * Handles the requests of each connection one at a time, in turn with those of other connections
 * (request-scheduler.ts).
 *
 * Node parses everything that one read returns: up to 64 KiB, or about 600 requests. If too many requests wait, what
 * follows is not read, and the connection closes after the waiting requests have their responses. The client repeats
 * the others on a new connection (RFC 9112, section 9.3.2).
 */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import {
  halfOpenReadMs,
  maxConnections,
  maxPipelinedRequests,
  maxPipelinedRequestsTotal,
} from '../limits.ts';
import { TokenBuckets } from '../../shared/token-buckets.ts';
import { linger, lingerOnClose } from './linger.ts';
import { RequestScheduler } from './request-scheduler.ts';

class Connection {
  /** With TLS, the accepted one, and after the handshake the one for the data. */
  socket: Socket;
  /** The response in progress. */
  current: ServerResponse | undefined;
  readonly waiting: ServerResponse[] = [];
  /** The previous request, if its response was sent before its body had arrived completely. */
  respondedEarly: IncomingMessage | undefined;
  /** If true, no further request is accepted. */
  isClosing = false;
  /** Whether it has sent a request. */
  isUsed = false;
  /** Whether it has sent a valid token. */
  isKnown = false;
  /** Undefined once it has closed. */
  rank: Set<Connection> | undefined;

  constructor(socket: Socket, rank: Set<Connection>) {
    this.socket = socket;
    this.rank = rank.add(this);
  }
}

export class Connections {
  readonly #connections = new WeakMap<Socket, Connection>();
  /**
   * All but the last close for new connections, in this order. A connection is idle without a request in progress, or with
   * only a part of its header, and known if it has sent a valid token.
   */
  readonly #ranks = {
    idleStrangers: new Set<Connection>(),
    idleKnown: new Set<Connection>(),
    busyStrangers: new Set<Connection>(),
    busyKnown: new Set<Connection>(),
  };
  /** With TLS, by the ends of the socket: Node has no public API to find the accepted socket below a TLS socket. */
  readonly #byEnds = new Map<string, Connection>();
  /** The number of waiting requests of all connections. */
  #pipelined = 0;
  readonly #scheduler = new RequestScheduler();
  readonly #familyOf: (request: IncomingMessage) => string | undefined;
  #handler: RequestListener | undefined;
  /** If true, each connection closes with its next response. */
  areClosing = false;

  /** Returns the family of the request's token, if the token has been accepted before. */
  constructor(familyOf: (request: IncomingMessage) => string | undefined) {
    this.#familyOf = familyOf;
  }

  /**
   * Passes the scheduled requests to `handler`. Enforces `maxConnections`: closes the least important connection if a new
   * one exceeds it.
   */
  serve(server: Server, handler: RequestListener, log: Logger): void {
    this.#handler = handler;
    const reports = new TokenBuckets({ requests: 1, windowSeconds: 60 });
    const hasTls = 'setSecureContext' in server;
    server.on('connection', (socket: Socket) => {
      const { busyKnown, ...others } = this.#ranks;
      const ranks = Object.values(others);
      if (ranks.reduce((sum, { size }) => sum + size, busyKnown.size) >= maxConnections) {
        const [evicted] = ranks.find(({ size }) => size > 0) ?? [];
        (evicted?.socket ?? socket).destroy();
        if (reports.take('').isAllowed) {
          log.warn({ connections: maxConnections }, 'connections are closed');
        }
        if (evicted === undefined) return;
        this.#remove(evicted);
      }
      const connection = new Connection(socket, this.#ranks.busyStrangers);
      this.#follow(socket, connection);
      // A first request can have arrived already. It is read in the next iteration.
      setImmediate(() => setImmediate(() => this.#rank(connection)));
      const ends = hasTls ? endsOf(socket) : '';
      if (hasTls) this.#byEnds.set(ends, connection);
      socket.once('close', () => {
        this.#remove(connection);
        // Another connection can have the same ends by now.
        if (this.#byEnds.get(ends) === connection) this.#byEnds.delete(ends);
      });
    });
    // Emitted after a TLS handshake, from when on requests arrive on another socket.
    server.on('secureConnection', (socket: Socket) => {
      const connection = this.#byEnds.get(endsOf(socket));
      if (connection === undefined) return void socket.destroy();
      connection.socket = socket;
      this.#follow(socket, connection);
    });
  }

  /** Of all open connections. */
  sockets(): Socket[] {
    return Object.values(this.#ranks).flatMap((rank) => Array.from(rank, ({ socket }) => socket));
  }

  /** The socket below a TLS socket whose handshake has failed. */
  acceptedSocket(socket: Socket): Socket | undefined {
    return this.#byEnds.get(endsOf(socket))?.socket;
  }

  /** Passes the request to the handler once the earlier requests on this connection have their responses. */
  schedule(response: ServerResponse): void {
    const connection = this.#connections.get(response.req.socket);
    if (connection === undefined) return; // there was no room for it
    response.on('close', () => this.#startNext(connection, response));
    if (connection.current === undefined) {
      this.#start(connection, response);
      this.#rank(connection);
    } else {
      connection.waiting.push(response);
      this.#pipelined++;
    }
  }

  /** Call it after a request with a valid token. At the limit, idle connections without one close first. */
  markAuthenticated(socket: Socket): void {
    const connection = this.#connections.get(socket);
    if (connection === undefined || connection.isKnown) return;
    connection.isKnown = true;
    this.#rank(connection);
  }

  /** Whether the connection closes after the response to this request. */
  isLastRequest(request: IncomingMessage): boolean {
    const connection = this.#connections.get(request.socket);
    const isNewest = connection?.current?.req === request && connection.waiting.length === 0;
    return isNewest && (connection.isClosing || this.areClosing);
  }

  /** Closes the connection after the response to this request. Bytes after the request are not parsed. */
  closeAfter({ socket }: IncomingMessage): void {
    const connection = this.#connections.get(socket);
    if (connection === undefined) return;
    connection.isClosing = true;
    this.#clear(connection);
    if (connection.current !== undefined) connection.current.shouldKeepAlive = false;
    lingerOnClose(socket);
  }

  /**
   * Closes the connection after the responses to all complete requests. Returns false if there are none: the
   * caller then responds to the incomplete one.
   */
  closeAfterCompleteRequests(socket: Socket): boolean {
    const connection = this.#connections.get(socket);
    if (connection === undefined) return false;
    connection.isClosing = true;
    const { current, waiting, respondedEarly } = connection;
    // The client would mistake a second response to this request for that of its next one.
    if (respondedEarly?.complete === false) {
      linger(socket);
      return true;
    }
    if (waiting.at(-1)?.req.complete === false) {
      waiting.pop();
      this.#pipelined--;
    }
    return current !== undefined && (current.req.complete || current.headersSent);
  }

  #startNext(connection: Connection, closed: ServerResponse): void {
    if (connection.current !== closed) return;
    const { socket, waiting } = connection;
    connection.current = undefined;
    connection.respondedEarly = closed.req.complete ? undefined : closed.req;
    const next = waiting.shift();
    if (next !== undefined) {
      this.#pipelined--;
      this.#start(connection, next);
      return;
    }
    this.#rank(connection);
    if (connection.isClosing) linger(socket);
  }

  #start(connection: Connection, response: ServerResponse): void {
    const { req } = response;
    const start = () => {
      if (!req.socket.writable) return false;
      this.#handler?.(req, response);
      return true;
    };
    const kind = connection.isUsed ? 'used' : 'new';
    connection.current = response;
    connection.isUsed = true;
    const key = this.#familyOf(req);
    if (key === undefined) this.#scheduler.startStranger(kind, start);
    else this.#scheduler.startKnown(key, start);
  }

  #follow(socket: Socket, connection: Connection): void {
    this.#connections.set(socket, connection);
    this.#limitPipelining(connection);
    closeAbandoned(connection);
  }

  /** Call it after each change that the rank depends on. */
  #rank(connection: Connection): void {
    const { rank, current, isKnown } = connection;
    if (rank === undefined) return;
    const { idleStrangers, idleKnown, busyStrangers, busyKnown } = this.#ranks;
    const [strangers, known] =
      current === undefined ? [idleStrangers, idleKnown] : [busyStrangers, busyKnown];
    rank.delete(connection);
    connection.rank = (isKnown ? known : strangers).add(connection);
  }

  #remove(connection: Connection): void {
    connection.rank?.delete(connection);
    connection.rank = undefined;
    this.#clear(connection);
  }

  /** The waiting requests get no response. */
  #clear({ waiting }: Connection): void {
    this.#pipelined -= waiting.length;
    waiting.length = 0;
  }

  /**
   * Stops Node's parser in the middle of a read, for which Node has no public API. Each parsed request costs a few
   * kilobytes until the connection closes, and all connections can send hundreds at once.
   */
  #limitPipelining(connection: Connection): void {
    const { socket, waiting } = connection;
    const { parser } = socket as Socket & { parser?: Parser | null }; // null below TLS
    if (!parser) return;
    const onIncoming = parser.onIncoming.bind(parser);
    parser.onIncoming = (request, keepAlive) => {
      connection.isClosing ||=
        !socket.writable || // the last response was sent before its request had arrived
        waiting.length >= maxPipelinedRequests ||
        (connection.current !== undefined && this.#pipelined >= maxPipelinedRequestsTotal);
      request.upgrade = false; // so Node keeps the socket after a CONNECT, and methods.ts refuses it
      if (connection.isClosing) return stopParsing;
      if (request.method === 'CONNECT') {
        connection.isClosing = true; // what follows can be of another protocol
        request.url = '*'; // not a path, but a host
      }
      return onIncoming(request, keepAlive);
    };
  }
}

/** With TLS, the accepted socket and the one for the data after the handshake have the same ends. */
function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}

/**
 * A client that has closed its side can wait for the response, or be gone. Only a write to it would show that, so a read
 * that takes longer ends with the connection.
 */
function closeAbandoned(connection: Connection): void {
  const { socket } = connection;
  socket.once('end', () => {
    if (connection.current === undefined) return;
    const interval = setInterval(() => {
      const { current } = connection;
      const isRead = current?.req.method === 'GET' || current?.req.method === 'HEAD';
      if (isRead && !current.writableEnded) socket.destroy();
    }, halfOpenReadMs);
    socket.once('close', () => clearInterval(interval));
  });
}

/** The result of `onIncoming` that stops Node's parser, as for an upgrade to another protocol. */
const stopParsing = 2;

interface Parser {
  onIncoming(request: IncomingMessage & { upgrade?: boolean }, keepAlive: boolean): number;
}
