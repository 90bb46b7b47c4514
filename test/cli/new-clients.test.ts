/**
 * New clients, while others without a token send long requests and connect all the time.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { serve } from '../support/command.ts';
import { Connection } from '../support/connection.ts';
import { databaseFile } from '../support/database.ts';
import { Flood } from '../support/flood.ts';

const clients = 10;
/** With one listening socket, it takes 40 s. */
const maxMs = 8_000;

/** 13 kB of parameters. */
const target = `/plants?${Array.from({ length: 1_000 }, (_, at) => `p${at}=1234567`).join('&')}`;

describe('a flood of requests and connections without a token', () => {
  for (const workers of [1, 2]) {
    it(`does not keep new clients waiting (${workers} processes)`, async (t) => {
      const args = ['--database', databaseFile(t).url, '--workers', String(workers)];
      const { address } = await serve(t, args);
      const port = Number(new URL(address).port);
      const load = { connections: 512 * workers, depth: 1, reconnecting: 500 * workers };
      const flood = await Flood.start(t, { port, localAddress: '127.0.0.2', target, ...load });
      const tookMs = await Promise.all(
        Array.from({ length: clients }, async () => {
          const startedMs = performance.now();
          const connection = new Connection(address);
          const timer = setTimeout(() => connection.socket.destroy(), maxMs);
          connection.write('GET /livez HTTP/1.1\r\nHost: x\r\n\r\n');
          const answer = await connection.answer();
          clearTimeout(timer);
          connection.socket.destroy();
          return answer?.status === 200 ? Math.round(performance.now() - startedMs) : Infinity;
        }),
      );
      t.diagnostic(JSON.stringify({ tookMs, answers: await flood.stop() }));
      assert.ok(Math.max(...tookMs) < maxMs, String(tookMs));
    });
  }
});
