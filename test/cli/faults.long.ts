/**
 * Faults that take their time.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { it } from 'node:test';
import { call } from '../support/app.ts';
import { runOk, serve } from '../support/command.ts';
import { databaseFile } from '../support/database.ts';

const hangSeconds = 30;

it('answers that an outcome is unknown where the disk hangs, and reads meanwhile', async (t) => {
  if (spawnSync('strace', ['-V']).status !== 0) return t.skip('strace is not installed');
  const { url } = databaseFile(t);
  const database = ['--database', url];
  const token = await runOk(['token', 'create', 'alice', ...database]);
  const hanging = ['strace', '-D', '-f', '-qq', '-o', '/dev/null', '-e', 'trace=fsync,fdatasync'];
  const inject = ['-e', `inject=fsync,fdatasync:delay_enter=${hangSeconds}s:when=2`];
  const service = await serve(t, database, { under: [...hanging, ...inject] });
  const { address } = service;
  const create = (name: string) => call(`${address}/plants`, 'POST', { token, json: { name } });

  const answers = [];
  for (const name of ['a', 'b', 'c']) {
    const creating = create(name);
    const list = await call(`${address}/plants`, 'GET', { token });
    assert.equal(list.status, 200, 'reads go on');
    answers.push(await creating);
  }
  const [unknown, ...others] = answers.toSorted((one, other) => other.status - one.status);
  assert.equal(unknown?.status, 503);
  assert.match(unknown?.text ?? '', /outcome-unknown/);
  for (const { status } of others) assert.match(String(status), /^(201|503)$/);

  // Once the disk goes on, so does the service, and what was acknowledged is there.
  const last = await create('last');
  assert.equal(last.status, 201, last.text);
  const { json } = await call(`${address}/plants`, 'GET', { token });
  const names = (json as { name: string }[]).map(({ name }) => name);
  const acknowledged = answers.filter(({ status }) => status === 201).map((one) => one.json);
  for (const plant of [...acknowledged, last.json]) {
    assert.ok(names.includes((plant as { name: string }).name));
  }
  assert.equal(await service.stop(), 0);
});
