/**
 * Closes connections whose clients can still be sending. Without this, the system could reset the connection before the
 * client has read the last response (RFC 9112, section 9.6).
 */
import type { Socket } from 'node:net';

/** How long, and for how many bytes, a closing connection is still read. */
const lingerMs = 2_000;
const maxLingerBytes = 16 * 1024 * 1024;

const lingering = new WeakSet<Socket>();

/** Sends what was written, and discards what arrives meanwhile. */
export function linger(socket: Socket): void {
  if (socket.destroyed || lingering.has(socket)) return;
  lingering.add(socket);
  socket.end();
  const timer = setTimeout(() => socket.destroy(), lingerMs);
  socket.once('close', () => clearTimeout(timer));
  // At `resume`, Node reads from the socket again. Replacing its `data` listener keeps Node from parsing.
  socket.once('resume', () => discard(socket));
  socket.pause().resume();
}

function discard(socket: Socket): void {
  let left = maxLingerBytes;
  socket.removeAllListeners('data'); // the parser's
  socket.on('data', (bytes: Buffer) => {
    left -= bytes.length;
    if (left < 0) socket.destroy();
  });
}

/** Makes Node linger when it closes the connection after a response with `Connection: close`. */
export function lingerOnClose(socket: Socket): void {
  socket.destroySoon = () => linger(socket);
}
