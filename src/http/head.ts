/**
 * What must be right in the head of a request before anything else is read of it: how its body is
 * framed, the host and the target (RFC 9112, sections 3 and 6). Node refuses the rest by itself.
 */
import type { IncomingMessage } from 'node:http';
import { isIPv6 } from 'node:net';
import { Problem } from '../problem.ts';
import { headerCount } from './headers.ts';
import { headersMax } from './limits.ts';
import { expectationFailed, headersTooLarge } from './problems.ts';

/** The reason to refuse the request, if there is one. */
export function headFault(request: IncomingMessage): Problem | undefined {
  if (hasTooManyHeaders(request)) return headersTooLarge();
  if (hasForeignFraming(request)) {
    return invalid(
      'Send the body with Content-Length, or in HTTP/1.1 with "Transfer-Encoding: chunked" alone.',
    );
  }
  const { url = '', httpVersion, headers } = request;
  const hosts = headerCount(request, 'host');
  if (hosts > 1 || (hosts === 0 && httpVersion !== '1.0')) {
    return invalid('Send exactly one Host header (RFC 9112, section 3.2).');
  }
  if (url.includes('#')) {
    return invalid('Send the URL without "#" and what follows it; in a query, write "%23".');
  }
  // The router would take *plants for /plants.
  if (/^\*[^?]/.test(url)) {
    return invalid('Begin the path with "/", or send "*" alone for the whole service.');
  }
  // Of a target that is a whole address, the host counts, and Host must be right all the same.
  const host = url.startsWith('/') ? undefined : /^https?:\/\/([^/?]*)/i.exec(url)?.[1];
  if (!isHost(headers.host ?? '') || (host !== undefined && (host === '' || !isHost(host)))) {
    return invalid(
      'Send a host like plants.example:8080 in Host and in the URL, and no user name.',
    );
  }
  const { expect } = headers;
  if (expect !== undefined && httpVersion !== '1.0' && !/^100-continue$/i.test(expect)) {
    return expectationFailed();
  }
  return undefined;
}

/** Whether nobody can say where the request ends: no byte after it may be read as another one. */
export function isUncertain(request: IncomingMessage): boolean {
  return hasForeignFraming(request) || hasTooManyHeaders(request);
}

function hasTooManyHeaders({ rawHeaders }: IncomingMessage): boolean {
  return rawHeaders.length > 2 * headersMax; // names and values
}

/** Whether it has a body that is framed neither by its length nor by the one coding that all know. */
function hasForeignFraming({ httpVersion, headers }: IncomingMessage): boolean {
  const coding = headers['transfer-encoding'];
  return coding !== undefined && (httpVersion !== '1.1' || coding.toLowerCase() !== 'chunked');
}

/** RFC 3986, section 3.2, without user information. An empty name is a valid Host. */
const hostAndPort = /^(?:\[([\da-f:.]+)\]|(?:[\w.~!$&'()*+,;=-]|%[\da-f]{2})*)(?::0*(\d{0,5}))?$/i;

/** The last that was valid: most requests come with the same one. */
let latestHost = '';

function isHost(text: string): boolean {
  if (text === latestHost) return true;
  const [whole, ipv6, port = ''] = hostAndPort.exec(text) ?? [];
  const isValid =
    whole !== undefined && (ipv6 === undefined || isIPv6(ipv6)) && Number(port) <= 65_535;
  if (isValid) latestHost = text;
  return isValid;
}

function invalid(detail: string): Problem {
  return new Problem('invalid-request', detail);
}
