/**
 * Shared by bare.ts and synced-log.ts: a server on node:http alone that reads a create request and responds
 * with the same bytes as the service.
 */
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http';
import { plantOf } from './plants.ts';

const json = { 'content-type': 'application/json' };
const created = JSON.stringify(plantOf(1));

/** Calls `done` with the body of a create request when it has arrived. Throws if it is not JSON. */
export function receive(request: IncomingMessage, done: (body: string) => void): void {
  let body = '';
  request.setEncoding('utf8');
  request.on('data', (chunk) => (body += String(chunk)));
  request.on('end', () => {
    JSON.parse(body);
    done(body);
  });
}

export function sendCreated(response: ServerResponse): void {
  send(response, 201, created);
}

export function sendUpdated(response: ServerResponse): void {
  send(response, 200, created);
}

export function sendDeleted(response: ServerResponse): void {
  response.writeHead(204).end();
}

export function send(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, { ...json, 'content-length': Buffer.byteLength(body) }).end(body);
}

/** Listens on a free port and prints the URL. */
export function listen(name: string, listener: RequestListener): void {
  const server = createServer(listener);
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('the server has no port');
    console.log(`${name} listens on http://127.0.0.1:${address.port}`);
  });
}
