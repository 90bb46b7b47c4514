/**
 * Handles the requests of each connection one at a time, in turn with those of other connections
 * (request-scheduler.ts).
 *
 * Node parses everything that one read returns: up to 64 KiB, or about 600 requests. If too many requests wait, what
 * follows is not read, and the connection closes after the waiting requests have their responses. The client repeats
 * the others on a new connection (RFC 9112, section 9.3.2).
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
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

interface QueuedRequest {
  response: ServerResponse;
  handle: () => void;
}

interface Connection {
  socket: Socket;
  /** The response in progress. */
  current: ServerResponse | undefined;
  waiting: QueuedRequest[];
  /** The previous request, if its response was sent before its body had arrived completely. */
  respondedEarly: IncomingMessage | undefined;
  /** If true, no further request is accepted. */
  isClosing: boolean;
  group: Group;
  /** Whether it has sent a request. */
  isUsed: boolean;
}

interface Group {
  all: Set<Connection>;
  /** Those without a request in progress, or with only a part of its header. */
  idle: Set<Connection>;
}

export class Connections {
  readonly #connections = new WeakMap<Socket, Connection>();
  /** The connections that have sent a valid token, and all others. */
  readonly #known: Group = { all: new Set(), idle: new Set() };
  readonly #strangers: Group = { all: new Set(), idle: new Set() };
  /** With TLS, by the ends of the socket: Node has no public API to find the accepted socket below a TLS socket. */
  readonly #byEnds = new Map<string, Connection>();
  /** The number of waiting requests of all connections. */
  #pipelined = 0;
  readonly #scheduler = new RequestScheduler();
  readonly #familyOf: (request: IncomingMessage) => string | undefined;

  /** Shared by all responses: with a closure for each, twice as many objects survive garbage collections. */
  readonly #onClose: (this: ServerResponse) => void;

  /** Returns the family of the request's token, if the token has been accepted before. */
  constructor(familyOf: (request: IncomingMessage) => string | undefined) {
    this.#familyOf = familyOf;
    const handleNext = (response: ServerResponse) => this.#handleNext(response);
    this.#onClose = function onClose() {
      handleNext(this);
    };
  }

  /** Enforces `maxConnections`: closes the least important connection if a new one exceeds it. */
  limitConnections(server: Server, log: Logger): void {
    const reports = new TokenBuckets({ requests: 1, windowSeconds: 60 });
    const report = () => {
      if (!reports.take('').isAllowed) return;
      log.warn({ connections: maxConnections }, 'connections are closed');
    };
    const hasTls = 'setSecureContext' in server;
    server.on('connection', (socket: Socket) => {
      const [known, strangers] = [this.#known, this.#strangers];
      if (known.all.size + strangers.all.size >= maxConnections) {
        const candidates = [strangers.idle, known.idle, strangers.all];
        const [evicted] = candidates.find(({ size }) => size > 0) ?? [];
        (evicted?.socket ?? socket).destroy();
        report();
        if (evicted === undefined) return;
        this.#remove(evicted);
      }
      const connection = this.#add(socket);
      // A first request can have arrived already. It is read in the next iteration.
      setImmediate(() => setImmediate(() => this.#noteIfIdle(connection)));
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
      this.#connections.set(socket, connection);
      this.#limitPipelining(connection);
      closeAbandoned(connection);
    });
  }

  /** The socket below a TLS socket whose handshake has failed. */
  acceptedSocket(socket: Socket): Socket | undefined {
    return this.#byEnds.get(endsOf(socket))?.socket;
  }

  /** Calls `handle` once the earlier requests on this connection have their responses. */
  schedule(request: IncomingMessage, response: ServerResponse, handle: () => void): void {
    const connection = this.#connections.get(request.socket);
    if (connection === undefined) return; // there was no room for it
    response.on('close', this.#onClose);
    if (connection.current === undefined) {
      connection.current = response;
      connection.group.idle.delete(connection);
      this.#start(connection, request, handle);
    } else {
      connection.waiting.push({ response, handle });
      this.#pipelined++;
    }
  }

  /** Call it after a request with a valid token. At the limit, idle connections without one close first. */
  markAuthenticated(socket: Socket): void {
    const connection = this.#connections.get(socket);
    if (connection?.group !== this.#strangers) return;
    if (!this.#strangers.all.delete(connection)) return; // it has closed
    this.#strangers.idle.delete(connection);
    connection.group = this.#known;
    this.#known.all.add(connection);
  }

  /** Whether the connection closes after the response to this request. While stopping, all connections do. */
  isLastRequest(request: IncomingMessage, isStopping: boolean): boolean {
    const connection = this.#connections.get(request.socket);
    const isNewest = connection?.current?.req === request && connection.waiting.length === 0;
    return isNewest && (connection.isClosing || isStopping);
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
    if (waiting.at(-1)?.response.req.complete === false) {
      waiting.pop();
      this.#pipelined--;
    }
    return current !== undefined && (current.req.complete || current.headersSent);
  }

  #handleNext(closed: ServerResponse): void {
    const connection = this.#connections.get(closed.req.socket);
    if (connection?.current !== closed) return;
    const { socket, waiting } = connection;
    const next = waiting.shift();
    connection.current = next?.response;
    connection.respondedEarly = closed.req.complete ? undefined : closed.req;
    if (next === undefined) {
      this.#noteIfIdle(connection);
      if (connection.isClosing) linger(socket);
      return;
    }
    this.#pipelined--;
    this.#start(connection, next.response.req, next.handle);
  }

  #start(connection: Connection, request: IncomingMessage, handle: () => void): void {
    const { socket, isUsed } = connection;
    connection.isUsed = true;
    const start = () => {
      if (!socket.writable) return false;
      handle();
      return true;
    };
    const key = this.#familyOf(request);
    if (key === undefined) this.#scheduler.startStranger(isUsed ? 'used' : 'new', start);
    else this.#scheduler.startKnown(key, start);
  }

  #add(socket: Socket): Connection {
    const connection = {
      socket,
      current: undefined,
      waiting: [],
      respondedEarly: undefined,
      isClosing: false,
      group: this.#strangers,
      isUsed: false,
    };
    this.#connections.set(socket, connection);
    this.#strangers.all.add(connection);
    this.#limitPipelining(connection);
    closeAbandoned(connection);
    return connection;
  }

  #noteIfIdle(connection: Connection): void {
    const { current, group } = connection;
    if (current === undefined && group.all.has(connection)) group.idle.add(connection);
  }

  #remove(connection: Connection): void {
    connection.group.all.delete(connection);
    connection.group.idle.delete(connection);
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
export function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
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
