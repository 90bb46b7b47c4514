/**
 * The service behind the reverse proxies of docs/how-to/deploy.md, and requests that never become complete.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import { connect } from 'node:tls';
import { startApp } from '../support/app.ts';
import { missing, reverseProxyNames, startReverseProxy } from '../support/reverse-proxies.ts';
import { testProxy } from './proxies.ts';

for (const name of reverseProxyNames) if (name !== 'nginx') testProxy(name);

describe('a create whose body never becomes complete', { concurrency: true }, () => {
  for (const name of reverseProxyNames) {
    it(`is refused by ${name}`, { skip: missing(name) }, async (t) => {
      const app = await startApp(t);
      const token = await app.token('alice');
      const { httpsPort: port, ca } = await startReverseProxy(t, name, app.port);
      const socket = connect({ host: '127.0.0.1', port, servername: 'plants.example', ca });
      const head = [
        'POST /plants HTTP/1.1',
        'Host: plants.example',
        `Authorization: Bearer ${token}`,
        'Content-Type: application/json',
        'Content-Length: 400',
      ];
      let received = '';
      socket.setEncoding('latin1').on('data', (chunk) => (received += String(chunk)));
      socket.write(`${head.join('\r\n')}\r\n\r\n{`);
      await once(socket, 'close');
      // nginx closes the connection without a response.
      assert.match(received, name === 'nginx' ? /^$/ : /^HTTP\/1\.1 408 [^]*request-timeout/);
    });
  }
});
