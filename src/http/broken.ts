/**
 * Answers for what never becomes a request that a route could see: bytes that are not HTTP, headers
 * too large, a request too slow, an expectation that is not known.
 */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Problem } from '../problem.ts';
import { headerBytesMax, requestTimeoutMs } from './limits.ts';
import { answers, problemBody, problemMediaType } from './problems.ts';

// An import would read all that node:http exports, and with WebSocket a whole HTTP client is loaded.
const { STATUS_CODES } = process.getBuiltinModule('node:http');

interface Owed {
  latest: ServerResponse | undefined;
  before: ServerResponse | undefined;
}

/**
 * Which connections still wait for answers to requests that came whole. Answers are sent in the
 * order of their requests, so the last two tell of all.
 */
export class AnswersOwed {
  readonly #connections = new WeakMap<Socket, Owed>();
  /** Lets go of what is answered: a connection may stay idle for long, with all its headers in memory. */
  readonly #onFinish: (this: ServerResponse) => void;

  constructor() {
    const connections = this.#connections;
    this.#onFinish = function onFinish() {
      const owed = connections.get(this.req.socket);
      if (owed?.latest === this) owed.latest = undefined;
      if (owed?.before === this) owed.before = undefined;
    };
  }

  begin(request: IncomingMessage, response: ServerResponse): void {
    const owed = this.#connections.get(request.socket);
    if (owed === undefined) {
      this.#connections.set(request.socket, { latest: response, before: undefined });
    } else {
      owed.before = owed.latest;
      owed.latest = response;
    }
    response.on('finish', this.#onFinish);
  }

  /** Ends the connection after the last answer; false where there is none to wait for. */
  endAfterLast(socket: Socket): boolean {
    const { latest, before } = this.#connections.get(socket) ?? {};
    // A request whose body broke off gets no answer from its route, unless that has begun one.
    const isBroken = latest?.req.complete === false && !latest.headersSent;
    const last = isBroken ? before : latest;
    if (last === undefined) return false;
    last.once('finish', () => socket.end(() => socket.destroy()));
    return true;
  }

  /** True where no other request has come over the connection since. */
  isLatest(request: IncomingMessage): boolean {
    return this.#connections.get(request.socket)?.latest?.req === request;
  }
}

/**
 * For the event `clientError` of node:http: the connection cannot be used any further. Where it
 * waits for the answer to another request, that one is its last: this one would be taken for it.
 */
export function answerBrokenRequest(
  error: Error & { code?: string },
  socket: Socket,
  owed: AnswersOwed,
): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  if (owed.endAfterLast(socket)) return;
  const { status, headers, body } = answerOf(problemOf(error.code));
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n`;
  socket.end(head + body, () => socket.destroy());
}

/** For the event `checkExpectation` of node:http (RFC 9110, section 10.1.1). */
export function answerExpectation(_request: IncomingMessage, response: ServerResponse): void {
  const { status, headers, body } = answerOf(
    new Problem('expectation-failed', 'Only "Expect: 100-continue" is known here.'),
  );
  response.writeHead(status, headers).end(body);
}

function problemOf(code: string | undefined): Problem {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new Problem(
        'headers-too-large',
        `The URL and the headers may have ${headerBytesMax} bytes together.`,
      );
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new Problem(
        'request-timeout',
        `Send the whole request within ${requestTimeoutMs / 1_000} seconds.`,
      );
    default:
      return new Problem(
        'invalid-request',
        'This is not a well-formed HTTP/1.1 request; what is not ASCII in a URL must be percent-encoded.',
      );
  }
}

function answerOf(problem: Problem) {
  const requestId = randomUUID();
  const body = problemBody(problem, requestId);
  const headers = {
    'X-Request-Id': requestId,
    'Content-Type': problemMediaType,
    'Content-Length': Buffer.byteLength(body),
    Connection: 'close',
  };
  return { status: answers[problem.kind].status, headers, body };
}
