/**
 * The service behind all reverse proxies of docs/how-to/deploy.md, requests that never become complete, and responses that
 * take long.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect as connectHttp2, constants } from 'node:http2';
import { connect as connectPlain } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { connect } from 'node:tls';
import { requestTimeoutMs } from '../../src/http/limits.ts';
import { startApp } from '../support/app.ts';
import {
  clientOf,
  missing,
  reverseProxyNames,
  startReverseProxy,
  type ReverseProxyName,
} from '../support/reverse-proxies.ts';
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

describe('a request that waits for changes', { concurrency: true }, () => {
  for (const name of reverseProxyNames) {
    const skip = missing(name);

    it(`waits for 25 seconds behind ${name}, and a change ends it at once`, { skip }, async (t) => {
      const { app, proxy, token, next, arrival } = await startWaiting(t, name);
      const { send } = clientOf(t, proxy, token);
      const follow = async (path: string) => {
        const { status, body, headers } = await send('GET', path);
        assert.equal(status, 200, body);
        return { body, link: String(headers['link']), atMs: performance.now() };
      };
      const startedMs = performance.now();
      const { body: nothing, link, atMs } = await follow(next);
      assert.equal(nothing, '[]');
      assert.ok(atMs - startedMs > 24_900, `${atMs - startedMs} ms`);
      const arrived = arrival();
      const following = follow(nextOf(link));
      await arrived;
      await app.call('POST', '/plants', { token, json: { name: 'Monstera' } });
      const createdMs = performance.now();
      const { body, atMs: endedMs } = await following;
      assert.match(body, /^\[\{"id":1,"event":"created"/);
      assert.ok(endedMs - createdMs < 1_000, `${endedMs - createdMs} ms`);
    });

    for (const protocol of ['http/1.1', 'h2']) {
      it(`ends behind ${name} when its client leaves, with ${protocol}`, { skip }, async (t) => {
        const { proxy, token, next, arrival } = await startWaiting(t, name);
        const arrived = arrival();
        const host = 'plants.example';
        const socket = connect({
          port: proxy.httpsPort,
          host: '127.0.0.1',
          servername: host,
          ca: proxy.ca,
          ALPNProtocols: [protocol],
        });
        let leave: () => void = () => socket.destroy();
        if (protocol === 'h2') {
          const session = connectHttp2(`https://${host}`, { createConnection: () => socket });
          t.after(() => session.destroy());
          const stream = session.request({ ':path': next, authorization: `Bearer ${token}` });
          leave = () => stream.close(constants.NGHTTP2_CANCEL); // as a browser does
        } else {
          socket.write(requestText(`GET ${next}`, { token }).replace('Host: x', `Host: ${host}`));
        }
        const closed = once(await arrived, 'close');
        const leftMs = performance.now();
        leave();
        await closed;
        assert.ok(performance.now() - leftMs < 5_000, `${performance.now() - leftMs} ms`);
      });
    }
  }
});

/** A proxy in front of a service, and the path of the changes from now on. */
async function startWaiting(t: TestContext, name: ReverseProxyName) {
  let arrive: (response: ServerResponse) => void = () => {};
  const app = await startApp(t, {
    addRoutes: ({ server }) =>
      server.prependListener('request', ({ url }: IncomingMessage, response: ServerResponse) => {
        if (url !== '/readyz') arrive(response);
      }),
  });
  const proxy = await startReverseProxy(t, name, app.port);
  const token = await app.token('alice');
  const { headers } = await app.call('GET', '/changes?wait=25', { token });
  const next = nextOf(headers.get('link') ?? '');
  /** Resolves when the next request has arrived. */
  const arrival = () => new Promise<ServerResponse>((resolve) => (arrive = resolve));
  return { app, proxy, token, next, arrival };
}

function nextOf(link: string): string {
  const [, next] = /^<(.*)>; rel="next"$/.exec(link) ?? [];
  return next ?? assert.fail(link);
}
