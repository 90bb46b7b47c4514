/**
 * HTTP as bytes, for what no client would send.
 */
import { once } from 'node:events';
import { connect } from 'node:net';

/** Sends the bytes and returns all that comes until the server closes the connection. */
export async function exchange(port: number, bytes: string): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port });
  socket.setEncoding('latin1');
  let received = '';
  socket.on('data', (chunk) => (received += String(chunk)));
  socket.write(bytes, 'latin1');
  await once(socket, 'close');
  return received;
}

/** One request with these header lines, after which the server is asked to close. */
export function request(firstLine: string, headers: readonly string[], body = ''): string {
  return `${[`${firstLine} HTTP/1.1`, ...headers, 'Connection: close'].join('\r\n')}\r\n\r\n${body}`;
}
