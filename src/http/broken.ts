/**
 * Answers to what never becomes a request that a route could see: bytes that are not HTTP, headers
 * that are too large, a request that is too slow.
 */
import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import { Problem } from '../problem.ts';
import { linger, type Connections } from './connections.ts';
import { privateHeaders } from './headers.ts';
import { stillTimeoutMs } from './limits.ts';
import {
  answers,
  headersTooLarge,
  problemBody,
  problemMediaType,
  requestTimeout,
} from './problems.ts';

// An import would read all that node:http exports, and with WebSocket a whole HTTP client is loaded.
const { STATUS_CODES } = process.getBuiltinModule('node:http');

/**
 * For the event `clientError` of node:http: the connection cannot be used any further. If it waits for
 * the answer to another request, that answer is its last: the client would take this one for it.
 */
export function answerBrokenRequest(
  error: Error & { code?: string },
  socket: Socket,
  connections: Connections,
): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  if (!connections.endAfterWhole(socket)) answerAndEnd(socket, problemOfParser(error.code));
}

/**
 * For the event `connect` of node:http, which has let go of the connection: nothing else listens for
 * its errors, ends it if it stands still, or tells the response before it when its client has read.
 */
export function answerConnect(socket: Socket, connections: Connections, allow: string): void {
  const destroy = () => void socket.destroy();
  socket.on('error', destroy).setTimeout(stillTimeoutMs, destroy);
  if (connections.endAfterWhole(socket)) {
    socket.on('drain', () => connections.continueSending(socket));
    return;
  }
  const problem = new Problem(
    'method-not-allowed',
    'This is not a proxy. Send the request itself, without CONNECT.',
  );
  answerAndEnd(socket, problem, { Allow: allow });
}

function answerAndEnd(socket: Socket, problem: Problem, more: Record<string, string> = {}): void {
  const { status, headers, body } = answerOf(problem);
  const all = Object.entries({ ...headers, ...more });
  const lines = all.map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n`;
  socket.write(head + body);
  linger(socket);
}

function problemOfParser(code: string | undefined): Problem {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return headersTooLarge();
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return requestTimeout();
    default:
      return new Problem(
        'invalid-request',
        'This is not a well-formed HTTP/1.1 request. Percent-encode characters of the URL that are not ASCII.',
      );
  }
}

function answerOf(problem: Problem) {
  const requestId = randomUUID();
  const body = problemBody(problem, requestId);
  const headers = {
    'X-Request-Id': requestId,
    Date: new Date().toUTCString(), // RFC 9110, section 6.6.1
    ...privateHeaders,
    'Content-Type': problemMediaType,
    'Content-Length': Buffer.byteLength(body),
    Connection: 'close',
  };
  return { status: answers[problem.kind].status, headers, body };
}
