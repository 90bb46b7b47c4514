/**
 * A client that records the times of each request and its response, while processes and connections fail.
 */
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { Connection, type RawAnswer } from './connection.ts';
import type { Person } from './linearizability.ts';

export interface Network {
  /** Each connection uses a random address. */
  addresses: readonly string[];
  random: Random;
  /** Counts responses by kind. */
  count: (kind: string) => void;
  /** A response that takes longer counts as lost; 2 seconds by default. */
  responseTimeoutMs?: number;
}

/** Returns an integer from 0 to `bound - 1`. */
export type Random = (bound: number) => number;

export interface User extends Person {
  token: string;
}

export interface RawRequest {
  user: User;
  method: string;
  target: string;
  ifMatch?: string | undefined;
  json?: object | undefined;
}

/** A response, and the times of the request and the response. */
export interface Sent {
  /** Undefined if the response or a part of it is lost. */
  response: RawAnswer | undefined;
  /** Why the request failed; empty if it did not. */
  failure: string;
  /** Whether it failed, but can have an effect. */
  isLost: boolean;
  call: number;
  end: number;
}

/** Pause after a failure: a service that is down must not get thousands of requests a second. */
const pauseMs = 20;
const defaultResponseTimeoutMs = 2_000;
/** After this many requests, a client reconnects, perhaps to another process. */
const requestsPerConnection = 40;

/** Sends one request at a time, and reuses its connection if possible. */
export class Client implements Disposable {
  readonly #network: Network;
  #connection: Connection | undefined;
  #requestsLeft = 0;

  constructor(network: Network) {
    this.#network = network;
  }

  /** Undefined if there is no connection. Pauses after a failure. */
  async exchange(request: RawRequest): Promise<Sent | undefined> {
    const connection = await this.#connect();
    if (connection === undefined) {
      this.#network.count('no connection');
      await pause(pauseMs);
      return undefined;
    }
    const call = performance.now();
    const response = await this.#exchange(connection, bytesOf(request));
    const end = performance.now();
    if (response === undefined || response.isLast) this[Symbol.dispose]();
    const failure = failureOf(response);
    if (failure !== '') await pause(pauseMs);
    const isLost = failure === 'no response' || failure === 'outcome-unknown';
    return { response, failure, isLost, call, end };
  }

  [Symbol.dispose](): void {
    this.#connection?.socket.destroy();
    this.#connection = undefined;
  }

  async #connect(): Promise<Connection | undefined> {
    const isOld = this.#requestsLeft-- <= 0 || this.#connection?.socket.destroyed === true;
    if (isOld) this[Symbol.dispose]();
    if (this.#connection !== undefined) return this.#connection;
    const { addresses, random } = this.#network;
    const connection = new Connection(addresses[random(addresses.length)] ?? '');
    try {
      await once(connection.socket, 'connect');
    } catch {
      return undefined;
    }
    this.#requestsLeft = requestsPerConnection;
    this.#connection = connection;
    return connection;
  }

  /** Undefined if the response or a part of it is lost. */
  async #exchange(connection: Connection, bytes: string): Promise<RawAnswer | undefined> {
    const { responseTimeoutMs = defaultResponseTimeoutMs } = this.#network;
    const timeout = setTimeout(() => connection.socket.destroy(), responseTimeoutMs);
    try {
      connection.write(bytes);
      return await connection.answer();
    } catch {
      return undefined;
    } finally {
      clearTimeout(timeout);
    }
  }
}

function bytesOf({ user, method, target, ifMatch, json }: RawRequest): string {
  const body = json === undefined ? '' : JSON.stringify(json);
  const lines = [`${method} ${target} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${user.token}`];
  if (ifMatch !== undefined) lines.push(`If-Match: ${ifMatch}`);
  if (json !== undefined)
    lines.push('Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`);
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}

function failureOf(response: RawAnswer | undefined): string {
  if (response === undefined) return 'no response';
  if (response.status !== 503) return '';
  const { type } = JSON.parse(response.body) as { type: string };
  return type.replace('/problems/', '');
}
