/**
 * Sends planned requests at their times, without waiting for earlier responses.
 */
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { quantile } from '../test/support/paced-load.ts';

export interface PlannedRequest {
  /** Milliseconds since the start of the day. */
  atMs: number;
  /** The number of the token. */
  user: number;
  method: 'GET' | 'POST' | 'DELETE';
  target: string;
}

export interface Outcome {
  requests: number;
  changes: number;
  /** Responses that are no success. */
  failed: number;
  /** From when the request should have been sent. */
  p99Ms: number;
}

/** A service that is too slow must not get more and more requests at a time. */
const maxInFlight = 256;
const body = JSON.stringify({ name: 'Monstera deliciosa', tag: 'bed 7' });

/** The requests must be in the order of their times. The first is sent at once. */
export async function replay(
  address: string,
  tokens: readonly string[],
  planned: readonly PlannedRequest[],
): Promise<Outcome> {
  const agent = new Agent({ keepAlive: true, maxSockets: maxInFlight });
  const startMs = performance.now() - (planned[0]?.atMs ?? 0);
  const latenciesMs: number[] = [];
  const inFlight = new Set<Promise<void>>();
  let failed = 0;
  const send = async ({ atMs, user, method, target }: PlannedRequest) => {
    const headers = {
      authorization: `Bearer ${tokens[user]}`,
      ...(method === 'POST' && {
        'content-type': 'application/json',
        'content-length': String(body.length),
      }),
    };
    const sent = request(address + target, { agent, method, headers });
    sent.on('error', () => {}); // it is rejected below, too
    sent.end(method === 'POST' ? body : undefined);
    try {
      const [response] = await once(sent, 'response');
      response.resume();
      await once(response, 'end');
      latenciesMs.push(performance.now() - startMs - atMs);
      if (response.statusCode >= 300) failed++;
    } catch {
      failed++; // the service has closed the idle connection at the same moment, for example
    }
  };
  for (const each of planned) {
    const earlyMs = startMs + each.atMs - performance.now();
    if (earlyMs > 1) await pause(earlyMs);
    while (inFlight.size >= maxInFlight) await Promise.race(inFlight);
    const sending = send(each).finally(() => inFlight.delete(sending));
    inFlight.add(sending);
  }
  await Promise.all(inFlight);
  agent.destroy();
  return {
    requests: planned.length,
    changes: planned.filter(({ method }) => method !== 'GET').length,
    failed,
    p99Ms: quantile(latenciesMs, 0.99),
  };
}
