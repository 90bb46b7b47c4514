/**
 * One connection as bytes, its answers read as strictly as RFC 9112 is written. Bytes are strings of
 * characters up to U+00FF here, so that a failure prints what was sent.
 */
import { connect, type Socket } from 'node:net';

export interface Answer {
  status: number;
  /** Names in the case that they came in. */
  headers: [name: string, value: string][];
  body: string;
  /** Whether the server announces that it closes the connection. */
  isLast: boolean;
}

/** An answer that breaks HTTP, or none in time. */
export class WireFault extends Error {
  override readonly name = 'WireFault';
}

const patienceMs = 20_000;
const statusLine = /^HTTP\/1\.1 (\d{3}) [\x20-\x7e]*$/;
const headerLine =
  /^([!#$%&'*+.^_`|~\dA-Za-z-]+):[ \t]*((?:[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?)?)[ \t]*$/;

export function valuesOf({ headers }: Pick<Answer, 'headers'>, lowerCaseName: string): string[] {
  return headers.flatMap(([name, value]) => (name.toLowerCase() === lowerCaseName ? [value] : []));
}

export class Wire {
  readonly #socket: Socket;
  #received = '';
  #isOver = false;
  #wake = () => {};

  constructor(port: number) {
    this.#socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true, noDelay: true });
    this.#socket.setEncoding('latin1');
    this.#socket.on('error', () => {}); // what was cut off shows as an answer that is not whole
    this.#socket.on('data', (bytes) => {
      this.#received += String(bytes);
      this.#wake();
    });
    for (const event of ['end', 'close']) {
      this.#socket.on(event, () => {
        this.#isOver = true;
        this.#wake();
      });
    }
  }

  write(bytes: string): void {
    if (bytes !== '') this.#socket.write(bytes, 'latin1');
  }

  /** Writes the bytes in pieces that end at these places; the server may see each by itself. */
  async writeInPieces(bytes: string, cuts: readonly number[]): Promise<void> {
    let from = 0;
    for (const cut of [...cuts].toSorted((a, b) => a - b)) {
      if (cut <= from || cut >= bytes.length) continue;
      this.write(bytes.slice(from, cut));
      from = cut;
      await new Promise(setImmediate);
    }
    this.write(bytes.slice(from));
  }

  /** Says that no more will be sent; answers may still come. */
  halfClose(): void {
    this.#socket.end();
  }

  /** Ends the connection with a reset, once what was written is on its way. */
  async abort(): Promise<void> {
    await new Promise((resolve) => this.#socket.write('', resolve));
    this.#socket.resetAndDestroy();
  }

  close(): void {
    this.#socket.destroy();
  }

  /** Whether the server has sent unrequested bytes, or has closed. */
  get isFresh(): boolean {
    return this.#received === '' && !this.#isOver;
  }

  /** The next response; undefined if the connection ends before its first byte. */
  async answer(method: string): Promise<Answer | undefined> {
    for (;;) {
      const head = await this.#head();
      if (head === undefined) return undefined;
      const { status, headers } = head;
      if (status === 100) continue;
      const [connection = ''] = valuesOf(head, 'connection');
      const isLast = connection.toLowerCase() === 'close';
      return { status, headers, body: await this.#body(method, head), isLast };
    }
  }

  /** Resolves when the server has closed; throws if it sends anything before. */
  async nothingMore(): Promise<void> {
    while (!this.#isOver) {
      await this.#more();
      if (this.#received !== '') break;
    }
    if (this.#received !== '') {
      throw new WireFault(`bytes after the last answer: ${this.#received.slice(0, 200)}`);
    }
    this.close();
  }

  async #head(): Promise<Pick<Answer, 'status' | 'headers'> | undefined> {
    let end: number;
    while ((end = this.#received.indexOf('\r\n\r\n')) === -1) {
      if (await this.#more()) continue;
      if (this.#received === '') return undefined;
      throw new WireFault(`a head that is cut off: ${this.#received.slice(0, 200)}`);
    }
    const [first = '', ...lines] = this.#received.slice(0, end).split('\r\n');
    this.#received = this.#received.slice(end + 4);
    const [, status] = statusLine.exec(first) ?? [];
    if (status === undefined) throw new WireFault(`not a status line: ${first}`);
    const headers = lines.map((line): [string, string] => {
      const [, name, value] = headerLine.exec(line) ?? [];
      if (name === undefined || value === undefined) throw new WireFault(`not a header: ${line}`);
      return [name, value];
    });
    return { status: Number(status), headers };
  }

  async #body(method: string, head: Pick<Answer, 'status' | 'headers'>): Promise<string> {
    const lengths = valuesOf(head, 'content-length');
    const codings = valuesOf(head, 'transfer-encoding');
    if (lengths.length + codings.length > 1) throw new WireFault('two framings of one body');
    if (head.status === 204 && lengths.length + codings.length > 0) {
      throw new WireFault('204 has no content, and no header that says how long it is');
    }
    if (method === 'HEAD' || head.status < 200 || [204, 304].includes(head.status)) return '';
    const [length] = lengths;
    if (length !== undefined) {
      if (!/^\d+$/.test(length)) throw new WireFault(`Content-Length: ${length}`);
      return this.#take(Number(length));
    }
    if (codings[0] !== 'chunked') throw new WireFault('nothing says where the body ends');
    let body = '';
    for (;;) {
      const size = await this.#line();
      if (!/^[\da-f]+$/i.test(size)) throw new WireFault(`not the size of a chunk: ${size}`);
      body += await this.#take(parseInt(size, 16));
      if ((await this.#take(2)) !== '\r\n') throw new WireFault('a chunk longer than it says');
      if (parseInt(size, 16) === 0) return body;
    }
  }

  async #line(): Promise<string> {
    let end: number;
    while ((end = this.#received.indexOf('\r\n')) === -1) await this.#mustHaveMore();
    const line = this.#received.slice(0, end);
    this.#received = this.#received.slice(end + 2);
    return line;
  }

  async #take(bytes: number): Promise<string> {
    while (this.#received.length < bytes) await this.#mustHaveMore();
    const taken = this.#received.slice(0, bytes);
    this.#received = this.#received.slice(bytes);
    return taken;
  }

  async #mustHaveMore(): Promise<void> {
    if (!(await this.#more())) throw new WireFault('an answer that is cut off');
  }

  /** Waits for bytes; false if there will be none. */
  async #more(): Promise<boolean> {
    if (this.#isOver) return false;
    const before = this.#received.length;
    const tooLate = { isSo: false };
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => {
        tooLate.isSo = true;
        resolve();
      }, patienceMs);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    if (tooLate.isSo) throw new WireFault(`nothing came within ${patienceMs} ms`);
    return this.#received.length > before;
  }
}
