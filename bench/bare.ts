/**
 * The ceiling: what node:http alone can answer on this machine, with the same bytes and no storage,
 * tokens or checks behind them. Prints its address.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { plantOf } from './plants.ts';

const pagePlants = 20;
const wholePlants = 100_000;

const json = { 'content-type': 'application/json' };
const page = JSON.stringify(Array.from({ length: pagePlants }, (_, at) => plantOf(1_000 * at + 1)));
const created = JSON.stringify(plantOf(1));
let whole: object[] | undefined;

const server = createServer((request, response) => {
  switch (request.method) {
    case 'POST':
      return create(request, response);
    case 'DELETE':
      return void response.writeHead(204).end();
    default:
      return list(request, response);
  }
});

function list({ url }: IncomingMessage, response: ServerResponse): void {
  if (url?.includes('limit=')) return send(response, 200, page);
  whole ??= Array.from({ length: wholePlants }, (_, at) => plantOf(at + 1));
  send(response, 200, JSON.stringify(whole));
}

function create(request: IncomingMessage, response: ServerResponse): void {
  let body = '';
  request.setEncoding('utf8');
  request.on('data', (chunk) => (body += String(chunk)));
  request.on('end', () => {
    JSON.parse(body);
    send(response, 201, created);
  });
}

function send(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, { ...json, 'content-length': Buffer.byteLength(body) }).end(body);
}

server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('listens on no port');
  console.log(`bare listens on http://127.0.0.1:${address.port}`);
});
