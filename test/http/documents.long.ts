/**
 * What documents cost for clients that do not read them.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { it } from 'node:test';
import { call } from '../support/app.ts';
import { runOk, serve } from '../support/command.ts';
import { databaseFile } from '../support/database.ts';

it('holds no file and little memory for unread responses', async (t) => {
  const [connections, requestsEach] = [100, 100];
  const { url } = databaseFile(t);
  const token = await runOk(['token', 'create', 'alice', '--database', url]);
  const under = ['sh', '-c', 'ulimit -n 512 && exec "$@"', 'sh'];
  const { address, child } = await serve(t, ['--database', url], { under });
  const { hostname, port } = new URL(address);
  const body = await (await fetch(`${address}/docs`)).bytes();
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
