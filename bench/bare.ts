/**
 * The upper limit: node:http alone, which responds with the same bytes as the service, but without tokens, validation
 * or plants. Prints its URL. `node bare.ts FILE` also appends each change to FILE, and syncs it before the response
 * (synced-log.ts).
 */
import { createServer, type ServerResponse } from 'node:http';
import { plantOf } from './plants.ts';
import { syncedLog } from './synced-log.ts';

const [, , file] = process.argv;
const append = file === undefined ? undefined : syncedLog(file);

const plant = JSON.stringify(plantOf(1));
const page = JSON.stringify(Array.from({ length: 20 }, (_, at) => plantOf(1_000 * at + 1)));

const server = createServer((request, response) => {
  const { method = '', url = '' } = request;
  if (method === 'GET') return send(response, 200, page);
  let body = '';
  request.setEncoding('utf8');
  request.on('data', (chunk) => (body += String(chunk)));
  request.on('end', () => {
    const respond = () => sendChange(response, method);
    if (method !== 'DELETE') JSON.parse(body);
    if (append === undefined) respond();
    else append(`${method} ${url} ${body}\n`, respond);
  });
});

server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  console.log(`bare listens on http://127.0.0.1:${address.port}`);
});

function sendChange(response: ServerResponse, method: string): void {
  if (method === 'DELETE') return void response.writeHead(204).end();
  send(response, method === 'POST' ? 201 : 200, plant);
}

function send(response: ServerResponse, status: number, body: string): void {
  const length = Buffer.byteLength(body);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': length });
  response.end(body);
}
