/**
 * A host name with two addresses, of which one is useless. The name exists only in /etc/hosts of the
 * command, which needs its own mount namespace.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { run } from '../support/command.ts';
import { cannotHaveHosts, withHosts } from '../support/own-hosts.ts';
import { PostgresServer } from '../support/postgres.ts';
import { Proxy } from '../support/proxy.ts';

const name = 'two.test';
const addresses = ['127.0.0.1', '127.0.0.2'] as const;

describe('PostgreSQL: a host name with two addresses', { skip: cannotHaveHosts() }, () => {
  let primary: PostgresServer;
  let readOnly: PostgresServer;
  before(async () => {
    [primary, readOnly] = await Promise.all([PostgresServer.make(), PostgresServer.make()]);
    await readOnly.query('ALTER SYSTEM SET default_transaction_read_only = on');
    await readOnly.query('SELECT pg_reload_conf()');
  });
  after(() => Promise.all([primary, readOnly].map((one) => one[Symbol.asyncDispose]())));

  for (const [what, isStuck, [useless, good]] of [
    ['is read-only', false, addresses],
    ['accepts connections and never responds', true, addresses.toReversed()],
  ] as const) {
    it(`connects to ${good} if ${useless} ${what}`, async (t) => {
      await using wrong = await Proxy.to(readOnly.port, useless);
      wrong.isStuck = isStuck;
      await using right = await Proxy.to(primary.port, good, wrong.port);
      const url = `${primary.url('postgres', right.port).replace('127.0.0.1', name)}?sslmode=disable`;
      const { status, stdout, stderr } = await run(['token', 'create', 'alice'], {
        env: { PLANT_STORE_DATABASE: url },
        under: withHosts(
          t,
          addresses.map((address) => `${address} ${name}`),
        ),
      });
      assert.equal(status, 0, stderr);
      assert.match(stdout, /^plant_/);
    });
  }
});
