/**
 * A request as data, close enough to its bytes to express what no client would send.
 */

/** Text that holds bytes: every character is at most U+00FF. */
export type Bytes = string;

export interface Request {
  method: Bytes;
  target: Bytes;
  version: '1.0' | '1.1';
  headers: readonly (readonly [name: Bytes, value: Bytes])[];
  body: Bytes;
  /** How the body is cut if Transfer-Encoding is chunked; the rest is the last chunk. */
  chunks?: readonly number[];
}

export function utf8Bytes(text: string): Bytes {
  return Buffer.from(text, 'utf8').toString('latin1');
}

/** Values of a header in their order, without the white space around them. */
export function sent({ headers }: Request, lowerCaseName: string): Bytes[] {
  return headers.flatMap(([name, value]) =>
    name.toLowerCase() === lowerCaseName ? [value.replace(/^[ \t]+|[ \t]+$/g, '')] : [],
  );
}

export function isChunked(request: Request): boolean {
  return sent(request, 'transfer-encoding').some((value) => /chunked$/i.test(value));
}

const methods = /^(?:GET|HEAD|POST|PUT|DELETE|OPTIONS|TRACE|PATCH|PROPFIND|SEARCH|PURGE|QUERY)$/;

/** Whether a service sees the same request, however its bytes arrive, and where it ends (RFC 9112, section 6). */
export function isFramed(request: Request): boolean {
  const lengths = sent(request, 'content-length');
  const codings = sent(request, 'transfer-encoding');
  const framing = [...lengths, ...codings].join();
  return (
    methods.test(request.method) &&
    (framing === '' || framing === String(request.body.length) || framing === 'chunked') &&
    (codings.length === 0 || request.version === '1.1')
  );
}

export function bytesOf(request: Request): Bytes {
  const { method, target, version, headers, body } = request;
  const lines = headers.map(([name, value]) => `${name}:${value}\r\n`);
  const head = `${method} ${target} HTTP/${version}\r\n${lines.join('')}\r\n`;
  return head + (isChunked(request) ? chunked(request) : body);
}

function chunked({ body, chunks = [] }: Request): Bytes {
  let bytes = '';
  let from = 0;
  for (const size of [...chunks, body.length]) {
    const chunk = body.slice(from, from + size);
    from += chunk.length;
    if (chunk !== '') bytes += `${chunk.length.toString(16)}\r\n${chunk}\r\n`;
  }
  return `${bytes}0\r\n\r\n`;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Undefined if the bytes are not JSON in UTF-8. */
export function parse(body: Bytes): unknown {
  try {
    return JSON.parse(utf8.decode(Buffer.from(body, 'latin1')));
  } catch {
    return undefined;
  }
}
