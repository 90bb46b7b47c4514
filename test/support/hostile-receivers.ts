/**
 * Receivers that do what they can to harm the service: a process of its own, so that its work is not that of the service. It
 * prints their ports.
 */
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';

/** What a receiver does with a connection once a request has begun. */
const attacks: readonly ((socket: Socket) => void)[] = [
  (socket) => socket.end('HTTP/1.1 307 Moved\r\nLocation: http://169.254.169.254/latest/\r\n\r\n'),
  // It is silent.
  () => {},
  (socket) => {
    const timer = setInterval(() => socket.write('a'), 1_000);
    socket.once('close', () => clearInterval(timer));
    socket.write('HTTP/1.1 200 OK\r\nA: ');
  },
  (socket) => flood(socket, 'HTTP/1.1 200 OK\r\n', 'A: b\r\n'),
  (socket) => flood(socket, 'HTTP/1.1 500 Oh\r\n\r\n', 'aaaaaaaa'),
  (socket) => flood(socket, '', 'HTTP/1.1 102 Processing\r\n\r\n'),
  (socket) => socket.destroy(),
];

function flood(socket: Socket, first: string, more: string): void {
  const chunk = more.repeat(65_536 / more.length);
  const write = () => {
    while (socket.writable && socket.write(chunk));
  };
  socket.on('drain', write);
  socket.write(first);
  write();
}

const ports = attacks.map(async (attack) => {
  const server = createServer((socket) => {
    socket.on('error', () => {}); // the service closes it
    socket.once('data', () => attack(socket));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port; // it listens on a port
});
process.stdout.write(`${JSON.stringify(await Promise.all(ports))}\n`);
