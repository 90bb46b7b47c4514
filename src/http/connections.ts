/**
 * What one connection can ask for at a time. Its requests are handled one after another, in turn with
 * those of other connections, and nothing more is read from it while some wait. Node parses everything
 * that one read from the socket brought (64 KiB, some 600 requests), so the rest of a read is thrown
 * away once a few requests wait: the connection ends after their answers, and the client repeats the
 * others on a new one (RFC 9112, section 9.3.2).
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import {
  allWaitingRequestsMax,
  connectionsMax,
  lingerBytesMax,
  lingerMs,
  waitingRequestsMax,
} from './limits.ts';

interface Waiting {
  response: ServerResponse;
  handle: () => void;
}

interface Connection {
  socket: Socket;
  /** Requests that wait, of all connections. */
  counts: { waiting: number };
  /** The response of the request that is being handled. */
  current: ServerResponse | undefined;
  waiting: Waiting[];
  /** The last request that was answered, if its body had not arrived by then. */
  answeredEarly: IncomingMessage | undefined;
  /** No further request is taken. */
  isEnding: boolean;
}

export class Connections {
  readonly #counts = { waiting: 0 };
  readonly #connections = new WeakMap<Socket, Connection>();
  /** Oldest first. */
  readonly #strangers = new Set<Connection>();
  readonly #trusted = new Set<Connection>();
  readonly #onClose: (this: ServerResponse) => void;

  constructor() {
    const connections = this.#connections;
    this.#onClose = function onClose() {
      const connection = connections.get(this.req.socket);
      if (connection !== undefined) handleNext(connection, this);
    };
  }

  /** Keeps room for new connections of this server: the ones that matter least make it. */
  admitTo(server: Server): void {
    server.on('connection', (socket: Socket) => {
      if (this.#strangers.size + this.#trusted.size >= connectionsMax) {
        const [busyStranger] = this.#strangers;
        const victim = idleOf(this.#strangers) ?? idleOf(this.#trusted) ?? busyStranger;
        (victim?.socket ?? socket).destroy();
        if (victim === undefined) return;
        this.#remove(victim);
      }
      const connection = this.#of(socket);
      this.#strangers.add(connection);
      socket.once('close', () => this.#remove(connection));
    });
  }

  /** Calls `handle` now, or when the requests that came before over this connection are answered. */
  begin({ socket }: IncomingMessage, response: ServerResponse, handle: () => void): void {
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
    process.nextTick(pause, connection); // after the whole read has been parsed
  }

  /** A valid token came over the connection: when connections run out, it is among the last to go. */
  trust(socket: Socket): void {
    const connection = this.#connections.get(socket);
    if (connection && this.#strangers.delete(connection)) this.#trusted.add(connection);
  }

  /** True if no other request has come over the connection since. */
  isNewestRequest(request: IncomingMessage): boolean {
    const connection = this.#connections.get(request.socket);
    return connection?.current?.req === request && connection.waiting.length === 0;
  }

  /** True if this is the last answer of its connection. */
  isFinalAnswer(request: IncomingMessage): boolean {
    return (
      this.#connections.get(request.socket)?.isEnding === true && this.isNewestRequest(request)
    );
  }

  /** Makes the answer to this request the last: no byte after it is handled as another request. */
  endAfterThis({ socket }: IncomingMessage): void {
    const connection = this.#of(socket);
    connection.isEnding = true;
    connection.waiting.length = 0;
    if (connection.current !== undefined) connection.current.shouldKeepAlive = false;
    lingerAtEnd(socket);
  }

  /** For a connection that Node has let go of: what is being sent continues when the client has read. */
  continueSending(socket: Socket): void {
    this.#connections.get(socket)?.current?.emit('drain');
  }

  /**
   * Ends the connection after the answers to the requests that have come whole. Returns false if there is
   * no such request: the caller then answers the one that broke off.
   */
  endAfterWhole(socket: Socket): boolean {
    const connection = this.#connections.get(socket);
    if (connection === undefined) return false;
    connection.isEnding = true;
    const { current, waiting, answeredEarly } = connection;
    // The client would take a second answer to this request for the answer to its next one.
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
        isEnding: false,
      };
      this.#connections.set(socket, connection);
      boundParsing(connection);
    }
    return connection;
  }

  #remove(connection: Connection): void {
    this.#strangers.delete(connection);
    this.#trusted.delete(connection);
  }
}

/** Connections that are checked to find an idle one. */
const checkedMax = 100;

/** One without a request, the oldest first. One that has only begun to send a request counts as idle. */
function idleOf(connections: Set<Connection>): Connection | undefined {
  for (const connection of connections.values().take(checkedMax).toArray()) {
    if (connection.current === undefined) return connection;
    // Checked last next time: many busy ones must not hide the idle ones behind them.
    connections.delete(connection);
    connections.add(connection);
  }
  return undefined;
}

function handleNext(connection: Connection, ended: ServerResponse): void {
  if (connection.current !== ended) return;
  const { socket, waiting } = connection;
  const next = waiting.shift();
  connection.current = next?.response;
  connection.answeredEarly = ended.req.complete ? undefined : ended.req;
  if (next === undefined) {
    if (connection.isEnding) linger(socket);
    return;
  }
  // Other connections get their turn first.
  setImmediate(() => {
    if (!socket.writable) return;
    if (!connection.isEnding) socket.resume();
    next.handle();
  });
}

function pause({ socket, waiting }: Connection): void {
  if (waiting.length > 0) socket.pause();
}

/** What Node's parser takes for "this connection speaks another protocol now": it parses no further. */
const parseNoFurther = 2;

interface Parser {
  onIncoming(request: IncomingMessage, keepAlive: boolean): number;
}

/**
 * Node has no public way to stop in the middle of a read, and each request that it parses costs some
 * kilobytes until the connection ends. A test sends thousands at once.
 */
function boundParsing(connection: Connection): void {
  const { socket, waiting, counts } = connection;
  const { parser } = socket as Socket & { parser?: Parser | null };
  if (!parser) return;
  // Node resumes the socket whenever it parses a request or reads a body.
  const resume = socket.resume.bind(socket);
  socket.resume = () => (waiting.length === 0 || !socket.writable ? resume() : socket);
  const onIncoming = parser.onIncoming.bind(parser);
  parser.onIncoming = (request, keepAlive) => {
    connection.isEnding ||=
      !socket.writable || // the last answer went out while its request was still coming
      waiting.length >= waitingRequestsMax ||
      (connection.current !== undefined && counts.waiting >= allWaitingRequestsMax);
    return connection.isEnding ? parseNoFurther : onIncoming(request, keepAlive);
  };
}

/**
 * Ends a connection whose client may still be sending: what was written arrives, then the end, and what
 * comes meanwhile is thrown away.
 */
export function linger(socket: Socket): void {
  if (socket.destroyed || lingering.has(socket)) return;
  lingering.add(socket);
  socket.end();
  const timer = setTimeout(() => socket.destroy(), lingerMs);
  socket.once('close', () => clearTimeout(timer));
  // Node reads from a paused connection again at this event, and no more once somebody else takes the data.
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

/** Makes Node linger when it closes the connection after the answer that says so. */
export function lingerAtEnd(socket: Socket): void {
  socket.destroySoon = () => linger(socket);
}
