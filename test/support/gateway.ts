/**
 * An HTTP proxy in front of a service, which fails as a test plans.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';

export interface Gateway {
  address: string;
  /** What happens to the next requests, in this order. Requests after them are forwarded. */
  plan: Handler[];
  /** Every request so far. */
  requests: GatewayRequest[];
  /** Resolves once there were this many requests. */
  received: (count: number) => Promise<void>;
}

export interface GatewayRequest {
  /** Its method, path and query. */
  line: string;
  headers: IncomingMessage['headers'];
  atMs: number;
  /** Resolves when its connection or its response has ended. */
  closed: Promise<unknown>;
}

/** `forward` sends the request to the service, and returns the response of the service. */
export type Handler = (response: ServerResponse, forward: () => Promise<Response>) => unknown;

/** The service never gets the request. */
export const cutBefore: Handler = (response) => response.destroy();

/** The service handles the request, but its response is lost. */
export const cutAfter: Handler = async (response, forward) => {
  await forward();
  response.destroy();
};

/** There is no response. */
export const hang: Handler = () => {};

/** The response begins, but does not end. */
export const hangInBody: Handler = (response) => {
  response.writeHead(200, { 'content-type': 'application/json' }).write('[');
};

export function respond(
  status: number,
  body: string,
  headers: Record<string, string> = { 'content-type': 'text/html' },
): Handler {
  return (response) => response.writeHead(status, headers).end(body);
}

/** Starts a gateway, and stops it after the test. It serves the service at `prefix`. */
export async function startGateway(
  t: Pick<TestContext, 'after'>,
  target: string,
  { prefix = '' } = {},
): Promise<Gateway> {
  const plan: Handler[] = [];
  const requests: GatewayRequest[] = [];
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const { method = '', url = '', headers } = request;
    const closed = once(response, 'close');
    const body = await text(request);
    requests.push({ line: `${method} ${url}`, headers, atMs: performance.now(), closed });
    server.emit('received');
    const path = url.startsWith(prefix) ? url.slice(prefix.length) : '/not-found';
    const left = new AbortController();
    // A client that waits for changes can leave, but writes that have arrived are carried out.
    if (method === 'GET') void closed.then(() => left.abort());
    const forward = () => sendTo(target + path, method, headers, body, left.signal);
    try {
      await (plan.shift() ?? forwardAll)(response, forward);
    } catch (error) {
      if (!left.signal.aborted) throw error;
    }
  };
  const server = createServer((request, response) => void handle(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });
  const { port } = server.address() as AddressInfo; // it listens on a port
  return {
    address: `http://127.0.0.1:${port}${prefix}`,
    plan,
    requests,
    async received(count) {
      while (requests.length < count) await once(server, 'received');
    },
  };
}

export const forwardAll: Handler = async (response, forward) => {
  const { status, headers, body } = await forward();
  response.writeHead(status, Object.fromEntries(headers));
  response.end(body === null ? '' : Buffer.from(await new Response(body).arrayBuffer()));
};

const forwarded = ['authorization', 'content-type', 'if-match', 'idempotency-key'];

function sendTo(
  url: string,
  method: string,
  received: IncomingMessage['headers'],
  body: string,
  signal: AbortSignal,
): Promise<Response> {
  const headers = new Headers({ 'accept-encoding': 'identity' }); // fetch decodes other encodings
  for (const name of forwarded) {
    const value = received[name];
    if (value !== undefined) headers.set(name, String(value));
  }
  return fetch(url, { method, headers, body: body === '' ? null : body, signal });
}
