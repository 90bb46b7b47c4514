/**
 * The upper limit: node:http alone, which responds with the same bytes, but without storage, tokens or
 * validation. Prints its URL.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { listen, receive, send, sendCreated, sendDeleted, sendUpdated } from './bare-http.ts';
import { plantOf } from './plants.ts';

const pagePlants = 20;
const listPlants = 100_000;

const page = JSON.stringify(Array.from({ length: pagePlants }, (_, at) => plantOf(1_000 * at + 1)));
let allPlants: object[] | undefined;

listen('bare', (request, response) => {
  switch (request.method) {
    case 'POST':
      return receive(request, () => sendCreated(response));
    case 'DELETE':
      return sendDeleted(response);
    case 'PATCH':
      return receive(request, () => sendUpdated(response));
    default:
      return list(request, response);
  }
});

function list({ url }: IncomingMessage, response: ServerResponse): void {
  if (url?.includes('limit=')) return send(response, 200, page);
  allPlants ??= Array.from({ length: listPlants }, (_, at) => plantOf(at + 1));
  send(response, 200, JSON.stringify(allPlants));
}
