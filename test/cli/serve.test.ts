/**
 * What serve prints when it starts, what it refuses, and what it never logs.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { call } from '../support/app.ts';
import { run, serve, start } from '../support/command.ts';
import { databaseFile } from '../support/database.ts';
import { listen } from '../support/listen.ts';
import { quotedExecutable } from '../support/on-terminal.ts';
import { freePort } from '../support/postgres.ts';
import { serveOnTerminal } from '../support/serve-on-terminal.ts';
import { livez, startService } from '../support/service.ts';
import { shared } from '../support/shared.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

describe('serve on an empty database', { concurrency: 2 }, () => {
  it('prints its address, its database and a command that creates the first token', async (t) => {
    const folder = join(tempFolder(t), "the gardener's plants");
    mkdirSync(folder);
    const service = await serve(t, ['--database', 'sqlite:plants.db'], { cwd: folder });
    const complete =
      /^Plant Store listens on http:\/\/127\.0\.0\.1:\d+\nDatabase: (.*)\n.*\n {2}(.*)\n$/;
    await until('the output is complete', () => complete.test(service.output()));
    const [, database = '', command = ''] = complete.exec(service.output()) ?? [];
    assert.equal(database, join(folder, 'plants.db'));
    assert.match(service.output(), /^There is no token yet\. Create the first one:$/m);
    assert.ok(command.startsWith('npx plant-store token create '), command);
    assert.ok(!/plant_\w{20}/.test(service.output() + service.log()), 'no token is logged');

    // As from a shell, with the program of this checkout in place of npx.
    const npx = `npx() { shift; ${quotedExecutable} "$@"; }`;
    const { stdout } = await promisify(execFile)('sh', ['-c', `${npx}\n${command}`]);
    const token = stdout.trim();
    const json = { name: 'Monstera' };
    const { status } = await call(`${service.address}/plants`, 'POST', { token, json });
    assert.equal(status, 201);
  });

  it('on a terminal creates the first token and prints a link with it, and a readable log', async (t) => {
    const service = await serveOnTerminal(t, ['--database', databaseFile(t).url]);
    if (service === undefined) return;
    const [, link = '', token = ''] = /^ {2}(\S+)#token=(plant_\w+)$/m.exec(service.output()) ?? [];
    assert.equal(link, `${service.address}/`);
    assert.match(service.output(), /the first token \(user admin, role manager\)/);
    const json = { name: 'A' };
    const created = await call(`${service.address}/plants`, 'POST', { token, json });
    assert.equal(created.text, '{"name":"A","tag":""}');
    assert.equal(await service.interrupt(), 0);
    const words = String.raw`listening address=${service.address} database=/\S+ workers=1`;
    assert.match(service.output(), new RegExp(String.raw`^\d\d:\d\d:\d\d info  ${words}$`, 'm'));
    assert.match(service.output(), /^\d\d:\d\d:\d\d info {2}stopped$/m);
    assert.doesNotMatch(service.output(), /\{/);
  });
});

describe('serve with flags', () => {
  const started = shared((t) => {
    const args = ['--base-url', 'https://plants.example/api/', '--log-level', 'debug'];
    args.push('--keep-alive', '10m', '--cors-origin');
    args.push('https://Garden.example:443/, http://localhost:5173, chrome-extension://abc/');
    return startService(t, { plants: 2, args });
  });

  it('exits with 1 if it can open only some of its sockets', async (t) => {
    const under = ['sh', '-c', 'ulimit -n 45; exec "$0" "$@"'];
    const args = ['serve', '--port', '0', '--database', databaseFile(t).url];
    const { status, stderr } = await run(args, { under });
    assert.match(stderr, /^error: listen EMFILE: /m);
    assert.equal(status, 1);
  });

  it('exits with 1 and advice if the port is in use, or the address is of another machine', async (t) => {
    const other = await listen(t, createServer());
    for (const port of [other, started().port]) {
      const args = ['serve', '--port', String(port), '--database', databaseFile(t).url];
      const { status, stdout, stderr } = await run(args);
      assert.deepEqual([status, stdout], [1, '']);
      assert.equal(
        stderr,
        `error: Cannot listen on 127.0.0.1:${port}: the port is in use. ` +
          'Choose another with --port, or 0 for a free one.\n',
      );
    }
    // An address for documentation (RFC 5737), which no machine has.
    const elsewhere = ['--host', '192.0.2.1', '--database', databaseFile(t).url];
    const { status, stderr } = await run(['serve', ...elsewhere]);
    assert.equal(status, 1);
    assert.match(stderr, /^error: Cannot listen on 192\.0\.2\.1:.* Choose another with --host\.$/m);
  });

  it(
    'closes connections to the lock of its address',
    { skip: process.platform !== 'linux' && 'other systems have no abstract sockets' },
    async () => {
      const socket = connect(`\0plant-store 127.0.0.1:${started().port}`);
      await once(socket.resume(), 'close');
    },
  );

  it('of two services that start at once on one port, only one listens', async (t) => {
    const port = String(await freePort());
    const children = [1, 2].map(() =>
      start(['serve', '--port', port, '--database', databaseFile(t).url]),
    );
    t.after(() => children.forEach((child) => child.kill('SIGKILL')));
    const ends = children.map(async (child, at) => ({ at, stderr: await text(child.stderr) }));
    const { at, stderr } = await Promise.race(ends);
    children[1 - at]?.kill();
    await Promise.all(ends);
    assert.match(stderr, /the port is in use/);
  });

  it('--base-url is the prefix of Location, Link and the paths of /openapi.json', async () => {
    const {
      token,
      service: { address },
    } = started();
    const json = { name: 'Monstera', id: 7 };
    const created = await call(`${address}/plants`, 'POST', { token, json });
    assert.equal(created.headers.get('location'), 'https://plants.example/api/plants/7');
    const { headers } = await call(`${address}/plants?limit=1&fields=id`, 'GET', { token });
    const next = '<https://plants.example/api/plants?limit=1&after=1&fields=id>; rel="next"';
    assert.equal(headers.get('link'), next);
    const document = await call(`${address}/openapi.json`, 'GET');
    const servers = [{ url: 'https://plants.example/api' }];
    assert.partialDeepStrictEqual(document.json, { servers });
  });

  it('--keep-alive is how long a connection stays open between requests', async () => {
    const connection = started().open();
    connection.write(livez);
    assert.ok((await connection.answer())?.headers.includes('keep-alive: timeout=600'));
  });

  it('--cors-origin takes origins as people write them', async () => {
    const { address } = started().service;
    const shown = ['https://garden.example', 'http://localhost:5173', 'chrome-extension://abc'];
    for (const origin of shown) {
      const { headers } = await call(`${address}/livez`, 'GET', { headers: { origin } });
      assert.equal(headers.get('access-control-allow-origin'), origin);
    }
  });

  it('the log has every request at level debug, but never a token or the content of a plant', async () => {
    const { token, service } = started(); // it stops
    const plants = `${service.address}/plants`;
    const json = { name: 'hidden name', tag: 'hidden-tag' };
    const answers = [
      await call(plants, 'POST', { token, json }),
      await call(`${plants}?tag=hidden-tag&limit=1`, 'GET', { token }),
      await call(`${plants}/1`, 'DELETE', { token }),
      await call(`${plants}?access_token=${token}`, 'GET'),
      await call(`${plants}?hidden-query=1`, 'GET', { token }),
      await call(plants, 'POST', { token, json: { hidden: 'hidden' } }),
      await call(plants, 'GET', { token: `${token}x` }),
      await call(`${service.address}/hidden/${token}`, 'GET', { token }),
    ];
    const seen = answers.map(({ headers, status }) => [headers.get('x-request-id'), status]);
    assert.equal(await service.stop(), 0);
    const logged = service
      .log()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
      .filter(({ requestId }) => requestId !== undefined)
      .map(({ requestId, status }) => [requestId, status]);
    assert.deepEqual(logged.slice(-answers.length), seen);
    assert.deepEqual(
      seen.map(([, status]) => status),
      [201, 200, 204, 401, 400, 400, 401, 404],
    );
    assert.ok(!/hidden|plant_/.test(service.log() + service.output()), service.log());
  });
});
