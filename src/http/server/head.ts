/**
 * Checks the head of a request before anything else: framing of the body, host and target (RFC 9112, sections 3
 * and 6). Node checks the rest.
 */
import type { IncomingMessage } from 'node:http';
import { isIPv6 } from 'node:net';
import { Problem } from '../../problem.ts';
import { headerCount } from '../response/headers.ts';
import { maxHeaders, maxListMembers, maxPathChars } from '../limits.ts';
import { headersTooLarge, versionNotSupported } from '../response/problems.ts';

/** The headers that the service splits, and where. */
const listFields = [
  ['If-Match', 'if-match', ','],
  ['If-None-Match', 'if-none-match', ','],
  ['Accept-Encoding', 'accept-encoding', ','],
  ['Content-Type', 'content-type', ';'],
] as const;

/**
 * The problem with the head of the request, if there is one. The connection must then close after the response: where
 * such a request ends can be ambiguous, and Node drops headers above the limit, which can frame the body.
 */
export function headProblem(request: IncomingMessage): Problem | undefined {
  const { url = '', httpVersion, headers, rawHeaders } = request;
  if (rawHeaders.length > 2 * maxHeaders) return headersTooLarge(); // names and values
  // Node also parses HTTP/0.9 and HTTP/2.0 in a request line.
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return versionNotSupported();
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && (httpVersion !== '1.1' || coding.toLowerCase() !== 'chunked')) {
    return unsupportedFraming();
  }
  const hosts = headerCount(request, 'host');
  if (hosts > 1 || (hosts === 0 && httpVersion !== '1.0')) {
    return invalid('Send exactly one Host header (RFC 9112, section 3.2).');
  }
  if (url.includes('#')) {
    return invalid('Remove "#" and what follows it from the URL. In a query, write "%23".');
  }
  // The router would treat *plants as /plants.
  if (/^\*[^?]/.test(url)) {
    return invalid('Begin the path with "/", or send "*" alone for the whole service.');
  }
  // A target in absolute form has its own host, but Host must be valid as well.
  const host = url.startsWith('/') ? undefined : /^https?:\/\/([^/?]*)/i.exec(url)?.[1];
  if (!isHost(headers.host ?? '') || (host !== undefined && (host === '' || !isHost(host)))) {
    return invalid(
      'Send a host like plants.example:8080 in Host and in the URL, without a user name.',
    );
  }
  const pathChars = url.indexOf('?') === -1 ? url.length : url.indexOf('?');
  if (pathChars > maxPathChars) {
    return invalid(`Use a path of at most ${maxPathChars} characters.`);
  }
  if (isLongList(url.slice(pathChars), '&')) {
    return invalid(`Send at most ${maxListMembers} parameters in the URL.`);
  }
  for (const [name, field, separator] of listFields) {
    const value = headers[field];
    if (typeof value === 'string' && isLongList(value, separator)) {
      return invalid(`Send at most ${maxListMembers} members in "${name}", empty ones included.`);
    }
  }
  const { expect } = headers;
  if (expect !== undefined && httpVersion !== '1.0' && !/^100-continue$/i.test(expect)) {
    return new Problem('expectation-failed', 'Only "Expect: 100-continue" is supported.');
  }
  return undefined;
}

/** Node's parser refuses some of these itself. Clients get the same problem from the parser and from our check. */
export function unsupportedFraming(): Problem {
  return invalid(
    'Send the body with Content-Length, or in HTTP/1.1 with "Transfer-Encoding: chunked" alone.',
  );
}

/** Counting costs little, and the members of a long list would cost several times its length. */
function isLongList(text: string, separator: string): boolean {
  if (text.length < maxListMembers) return false;
  let separators = 0;
  for (let at = text.indexOf(separator); at !== -1; at = text.indexOf(separator, at + 1)) {
    if (++separators === maxListMembers) return true;
  }
  return false;
}

/** RFC 3986, section 3.2, without user information. An empty Host is valid. */
const hostAndPort = /^(?:\[([\da-f:.]+)\]|(?:[\w.~!$&'()*+,;=-]|%[\da-f]{2})*)(?::0*(\d{0,5}))?$/i;

/** Nearly all requests have the same one. */
let lastHost = '';

function isHost(text: string): boolean {
  if (text === lastHost) return true;
  const [match, ipv6, port = ''] = hostAndPort.exec(text) ?? [];
  const isValid = match !== undefined && (ipv6 === undefined || isIPv6(ipv6));
  if (!isValid || Number(port) > 65_535) return false;
  lastHost = text;
  return true;
}

function invalid(detail: string): Problem {
  return new Problem('invalid-request', detail);
}
