import assert from 'node:assert/strict';
import { it } from 'node:test';
import { scopes } from '../../src/access/access.ts';
import { serve } from '../support/command.ts';
import { soundIds } from '../support/database.ts';
import { ledger } from '../support/ledger.ts';
import { startService } from '../support/service.ts';
import { until } from '../support/until.ts';

const users = 8;

it('kill -9 during writes loses no acknowledged change', async (t) => {
  const started = await startService(t);
  const { path, url, port, tokenOf } = started;
  let { service } = started;
  const role = ['--role', 'manager', '--scope', scopes.join()];
  const token = await tokenOf('bob', '--store', 'elsewhere', ...role);
  const book = ledger([service.address], token, { isSharing: true });
  await book.begin();
  const created = () => book.counts['POST 201'] ?? 0;
  for (let round = 0; round < 2; round++) {
    let isRunning = true;
    const work = Array.from({ length: users }, (_, at) =>
      book.work(users * round + at + 1, () => isRunning),
    );
    const enough = created() + 60;
    await until('enough plants are written', () => created() >= enough);
    const killed = service.stop('SIGKILL');
    isRunning = false;
    await Promise.all([killed, ...work]);

    service = await serve(t, ['--database', url, '--port', String(port)]);
    await book.check();
    assert.ok(soundIds(path).length > 0);
  }
  assert.equal(await service.stop(), 0);
});
