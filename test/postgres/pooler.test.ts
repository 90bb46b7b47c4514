/**
 * Behind a connection pooler, the time limits of a session do not apply. So the service does not start.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { PostgresStorage } from '../../src/postgres/storage.ts';
import { freePort, query } from '../support/postgres.ts';
import { without } from '../support/programs.ts';
import { testDatabase } from '../support/storages.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

/** Starts PgBouncer before the server of this database, and returns the address of the database behind it. */
async function pool(t: TestContext, database: string, settings: string): Promise<string> {
  const { hostname, port, username, password, pathname } = new URL(database);
  const [name, ownPort] = [pathname.slice(1), await freePort()];
  const server = `host=${hostname} port=${port} user=${username} password='${decodeURIComponent(password)}'`;
  const configuration = `
    [databases]
    ${name} = ${server} dbname=${name}
    [pgbouncer]
    listen_addr = 127.0.0.1
    listen_port = ${ownPort}
    unix_socket_dir =
    auth_type = any
    ${settings}`;
  const file = join(tempFolder(t), 'pgbouncer.ini');
  writeFileSync(file, configuration.replaceAll(/^ +/gm, ''), { mode: 0o644 });
  // It refuses to run as root, and changes its user only after it has read the file.
  const user = process.getuid?.() === 0 ? ['--user', 'nobody'] : [];
  const child = spawn('pgbouncer', ['--quiet', ...user, file], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ended = once(child, 'exit');
  t.after(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const url = `postgres://${username}@127.0.0.1:${ownPort}/${name}`;
  await until('PgBouncer serves', () =>
    query(url, 'SELECT 1').then(
      () => true,
      () => false,
    ),
  );
  return url;
}

const parameters = 'statement_timeout, lock_timeout, idle_in_transaction_session_timeout';

for (const mode of ['session', 'transaction']) {
  for (const what of ['refuses', 'ignores', 'ignores all but one of']) {
    test(
      `does not start behind PgBouncer in ${mode} mode that ${what} the time limits`,
      { skip: without('pgbouncer') },
      async (t) => {
        const { url } = await testDatabase(t, 'PostgreSQL');
        const name = new URL(url).pathname.slice(1);
        // The database itself has one of them.
        const set = `ALTER DATABASE ${name} SET lock_timeout = '2s'`;
        if (what === 'ignores all but one of') await query(url, set);
        const ignored = what === 'refuses' ? '' : `ignore_startup_parameters = ${parameters}`;
        await using storage = new PostgresStorage(
          await pool(t, url, `pool_mode = ${mode}\n${ignored}`),
        );
        await assert.rejects(storage.open(), {
          name: 'Refusal',
          message: /time limits of its session\. Connect to the server itself, not to a pooler/,
        });
      },
    );
  }
}
