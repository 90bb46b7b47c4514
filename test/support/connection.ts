/**
 * One connection that stays open for a request after another, for what depends on the connection
 * that a request goes over.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

export interface RawAnswer {
  status: number;
  /** Lines of the head in lower case, without the first. */
  headers: string[];
  body: string;
  /** Whether the server says that it closes the connection after this. */
  isLast: boolean;
}

export class Connection {
  readonly socket: Socket;
  #received = '';
  #wake = () => {};

  constructor(address: string) {
    const { hostname, port } = new URL(address);
    this.socket = connect({ host: hostname, port: Number(port) }).setEncoding('latin1');
    this.socket.on('error', () => {}); // what was cut off shows as an answer that is not whole
    for (const event of ['readable', 'end', 'close']) this.socket.on(event, () => this.#wake());
  }

  write(bytes: string): void {
    this.socket.write(bytes);
  }

  /** Resolves when the server has closed; what it sent before is thrown away. */
  async closed(): Promise<void> {
    while (await this.#more()) this.#received = '';
    if (!this.socket.closed) await once(this.socket, 'close');
  }

  /** The next answer; undefined where the connection ends before there is any byte of one. */
  async answer(): Promise<RawAnswer | undefined> {
    while (!this.#received.includes('\r\n\r\n')) {
      if (await this.#more()) continue;
      if (this.#received !== '') throw new Error(`cut off: ${this.#received.slice(0, 200)}`);
      return undefined;
    }
    const end = this.#received.indexOf('\r\n\r\n');
    const [statusLine = '', ...lines] = this.#received.slice(0, end).split('\r\n');
    this.#received = this.#received.slice(end + 4);
    const headers = lines.map((line) => line.toLowerCase());
    const status = Number(statusLine.split(' ')[1]);
    const isLast = headers.includes('connection: close');
    return { status, headers, body: await this.#body(status, headers), isLast };
  }

  async #body(status: number, headers: readonly string[]): Promise<string> {
    if (status < 200 || status === 204) return '';
    if (!headers.includes('transfer-encoding: chunked')) {
      const [, length = '0'] = /^content-length: (\d+)$/m.exec(headers.join('\n')) ?? [];
      return this.#take(Number(length));
    }
    const chunks: string[] = [];
    for (;;) {
      while (!this.#received.includes('\r\n')) await this.#mustHaveMore();
      const end = this.#received.indexOf('\r\n');
      const size = parseInt(this.#received.slice(0, end), 16);
      this.#received = this.#received.slice(end + 2);
      chunks.push(await this.#take(size));
      await this.#take(2);
      if (size === 0) return chunks.join('');
    }
  }

  async #take(chars: number): Promise<string> {
    while (this.#received.length < chars) await this.#mustHaveMore();
    const taken = this.#received.slice(0, chars);
    this.#received = this.#received.slice(chars);
    return taken;
  }

  async #mustHaveMore(): Promise<void> {
    if (!(await this.#more())) throw new Error('cut off in the middle of an answer');
  }

  /** Waits for bytes; false where there will be none. */
  async #more(): Promise<boolean> {
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
