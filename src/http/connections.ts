/**
 * Handles the requests of each connection one at a time, alternating with those of other connections. While
 * pipelined requests wait, the socket is paused. Of the connections without a valid token, one request starts in each
 * iteration of the event loop. So they keep iterations short, however many they are, and others run in between.
 *
 * Node parses everything that one read returns: up to 64 KiB, or about 600 requests. If too many requests wait, the
 * rest of the read is discarded, and the connection closes after the waiting requests have their responses. The
 * client repeats the others on a new connection (RFC 9112, section 9.3.2).
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import {
  maxConnections,
  maxLingerBytes,
  lingerMs,
  maxPipelinedRequests,
  maxPipelinedRequestsTotal,
} from './limits.ts';

interface QueuedRequest {
  response: ServerResponse;
  handle: () => void;
}

interface Connection {
  socket: Socket;
  /** The number of waiting requests of all connections; a shared object. */
  totals: { waiting: number };
  /** The response in progress. */
  current: ServerResponse | undefined;
  waiting: QueuedRequest[];
  /** The previous request, if its response was sent before its body had arrived completely. */
  respondedEarly: IncomingMessage | undefined;
  /** If true, no further request is accepted. */
  isClosing: boolean;
  kind: Kind;
}

/** Connections in the order in which they close for new ones. A closed one is in neither set. */
class Kind {
  readonly idle = new Set<Connection>();
  /** With a request in progress, or so new that their first one can have arrived, but was not read yet. */
  readonly busy = new Set<Connection>();

  get size(): number {
    return this.idle.size + this.busy.size;
  }
}

export class Connections {
  readonly #totals = { waiting: 0 };
  readonly #connections = new WeakMap<Socket, Connection>();
  /** Connections without a valid token so far. */
  readonly #anonymous = new Kind();
  readonly #authenticated = new Kind();
  /** The next requests of connections without a valid token. */
  readonly #queue: (() => void)[] = [];
  /** Whether one has started in this iteration of the event loop. */
  #hasStarted = false;
  readonly #onClose: (this: ServerResponse) => void;

