/**
 * HTTP as raw bytes, for requests that HTTP clients cannot send.
 */
import { once } from 'node:events';
import { connect } from 'node:net';

/** Sends the bytes, and returns all data until the server closes the connection. */
export async function exchange(port: number, bytes: string): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port });
  socket.setEncoding('latin1');
  let received = '';
  socket.on('data', (chunk) => (received += String(chunk)));
  socket.write(bytes, 'latin1');
  await once(socket, 'close');
  return received;
}

/** A request with these header lines and `Connection: close`. */
export function request(firstLine: string, headers: readonly string[], body = ''): string {
  return `${[`${firstLine} HTTP/1.1`, ...headers, 'Connection: close'].join('\r\n')}\r\n\r\n${body}`;
}
