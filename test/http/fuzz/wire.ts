/**
 * One connection as bytes, its answers read as strictly as RFC 9112 is written. Bytes are strings of
 * characters up to U+00FF here, so that a failure prints what was sent.
 */
import { EventEmitter, once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { Bytes } from './request.ts';

export interface Answer {
  status: number;
  /** Names in the case that they came in. */
  headers: [name: string, value: string][];
  body: Bytes;
}

const patienceMs = 20_000;
const statusLine = /^HTTP\/1\.1 (\d{3}) [\x20-\x7e]*$/;
const headerLine =
  /^([!#$%&'*+.^_`|~\dA-Za-z-]+):[ \t]*((?:[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?)?)[ \t]*$/;

export function valuesOf({ headers }: Pick<Answer, 'headers'>, lowerCaseName: string): string[] {
  return headers.flatMap(([name, value]) => (name.toLowerCase() === lowerCaseName ? [value] : []));
}

/** Whether the server announces that it closes the connection. */
export function isLast(answer: Answer | undefined): boolean {
  return (
    valuesOf(answer ?? { headers: [] }, 'connection')
      .join()
      .toLowerCase() === 'close'
  );
}

export class Wire {
  readonly #socket: Socket;
  readonly #progress = new EventEmitter();
  #received = '';
  #isOver = false;

  constructor(port: number) {
    this.#socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true, noDelay: true });
    this.#socket.setEncoding('latin1');
    this.#socket.on('error', () => {}); // what was cut off shows as an answer that is not whole
    this.#socket.on('data', (bytes) => {
      this.#received += String(bytes);
      this.#progress.emit('progress');
    });
    for (const event of ['end', 'close']) {
      this.#socket.on(event, () => {
        this.#isOver = true;
        this.#progress.emit('progress');
      });
    }
  }

  /** Writes the bytes in pieces that end at these parts of a thousand; the server may see each by itself. */
  async write(bytes: Bytes, cuts: readonly number[] = []): Promise<void> {
    let from = 0;
    for (const cut of [...cuts, 1_000].toSorted((one, other) => one - other)) {
      const to = Math.floor((cut * bytes.length) / 1_000);
      if (to > from) this.#socket.write(bytes.slice(from, to), 'latin1');
      from = to;
      await new Promise(setImmediate);
    }
  }

  /** Says that no more will be sent; answers may still come. */
  halfClose(): void {
    this.#socket.end();
  }

  close(): void {
    this.#socket.destroy();
  }

  /** Whether the server has neither sent unrequested bytes nor closed. */
  get isFresh(): boolean {
    return this.#received === '' && !this.#isOver;
  }

  /** The next response; undefined if the connection ends before its first byte. */
  async answer(method: string): Promise<Answer | undefined> {
    for (;;) {
      const first = answerIn(this.#received, method);
      if (first !== undefined) {
        this.#received = first.rest;
        if (first.answer.status !== 100) return first.answer;
      } else if (!(await this.#more())) {
        if (this.#received === '') return undefined;
        throw new Error(`an answer that is cut off: ${this.#received.slice(0, 200)}`);
      }
    }
  }

  /** Resolves when the server has closed; throws if it sends anything before. */
  async nothingMore(): Promise<void> {
    while (this.#received === '' && (await this.#more()));
    if (this.#received !== '')
      throw new Error(`bytes after the last answer: ${this.#received.slice(0, 200)}`);
    this.close();
  }

  /** Waits for bytes; false if there will be none. */
  async #more(): Promise<boolean> {
    if (this.#isOver) return false;
    const before = this.#received.length;
    await once(this.#progress, 'progress', { signal: AbortSignal.timeout(patienceMs) });
    return this.#received.length > before;
  }
}

/** The first response in the bytes; undefined if it is not whole. */
export function answerIn(
  bytes: Bytes,
  method: string,
): { answer: Answer; rest: Bytes } | undefined {
  const end = bytes.indexOf('\r\n\r\n');
  if (end === -1) return undefined;
  const [first = '', ...lines] = bytes.slice(0, end).split('\r\n');
  const [, status] = statusLine.exec(first) ?? [];
  if (status === undefined) throw new Error(`not a status line: ${first}`);
  const headers = lines.map((line): [string, string] => {
    const [, name, value] = headerLine.exec(line) ?? [];
    if (name === undefined || value === undefined) throw new Error(`not a header: ${line}`);
    return [name, value];
  });
  const head = { status: Number(status), headers };
  const content = contentIn(bytes.slice(end + 4), method, head);
  return content && { answer: { ...head, body: content.body }, rest: content.rest };
}

function contentIn(
  bytes: Bytes,
  method: string,
  head: Omit<Answer, 'body'>,
): { body: Bytes; rest: Bytes } | undefined {
  const lengths = valuesOf(head, 'content-length');
  const framing = [...lengths, ...valuesOf(head, 'transfer-encoding')];
  if (framing.length > 1) throw new Error('two framings of one body');
  if (head.status === 204 && framing.length > 0) throw new Error('a length of a 204');
  if (method === 'HEAD' || head.status < 200 || [204, 304].includes(head.status))
    return { body: '', rest: bytes };
  if (framing.join() === 'chunked') return chunksIn(bytes);
  const [length = ''] = lengths;
  if (!/^\d+$/.test(length)) throw new Error(`no length of the body: ${framing.join()}`);
  if (bytes.length < Number(length)) return undefined;
  return { body: bytes.slice(0, Number(length)), rest: bytes.slice(Number(length)) };
}

function chunksIn(bytes: Bytes): { body: Bytes; rest: Bytes } | undefined {
  let body = '';
  for (let rest = bytes; rest.includes('\r\n');) {
    const [line = '', size] = /^([\da-f]+)\r\n/i.exec(rest) ?? [];
    if (size === undefined) throw new Error(`not the size of a chunk: ${rest.slice(0, 200)}`);
    const end = line.length + parseInt(size, 16);
    if (rest.length < end + 2) return undefined;
    if (!rest.startsWith('\r\n', end)) throw new Error('a chunk longer than it says');
    body += rest.slice(line.length, end);
    rest = rest.slice(end + 2);
    if (end === line.length) return { body, rest };
  }
  return undefined;
}