  constructor() {
    const handleNext = (response: ServerResponse) => this.#handleNext(response);
    this.#onClose = function onClose() {
      handleNext(this);
    };
  }

  /** Enforces `maxConnections`: closes the least important connection if a new one exceeds it. */
  limitConnections(server: Server): void {
    server.on('connection', (socket: Socket) => {
      if (this.#anonymous.size + this.#authenticated.size >= maxConnections) {
        const groups = [this.#anonymous.idle, this.#authenticated.idle, this.#anonymous.busy];
        const [evicted] = groups.find(({ size }) => size > 0) ?? [];
        (evicted?.socket ?? socket).destroy();
        if (evicted === undefined) return;
        this.#remove(evicted);
      }
      const connection = this.#getOrCreate(socket);
      this.#anonymous.busy.add(connection);
      const settle = () => connection.current === undefined && setIdle(connection);
      setImmediate(() => setImmediate(settle)); // it is read in the next iteration
      socket.once('close', () => this.#remove(connection));
    });
    // Emitted after a TLS handshake: requests arrive on a socket of their own.
    server.on('secureConnection', (socket: Socket) => {
      const connection = this.#getOrCreate(acceptedSocket(socket));
      connection.socket = socket;
      this.#connections.set(socket, connection);
      limitPipelining(connection);
    });
  }

  /** Calls `handle` once the earlier requests on this connection have their responses. */
  schedule({ socket }: IncomingMessage, response: ServerResponse, handle: () => void): void {
    const connection = this.#getOrCreate(socket);
    response.on('close', this.#onClose);
    if (connection.current === undefined) {
      connection.current = response;
      if (connection.kind.idle.delete(connection)) connection.kind.busy.add(connection);
      if (connection.kind === this.#authenticated) handle();
      else this.#startInTurn(handle);
      return;
    }
    connection.waiting.push({ response, handle });
    this.#totals.waiting++;
    response.once('close', () => this.#totals.waiting--);
    process.nextTick(pauseIfWaiting, connection); // after the whole read has been parsed
  }

  /** Call it after a request with a valid token. At the limit, idle connections without one close first. */
  markAuthenticated(socket: Socket): void {
    const connection = this.#connections.get(socket);
    if (connection === undefined || !this.#anonymous.busy.delete(connection)) return;
    connection.kind = this.#authenticated;
    connection.kind.busy.add(connection);
  }

  /** Whether no later request has arrived on the connection. */
  isNewestRequest(request: IncomingMessage): boolean {
    const connection = this.#connections.get(request.socket);
    return connection?.current?.req === request && connection.waiting.length === 0;
  }

  /** Whether the connection closes after the response to this request. */
  isLastRequest(request: IncomingMessage): boolean {
    return (
      this.#connections.get(request.socket)?.isClosing === true && this.isNewestRequest(request)
    );
  }

  /** Closes the connection after the response to this request. Bytes after the request are not parsed. */
  closeAfter({ socket }: IncomingMessage): void {
    const connection = this.#getOrCreate(socket);
    connection.isClosing = true;
    connection.waiting.length = 0;
    if (connection.current !== undefined) connection.current.shouldKeepAlive = false;
    lingerOnClose(socket);
  }

  /** Continues a response after the client has read, if Node has released the socket. */
  resumeSending(socket: Socket): void {
    this.#connections.get(socket)?.current?.emit('drain');
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
    if (waiting.at(-1)?.response.req.complete === false) waiting.pop();
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
      setIdle(connection);
      if (connection.isClosing) linger(socket);
      return;
    }
    const handle = () => {
      if (!socket.writable) return;
      if (!connection.isClosing) socket.resume();
      next.handle();
    };
    if (connection.kind === this.#authenticated)
      setImmediate(handle); // lets other connections run first
    else this.#startInTurn(handle);
  }

  #startInTurn(handle: () => void): void {
    if (this.#hasStarted) return void this.#queue.push(handle);
    this.#hasStarted = true;
    setImmediate(() => {
      this.#hasStarted = false;
      const next = this.#queue.shift();
      if (next !== undefined) this.#startInTurn(next);
    });
    handle();
  }

  #getOrCreate(socket: Socket): Connection {
    let connection = this.#connections.get(socket);
    if (connection === undefined) {
      connection = {
        socket,
        totals: this.#totals,
        current: undefined,
        waiting: [],
        respondedEarly: undefined,
        isClosing: false,
        kind: this.#anonymous,
      };
      this.#connections.set(socket, connection);
      limitPipelining(connection);
    }
    return connection;
  }

  #remove(connection: Connection): void {
    connection.kind.idle.delete(connection);
    connection.kind.busy.delete(connection);
  }
}

/** One that has sent only part of a header is idle. */
function setIdle(connection: Connection): void {
  if (connection.kind.busy.delete(connection)) connection.kind.idle.add(connection);
}

/** The socket below a TLS socket, for which Node has no public API. */
export function acceptedSocket(socket: Socket & { _parent?: Socket | null }): Socket {
  // oxlint-disable-next-line no-underscore-dangle -- Node's name
  return socket._parent ?? socket;
}

function pauseIfWaiting({ socket, waiting }: Connection): void {
  if (waiting.length > 0) socket.pause();
}

/** The result of `onIncoming` that stops Node's parser, as for an upgrade to another protocol. */
const stopParsing = 2;

interface Parser {
  onIncoming(request: IncomingMessage, keepAlive: boolean): number;
}

/**
 * Stops Node's parser in the middle of a read, for which Node has no public API. Each parsed request costs a few
 * kilobytes until the connection closes. A test sends thousands at once.
 */
function limitPipelining(connection: Connection): void {
  const { socket, waiting, totals } = connection;
  const { parser } = socket as Socket & { parser?: Parser | null };
  if (!parser) return;
  // Node resumes the socket whenever it parses a request or reads a body.
  const resume = socket.resume.bind(socket);
  socket.resume = () => (waiting.length === 0 || !socket.writable ? resume() : socket);
  const onIncoming = parser.onIncoming.bind(parser);
  parser.onIncoming = (request, keepAlive) => {
    connection.isClosing ||=
      !socket.writable || // the last response was sent before its request had arrived
      waiting.length >= maxPipelinedRequests ||
      (connection.current !== undefined && totals.waiting >= maxPipelinedRequestsTotal);
    return connection.isClosing ? stopParsing : onIncoming(request, keepAlive);
  };
}

/**
 * Closes a connection gracefully while its client may still be sending: sends what was written, and discards what
 * arrives meanwhile.
 */
export function linger(socket: Socket): void {
  if (socket.destroyed || lingering.has(socket)) return;
  lingering.add(socket);
  socket.end();
  const timer = setTimeout(() => socket.destroy(), lingerMs);
  socket.once('close', () => clearTimeout(timer));
  // At `resume`, Node reads from the socket again. Replacing its `data` listener keeps Node from parsing.
  socket.once('resume', () => discard(socket));
  socket.pause().resume();
}

function discard(socket: Socket): void {
  let left = maxLingerBytes;
  socket.removeAllListeners('data'); // the parser's
  socket.on('data', (bytes: Buffer) => {
    left -= bytes.length;
    if (left < 0) socket.destroy();
  });
}

const lingering = new WeakSet<Socket>();

/** Makes Node linger when it closes the connection after a response with `Connection: close`. */
export function lingerOnClose(socket: Socket): void {
  socket.destroySoon = () => linger(socket);
}
