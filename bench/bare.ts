/**
 * The limit: what node:http alone can answer on this machine, with the same bytes and no storage,
 * tokens or checks behind them. Prints its address.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { listen, receive, send, sendCreated, sendDeleted } from './bare-http.ts';
import { plantOf } from './plants.ts';

const pagePlants = 20;
const wholePlants = 100_000;

const page = JSON.stringify(Array.from({ length: pagePlants }, (_, at) => plantOf(1_000 * at + 1)));
let whole: object[] | undefined;

listen('bare', (request, response) => {
  switch (request.method) {
    case 'POST':
      return receive(request, () => sendCreated(response));
    case 'DELETE':
      return sendDeleted(response);
    default:
      return list(request, response);
  }
});

function list({ url }: IncomingMessage, response: ServerResponse): void {
  if (url?.includes('limit=')) return send(response, 200, page);
  whole ??= Array.from({ length: wholePlants }, (_, at) => plantOf(at + 1));
  send(response, 200, JSON.stringify(whole));
}
