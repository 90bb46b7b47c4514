/**
 * What the commands print about a PostgreSQL server that they cannot use.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { run, runOk, serve } from '../support/command.ts';
import { freePort, PostgresServer, query } from '../support/postgres.ts';
import { databaseBehindProxy } from '../support/proxy.ts';
import { emptyDatabase } from '../support/storages.ts';
import { sourceOf } from '../cli/copy.ts';

/** Its password is unlike any other word of a message. */
let server: PostgresServer;
before(async () => void (server = await PostgresServer.make()));
after(() => server[Symbol.asyncDispose]());

function withParts(parts: { password?: string; pathname?: string; search?: string }): string {
  return Object.assign(new URL(server.url()), parts).href;
}

describe('PostgreSQL: the commands', () => {
  it('fail at startup on errors that waiting does not fix, without showing the password', async () => {
    for (const [database, expected, message] of [
      [withParts({ password: 'hunter2' }), 1, /refuses the user or the password in the address/],
      [withParts({ pathname: '/nowhere' }), 1, /has no database with the name in the address/],
      ['mysql://u:hunter2@host/db', 2, /Use sqlite:PATH or postgres:/],
      ['postgres://u:hunter2/@host/db', 2, /is not the address of a PostgreSQL server/],
      ['postgres://u:hunter2@host/db?x=y', 2, /an unknown parameter/],
    ] as const) {
      for (const args of [
        ['serve', '--port', '0', '--database', database],
        ['copy', '--to', 'sqlite:never-made.db', '--from', database],
      ]) {
        const { status, stdout, stderr } = await run(args);
        assert.deepEqual([status, stdout], [expected, '']);
        assert.match(stderr, message);
        assert.ok(!stderr.includes('hunter2') && !stderr.includes(passwordOf(server.url())));
      }
    }
  });

  it('never show a password, even if an argument is mistyped', async () => {
    const url = 'postgres://plants:hunter2@127.0.0.1/plants';
    for (const args of [
      ['serve', url],
      [url],
      ['serve', `--databse=${url}`],
      ['serve', '--port', url],
      ['backup', url],
      ['migrate', '--database', `sqlite:${url}/x`],
    ]) {
      const { status, stdout, stderr } = await run(args);
      assert.notEqual(status, 0);
      assert.match(stderr, /^error: /);
      assert.ok(!(stdout + stderr).includes('hunter2'), stderr);
    }
  });

  it('show why a server does not respond', async () => {
    const port = await freePort();
    for (const [database, cause] of [
      [`postgres://u:hunter2@127.0.0.1:${port}/db`, /: connect ECONNREFUSED 127\.0\.0\.1:\d+\.$/],
      [
        'postgres://u:hunter2@nowhere.invalid/db',
        /: (?:getaddrinfo E\w+ nowhere\.invalid|timeout expired)\.$/,
      ],
      [
        withParts({ search: '?sslmode=verify-full' }),
        /The database server does not support TLS\. .*sslmode=disable/,
      ],
      [withParts({ password: '' }), /: SASL: .* password/],
    ] as const) {
      const { status, stderr } = await run(['token', 'list', '--database', database]);
      assert.equal(status, 1);
      assert.match(stderr.trim(), cause);
      assert.ok(!stderr.includes('hunter2'));
    }
  });

  it('create a schema only if they store something', async (t) => {
    const { url } = await emptyDatabase(t, 'PostgreSQL');
    const target = await emptyDatabase(t, 'SQLite');
    const nothing =
      /There is no Plant Store in this database\. Create its tables with "npx plant-store migrate"\./;
    for (const args of [
      ['token', 'list', '--database', url],
      ['token', 'revoke', '0123456789abcdef', '--database', url],
      ['copy', '--from', url, '--to', target.url],
    ]) {
      const { status, stderr } = await run(args);
      assert.equal(status, 1);
      assert.match(stderr, nothing);
    }
    const schemas = await query(url, "SELECT 1 FROM pg_namespace WHERE nspname = 'plant_store'");
    assert.deepEqual(schemas, []);
    await runOk(['token', 'create', 'alice', '--database', url]);
    assert.match(await runOk(['token', 'list', '--database', url]), /alice/);
  });

  it('suggest the next command without the password when serve starts', async (t) => {
    const env = { PLANT_STORE_DATABASE: server.url() };
    const service = await serve(t, ['--log-level', 'debug'], { env });
    await service.stop();
    assert.match(
      service.output(),
      /npx plant-store token create alice --database postgres:\/\/plants:PASSWORD@127\.0\.0\.1:/,
    );
    assert.ok(!(service.output() + service.log()).includes(passwordOf(server.url())));
  });

  it('show how to resume an interrupted copy', async (t) => {
    const source = await sourceOf(t, 'SQLite', 5_000);
    const { url, proxy } = await databaseBehindProxy(t);
    proxy.bytesToLive = () => 50_000; // enough for all but the plants
    const args = ['copy', '--from', source.url, '--to', url];
    const { status, stderr } = await run(args);
    assert.equal(status, 1);
    assert.match(
      stderr,
      /The copy was interrupted: .*\. Fix the cause, then continue with --resume\.$/m,
    );
    proxy.bytesToLive = () => Infinity;
    assert.match(
      await runOk([...args, '--resume']),
      / \(stores: 3, users: 4, plants: 5000, changes: 47, idempotency_keys: 0, shares: 41, tokens: 5\)\./,
    );
  });
});

function passwordOf(url: string): string {
  return new URL(url).password;
}
