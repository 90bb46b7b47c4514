/**
 * Limits the work of one connection. Its requests are handled one at a time, alternating with those of other
 * connections, and the socket is paused while pipelined requests wait.
 *
 * Node parses everything that one read returns: up to 64 KiB, or about 600 requests. If too many requests wait, the
 * rest of the read is discarded and the connection closes after their responses. The client repeats the others on
 * a new connection (RFC 9112, section 9.3.2).
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import {
  connectionsMax,
  lingerBytesMax,
  lingerMs,
  pipelinedRequestsMax,
  pipelinedRequestsTotalMax,
} from './limits.ts';

interface Waiting {
  response: ServerResponse;
  handle: () => void;
}

interface Connection {
  socket: Socket;
  /** Waiting requests of all connections. */
  counts: { waiting: number };
  /** The response to the request that is being handled. */
  current: ServerResponse | undefined;
  waiting: Waiting[];
  /** The previous request, if its response was sent before its body had arrived. */
  answeredEarly: IncomingMessage | undefined;
  /** If true, no further request is accepted. */
  isClosing: boolean;
}

export class Connections {
  readonly #counts = { waiting: 0 };
  readonly #connections = new WeakMap<Socket, Connection>();
  /** Without a valid token so far, oldest first. */
  readonly #anonymous = new Set<Connection>();
  readonly #authenticated = new Set<Connection>();
  readonly #onClose: (this: ServerResponse) => void;

  constructor() {
    const connections = this.#connections;
    this.#onClose = function onClose() {
      const connection = connections.get(this.req.socket);
      if (connection !== undefined) handleNext(connection, this);
    };
  }

  /** Enforces `connectionsMax`: closes the least important connection if a new one exceeds it. */
  limitConnectionsOf(server: Server): void {
    server.on('connection', (socket: Socket) => {
      if (this.#anonymous.size + this.#authenticated.size >= connectionsMax) {
        const [busyAnonymous] = this.#anonymous;
        const victim = findIdle(this.#anonymous) ?? findIdle(this.#authenticated) ?? busyAnonymous;
        (victim?.socket ?? socket).destroy();
        if (victim === undefined) return;
        this.#remove(victim);
      }
      const connection = this.#of(socket);
      this.#anonymous.add(connection);
      socket.once('close', () => this.#remove(connection));
    });
  }

  /** Calls `handle` once the earlier requests on this connection have their responses. */
  schedule({ socket }: IncomingMessage, response: ServerResponse, handle: () => void): void {
    const connection = this.#of(socket);
    response.on('close', this.#onClose);
    if (connection.current === undefined) {
      connection.current = response;
      handle();
      return;
    }
    connection.waiting.push({ response, handle });
    this.#counts.waiting++;
    response.once('close', () => this.#counts.waiting--);
    process.nextTick(pauseIfWaiting, connection); // after the whole read has been parsed
  }

  /** Call it after a request with a valid token: such a connection is among the last to be closed. */
  markAuthenticated(socket: Socket): void {
    const connection = this.#connections.get(socket);
    if (connection && this.#anonymous.delete(connection)) this.#authenticated.add(connection);
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
    const connection = this.#of(socket);
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
    const { current, waiting, answeredEarly } = connection;
    // The client would take a second response to this request for the response to its next one.
    if (answeredEarly?.complete === false) {
      linger(socket);
      return true;
    }
    if (waiting.at(-1)?.response.req.complete === false) waiting.pop();
    return current !== undefined && (current.req.complete || current.headersSent);
  }

  #of(socket: Socket): Connection {
    let connection = this.#connections.get(socket);
    if (connection === undefined) {
      connection = {
        socket,
        counts: this.#counts,
        current: undefined,
        waiting: [],
        answeredEarly: undefined,
        isClosing: false,
      };
      this.#connections.set(socket, connection);
      limitPipelining(connection);
    }
    return connection;
  }

  #remove(connection: Connection): void {
    this.#anonymous.delete(connection);
    this.#authenticated.delete(connection);
  }
}

/** Maximum number of connections to check for an idle one. */
const checkedMax = 100;

/** The oldest connection without a request. One that has sent only part of a request counts as idle. */
function findIdle(connections: Set<Connection>): Connection | undefined {
  for (const connection of connections.values().take(checkedMax).toArray()) {
    if (connection.current === undefined) return connection;
    // Move it to the end, so that busy connections do not hide idle ones from the next call.
    connections.delete(connection);
    connections.add(connection);
  }
  return undefined;
}

function handleNext(connection: Connection, closed: ServerResponse): void {
  if (connection.current !== closed) return;
  const { socket, waiting } = connection;
  const next = waiting.shift();
  connection.current = next?.response;
  connection.answeredEarly = closed.req.complete ? undefined : closed.req;
  if (next === undefined) {
    if (connection.isClosing) linger(socket);
    return;
  }
  // Other connections come first.
  setImmediate(() => {
    if (!socket.writable) return;
    if (!connection.isClosing) socket.resume();
    next.handle();
  });
}

function pauseIfWaiting({ socket, waiting }: Connection): void {
  if (waiting.length > 0) socket.pause();
}

/** To Node's parser, this result means an upgrade to another protocol, so it stops parsing. */
const stopParsing = 2;

interface Parser {
  onIncoming(request: IncomingMessage, keepAlive: boolean): number;
}

/**
 * Stops Node's parser in the middle of a read, which Node has no public API for. Each parsed request costs a few
 * kilobytes until the connection closes. A test sends thousands at once.
 */
function limitPipelining(connection: Connection): void {
  const { socket, waiting, counts } = connection;
  const { parser } = socket as Socket & { parser?: Parser | null };
  if (!parser) return;
  // Node resumes the socket whenever it parses a request or reads a body.
  const resume = socket.resume.bind(socket);
  socket.resume = () => (waiting.length === 0 || !socket.writable ? resume() : socket);
  const onIncoming = parser.onIncoming.bind(parser);
  parser.onIncoming = (request, keepAlive) => {
    connection.isClosing ||=
      !socket.writable || // the last response was sent before its request had arrived
      waiting.length >= pipelinedRequestsMax ||
      (connection.current !== undefined && counts.waiting >= pipelinedRequestsTotalMax);
    return connection.isClosing ? stopParsing : onIncoming(request, keepAlive);
  };
}

/**
 * Closes a connection whose client may still be sending. What was written is delivered, and what arrives
 * meanwhile is discarded.
 */
export function linger(socket: Socket): void {
  if (socket.destroyed || lingering.has(socket)) return;
  lingering.add(socket);
  socket.end();
  const timer = setTimeout(() => socket.destroy(), lingerMs);
  socket.once('close', () => clearTimeout(timer));
  // At `resume`, Node reads from a paused socket again. It stops doing so once another listener takes the data.
  socket.once('resume', () => discard(socket));
  socket.pause().resume();
}

function discard(socket: Socket): void {
  let left = lingerBytesMax;
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
