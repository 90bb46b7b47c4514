/**
 * A receiver of webhooks on 127.0.0.1, which has all that it got.
 */
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { listen } from './listen.ts';
import { until } from './until.ts';

export interface Message {
  type: string;
  data: { changes?: { id: number; event: string; plant?: object }[]; reason?: string };
}

export interface Received extends Message {
  id: string;
  headers: IncomingHttpHeaders;
  body: string;
  /** The ids of the plants. */
  plants: number[];
}

export class Receiver {
  readonly url: string;
  readonly received: Received[] = [];
  /** Requests at the same time, at most. */
  maxInProgress = 0;
  /** Responds to a message. By default, it accepts all. */
  respond: (message: Received, response: ServerResponse) => void = (_, response) =>
    accept(response);

  constructor(port: number) {
    this.url = `http://127.0.0.1:${port}/plants`;
  }

  /** Resolves to the message at this place, from 0. */
  async get(at: number): Promise<Received> {
    await until(`message ${at}`, () => this.received.length > at);
    return this.received[at] as Received; // it is there
  }

  /** Resolves once all changes up to this plant have arrived. */
  async untilPlant(id: number): Promise<void> {
    await until(`plant ${id}`, () => this.received.some(({ plants }) => plants.includes(id)));
  }
}

export const accept = (response: ServerResponse) => response.writeHead(204).end();

export const refuse = (response: ServerResponse) => response.writeHead(500).end();

export async function startReceiver(t: Pick<TestContext, 'after'>): Promise<Receiver> {
  let inProgress = 0;
  const receive = async (request: IncomingMessage, response: ServerResponse) => {
    const { headers } = request;
    receiver.maxInProgress = Math.max(receiver.maxInProgress, ++inProgress);
    response.once('close', () => inProgress--);
    const body = await text(request);
    const message: Message = JSON.parse(body);
    const plants = (message.data.changes ?? []).map(({ id }) => id);
    const received = { ...message, id: String(headers['webhook-id']), headers, body, plants };
    receiver.received.push(received);
    receiver.respond(received, response);
  };
  const server = createServer((request, response) => void receive(request, response));
  const receiver = new Receiver(await listen(t, server));
  return receiver;
}

/** Throws if the signature is wrong. */
export function verify({ headers, body }: Received, secret: string): void {
  new Webhook(secret).verify(body, headers as Record<string, string>);
}
