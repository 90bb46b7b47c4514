/**
 * serve on a socket of systemd, which stays open while the service is restarted. This process plays systemd.
 */
import assert from 'node:assert/strict';
import { closeSync, openSync, readFileSync } from 'node:fs';
import * as net from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { run, serve } from '../support/command.ts';
import { Connection } from '../support/connection.ts';
import { databaseFile } from '../support/database.ts';
import { statusOf } from '../support/service.ts';

const noSockets = !('BoundSocket' in net) && 'needs Node 26';
const advice =
  'error: A socket of systemd is not of TCP, or does not listen. ' +
  'Use ListenStream= with a port in the socket unit, and not Accept=yes.\n';

describe('serve on a socket of systemd', { concurrency: true, skip: noSockets }, () => {
  for (const workers of [1, 2]) {
    it(`responds to who connects while nothing runs (workers: ${workers})`, async (t) => {
      const { url } = databaseFile(t);
      const { address, sockets } = holdSockets(t);
      const start = async () => {
        const args = ['--database', url, '--workers', String(workers)];
        const service = await serve(t, args, { sockets });
        assert.equal(service.address, address);
        return service;
      };
      const connect = () => {
        const connection = new Connection(address);
        t.after(() => connection.socket.destroy());
        return statusOf(connection);
      };
      let service = await start();
      for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
        assert.equal(await connect(), 200);
        if (workers > 1) {
          for (const pid of childrenOf(service.child.pid)) process.kill(pid, 'SIGKILL');
          assert.equal(await connect(), 200);
        }
        await service.stop(signal);
        const waiting = Array.from({ length: 32 }, connect);
        service = await start();
        assert.deepEqual(new Set(await Promise.all(waiting)), new Set([200]));
      }
    });
  }

  it('refuses other sockets in words', async (t) => {
    const { url } = databaseFile(t);
    const file = openSync('/dev/null', 'r');
    t.after(() => closeSync(file));
    const { sockets: held } = holdSockets(t);
    for (const sockets of [[file], [...held, file]]) {
      const refused = await run(['serve', '--database', url], { sockets });
      assert.deepEqual(refused, { status: 2, stdout: '', stderr: advice });
    }
  });
});

/** Two sockets of one address. They listen once a service does. */
function holdSockets(t: TestContext) {
  const host = '127.0.0.1';
  const first = new net.BoundSocket({ host, reusePort: true });
  const { port } = first.address();
  const both = [first, new net.BoundSocket({ host, port, reusePort: true })];
  t.after(() => both.forEach((one) => one.close()));
  return { address: `http://${host}:${port}`, sockets: both.map((one) => one.fd()) };
}

function childrenOf(pid: number | undefined): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number);
}
