/**
 * Responses to input that never reaches a route: bytes that are not HTTP, headers that are too large, a
 * request that arrives too slowly.
 */
import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import { Problem, problemKinds } from '../../problem.ts';
import type { Connections } from './connections.ts';
import { unsupportedFraming } from './head.ts';
import { privateHeaders } from '../response/headers.ts';
import { requestTimeoutMs } from '../limits.ts';
import { linger } from './linger.ts';
import {
  headersTooLarge,
  problemBody,
  problemMediaType,
  versionNotSupported,
} from '../response/problems.ts';

// An import would load every export of node:http, and for WebSocket a complete HTTP client.
const { STATUS_CODES } = process.getBuiltinModule('node:http');

/** An error with what the parser was given, and how much of it was valid. Fastify's type of it is wrong. */
type ParserError = Error & { code?: string; rawPacket?: Buffer; bytesParsed?: number };

/**
 * Handles the event `clientError` of node:http: the connection can no longer be used. If responses to earlier
 * requests are pending, only they are sent: the client would mistake the error for one of them.
 */
export function handleClientError(
  error: Error & { code?: string },
  socket: Socket & { secureConnecting?: boolean },
  connections: Connections,
  pathPrefix: string,
): void {
  if (error.code === 'ERR_SSL_HTTP_REQUEST') {
    const detail = 'This port requires TLS. Begin the URL with https:// instead of http://.';
    const accepted = connections.acceptedSocket(socket);
    if (accepted) respondAndClose(accepted, new Problem('invalid-request', detail), pathPrefix);
    return;
  }
  const isHandshake = socket.secureConnecting === true;
  if (error.code === 'ECONNRESET' || !socket.writable || isHandshake) {
    socket.destroy();
    return;
  }
  if (!connections.closeAfterCompleteRequests(socket)) {
    respondAndClose(socket, parserProblem(error), pathPrefix);
  }
}

function respondAndClose(socket: Socket, problem: Problem, pathPrefix: string): void {
  const requestId = randomUUID();
  const { status } = problemKinds[problem.kind];
  const body = problemBody(problem, requestId, pathPrefix);
  const headers = {
    'x-request-id': requestId,
    Date: new Date().toUTCString(), // RFC 9110, section 6.6.1
    ...privateHeaders,
    'content-type': problemMediaType,
    'content-length': Buffer.byteLength(body),
    Connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`);
  linger(socket);
}

function parserProblem(error: ParserError): Problem {
  switch (error.code) {
    case 'HPE_HEADER_OVERFLOW':
      return headersTooLarge();
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new Problem(
        'request-timeout',
        `Send the whole request within ${requestTimeoutMs / 1_000} seconds.`,
      );
    case 'HPE_INVALID_VERSION':
    case 'HPE_PAUSED_H2_UPGRADE':
      return versionNotSupported();
    case 'HPE_INVALID_TRANSFER_ENCODING':
      return unsupportedFraming();
    case 'HPE_INVALID_METHOD':
      if (!isInRequestLine(error)) break;
      return new Problem(
        'method-not-implemented',
        'The service does not support this method. Method names are in upper case.',
      );
    default: // not HTTP, or malformed
  }
  return new Problem(
    'invalid-request',
    'This is not a valid HTTP/1.1 request. Percent-encode the non-ASCII characters of the URL.',
  );
}

/** Whether the error is in a request line, rather than in bytes that are not HTTP. */
function isInRequestLine({ rawPacket, bytesParsed = 0 }: ParserError): boolean {
  const text = rawPacket?.toString('latin1') ?? '';
  const line = text.slice(text.lastIndexOf('\n', bytesParsed) + 1);
  return /^[\w!#$%&'*+.^`|~-]+ \S+ HTTP\/1\.[01]\r?\n/.test(line);
}
