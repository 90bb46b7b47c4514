/**
 * A connection that stays open for several requests, for tests that depend on which connection a request uses.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls, type ConnectionOptions } from 'node:tls';

export interface RawAnswer {
  status: number;
  /** Header lines in lower case. */
  headers: string[];
  /** The value of `ETag` as it was sent. */
  etag: string | undefined;
  body: string;
  /** Whether it has the header `Connection: close`. */
  isLast: boolean;
}

export class Connection {
  readonly socket: Socket;
  #received = '';
  #wake = () => {};

  /** For an https address, `tls` can contain the certificate to trust. */
  constructor(address: string, tls: ConnectionOptions = {}) {
    const { protocol, hostname: host, port } = new URL(address);
    const target = { host, port: Number(port) };
    const socket = protocol === 'https:' ? connectTls({ ...tls, ...target }) : connect(target);
    this.socket = socket.setEncoding('latin1');
    this.socket.on('error', () => {}); // answer() rejects with `cut off`
    for (const event of ['readable', 'end', 'close']) this.socket.on(event, () => this.#wake());
  }

  write(bytes: string): void {
    this.socket.write(bytes);
  }

  /** Resolves when the server has closed the connection. Discards the data that it sent before. */
  async closed(): Promise<void> {
    while (await this.#readMore()) this.#received = '';
    if (!this.socket.closed) await once(this.socket, 'close');
  }

  /** The next response; undefined if the connection ends before its first byte. */
  async answer(): Promise<RawAnswer | undefined> {
    while (!this.#received.includes('\r\n\r\n')) {
      if (await this.#readMore()) continue;
      if (this.#received !== '') throw new Error(`cut off: ${this.#received.slice(0, 200)}`);
      return undefined;
    }
    const end = this.#received.indexOf('\r\n\r\n');
    const [statusLine = '', ...lines] = this.#received.slice(0, end).split('\r\n');
    this.#received = this.#received.slice(end + 4);
    const headers = lines.map((line) => line.toLowerCase());
    const status = Number(statusLine.split(' ')[1]);
    const [, etag] = /^etag: (.*)$/im.exec(lines.join('\n')) ?? [];
    const isLast = headers.includes('connection: close');
    return { status, headers, etag, body: await this.#body(status, headers), isLast };
  }

  async #body(status: number, headers: readonly string[]): Promise<string> {
    if (status < 200 || status === 204) return '';
    if (!headers.includes('transfer-encoding: chunked')) {
      const [, length = '0'] = /^content-length: (\d+)$/m.exec(headers.join('\n')) ?? [];
      return this.#take(Number(length));
    }
    const chunks: string[] = [];
    for (;;) {
      while (!this.#received.includes('\r\n')) await this.#requireMore();
      const end = this.#received.indexOf('\r\n');
      const size = parseInt(this.#received.slice(0, end), 16);
      this.#received = this.#received.slice(end + 2);
      chunks.push(await this.#take(size));
      await this.#take(2);
      if (size === 0) return chunks.join('');
    }
  }

  async #take(chars: number): Promise<string> {
    while (this.#received.length < chars) await this.#requireMore();
    const text = this.#received.slice(0, chars);
    this.#received = this.#received.slice(chars);
    return text;
  }

  async #requireMore(): Promise<void> {
    if (!(await this.#readMore())) throw new Error('cut off in the middle of a response');
  }

  /** Waits for data. Resolves to false if the connection has ended. */
  async #readMore(): Promise<boolean> {
    for (;;) {
      const bytes: string | null = this.socket.read();
      if (bytes !== null) {
        this.#received += bytes;
        return true;
      }
      if (this.socket.destroyed || this.socket.readableEnded) return false;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

/** Why a test cannot reset a connection at once; false if it can. */
export const resetsLate =
  Number(process.versions.node.split('.')[0]) < 26 &&
  'the clients of this Node close a connection that they reset some time later';
