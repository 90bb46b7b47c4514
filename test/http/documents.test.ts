/**
 * What everybody may load without a token: /openapi.json, /docs and all that it needs.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request, type IncomingHttpHeaders } from 'node:http';
import { connect } from 'node:net';
import { it } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { call, startApp } from '../support/app.ts';
import { runOk, serve } from '../support/command.ts';
import { databaseFile } from '../support/database.ts';

const paths = ['/openapi.json', '/docs', '/web/styles/reference.css', '/web/reference.ts'];

interface Loaded {
  status: number | undefined;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** A request as it is written here; fetch would ask for compression and undo it. */
async function load(
  address: string,
  path: string,
  { method = 'GET', ...headers }: Record<string, string> = {},
): Promise<Loaded> {
  const sent = request(address + path, { method, headers }).end();
  const [response] = await once(sent, 'response');
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk);
  return { status: response.statusCode, headers: response.headers, body: Buffer.concat(chunks) };
}

/** The headers that an answer to one document always has. */
const lasting = ({ headers }: Loaded) =>
  ['etag', 'vary', 'cache-control', 'x-content-type-options'].map((name) => headers[name]);

for (const path of paths) {
  it(`sends ${path} plain and compressed, each with its own ETag and length`, async (t) => {
    const { address } = await startApp(t);
    const plain = await load(address, path);
    const zipped = await load(address, path, { 'accept-encoding': 'gzip' });
    assert.deepEqual(gunzipSync(zipped.body), plain.body);
    assert.deepEqual(
      [plain.headers['content-encoding'], zipped.headers['content-encoding']],
      [undefined, 'gzip'],
    );
    assert.notEqual(plain.headers.etag, zipped.headers.etag);
    for (const encoding of ['identity', 'gzip']) {
      const headers = { 'accept-encoding': encoding };
      const got = await load(address, path, headers);
      assert.equal(got.status, 200);
      assert.match(got.headers.etag ?? '', /^"[\w-]{43}"$/);
      assert.equal(got.headers.vary, 'Accept-Encoding');
      assert.match(got.headers['cache-control'] ?? '', /^(no-cache|public, max-age=3600)$/);
      assert.equal(got.headers['x-content-type-options'], 'nosniff');
      assert.equal(got.headers['content-length'], String(got.body.length));

      const head = await load(address, path, { ...headers, method: 'HEAD' });
      const { date, 'x-request-id': id, ...its } = got.headers;
      assert.deepEqual({ date, 'x-request-id': id, ...head.headers, ...its }, head.headers);
      assert.equal(head.body.length, 0);

      for (const method of ['GET', 'HEAD']) {
        const known = { ...headers, 'if-none-match': got.headers.etag ?? '', method };
        const unchanged = await load(address, path, known);
        assert.deepEqual([unchanged.status, unchanged.body.length], [304, 0]);
        assert.deepEqual(lasting(unchanged), lasting(got));
        for (const name of ['content-length', 'content-type', 'content-encoding']) {
          assert.equal(unchanged.headers[name], undefined, name);
        }
      }
    }
  });
}

it('compresses if the client accepts it (RFC 9110, section 12.5.3)', async (t) => {
  const { address } = await startApp(t);
  const encodings = {
    gzip: ['gzip', 'GZIP', 'x-gzip', 'br, gzip', 'gzip;q=0.001', '*', 'br;q=1, *;q=0.1'],
    'gzip too': [
      'gzip;q=0.5, identity;q=0.5',
      'deflate , gzip ; q=1.000',
      'identity;q=0, gzip',
      ',gzip,',
    ],
    plain: [
      '',
      'br',
      'identity',
      'gzip;q=0',
      'gzip;q=0.000, *',
      '*;q=0',
      'gzip;q=0.4, identity;q=0.5',
    ],
    'plain too': [
      'gzip;q=2',
      'gzip;q=-1',
      'gzip;q=',
      'gzip;q',
      'gzip;level=9',
      'notgzip',
      'gzip gzip',
    ],
  };
  for (const [expected, texts] of Object.entries(encodings)) {
    for (const text of texts) {
      const { headers } = await load(address, '/docs', { 'accept-encoding': text });
      const wanted = expected.startsWith('gzip') ? 'gzip' : undefined;
      assert.equal(headers['content-encoding'], wanted, text);
    }
  }
});

it('returns 304 if the client has the document (RFC 9110, section 13.1.2)', async (t) => {
  const { address } = await startApp(t);
  const { etag = '' } = (await load(address, '/docs')).headers;
  const { etag: zipped = '' } = (await load(address, '/docs', { 'accept-encoding': 'gzip' }))
    .headers;
  const bare = etag.slice(1, -1);
  const statuses: Record<number, string[]> = {
    304: [etag, `W/${etag}`, '*', ` * `, `"a", ${etag}`, `"a,b",W/"c" , W/${etag},"d"`],
    200: ['', '"a"', bare, `"${bare}`, `"${bare.toLowerCase()}"`, zipped, `"*"`, `"W/${bare}"`],
  };
  for (const [status, texts] of Object.entries(statuses)) {
    for (const text of texts) {
      const answer = await load(address, '/docs', { 'if-none-match': text });
      assert.equal(answer.status, Number(status), text);
    }
  }
});

it('holds no file and little memory for unread responses', async (t) => {
  const [connections, requestsEach] = [100, 100];
  const { url } = databaseFile(t);
  const token = await runOk(['token', 'create', 'alice', '--database', url]);
  const under = ['sh', '-c', 'ulimit -n 512 && exec "$@"', 'sh'];
  const { address, child } = await serve(t, ['--database', url], { under });
  const { hostname, port } = new URL(address);
  const { body } = await load(address, '/docs');
  const idleKb = residentKb(child.pid);

  const requests = `GET /docs HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(requestsEach);
  for (let at = 0; at < connections; at++) {
    const socket = connect({ host: hostname, port: Number(port) });
    t.after(() => socket.destroy());
    socket.write(requests);
    await once(socket, 'readable'); // the response has begun, and nothing is read
  }
  const created = await call(`${address}/plants`, 'POST', { token, json: { name: 'Monstera' } });
  assert.equal(created.status, 201, created.text);
  if (idleKb === undefined) return t.diagnostic('memory is measured only on Linux');
  const takenKb = ((residentKb(child.pid) ?? 0) - idleKb) / connections;
  const sentKb = (body.length * requestsEach) / 1000;
  t.diagnostic(`a connection that leaves ${sentKb} KB unread takes ${Math.round(takenKb)} KB`);
  assert.ok(takenKb < sentKb / 10, `${takenKb} KB`);
});

function residentKb(pid: number | undefined): number | undefined {
  if (process.platform !== 'linux') return undefined;
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}
