/**
 * The service behind all reverse proxies of docs/how-to/deploy.md, and requests that never become complete.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectPlain } from 'node:net';
import { describe, it } from 'node:test';
import { connect } from 'node:tls';
import { requestTimeoutMs } from '../../src/http/limits.ts';
import { startApp } from '../support/app.ts';
import { missing, reverseProxyNames, startReverseProxy } from '../support/reverse-proxies.ts';
import { parted, requestText } from '../support/service.ts';

await import('./proxies.test.ts');

describe('a create that never becomes complete', { concurrency: true }, () => {
  const headers = ['X-Slow: '];
  for (const [what, part] of [
    ['header', (request: string) => request.slice(0, -4)],
    ['body', (request: string) => parted(request)[0]],
  ] as const) {
    it(`is refused after 30 to 32 seconds, with an incomplete ${what}`, async (t) => {
      const app = await startApp(t);
      const token = await app.token('alice');
      const socket = connectPlain({ host: '127.0.0.1', port: app.port });
      const startedMs = performance.now();
      const body = what === 'body' ? 'a'.repeat(1_000) : undefined;
      socket.write(part(requestText('POST /plants', { token, body, headers })));
      const drip = setInterval(() => socket.write('1'), 500);
      t.after(() => clearInterval(drip));
      let received = '';
      socket.setEncoding('latin1').on('data', (text) => (received += String(text)));
      await once(socket, 'end');
      const tookMs = performance.now() - startedMs;
      assert.match(received, /^HTTP\/1\.1 408 /);
      const [leastMs, mostMs] = [requestTimeoutMs - 100, requestTimeoutMs + 2_000];
      assert.ok(tookMs > leastMs && tookMs < mostMs, `${tookMs} ms`);
    });
  }

  for (const name of reverseProxyNames) {
    it(`is refused by ${name}`, { skip: missing(name) }, async (t) => {
      const app = await startApp(t);
      const token = await app.token('alice');
      const { httpsPort: port, ca } = await startReverseProxy(t, name, app.port);
      const socket = connect({ host: '127.0.0.1', port, servername: 'plants.example', ca });
      let received = '';
      socket.setEncoding('latin1').on('data', (chunk) => (received += String(chunk)));
      const request = requestText('POST /plants', { token, body: '{'.padEnd(400) });
      socket.write(request.replace('Host: x', 'Host: plants.example').slice(0, -399));
      await once(socket, 'close');
      // nginx closes the connection without a response.
      assert.match(received, name === 'nginx' ? /^$/ : /^HTTP\/1\.1 408 [^]*request-timeout/);
    });
  }
});
