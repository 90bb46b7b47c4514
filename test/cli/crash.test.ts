import assert from 'node:assert/strict';
import { it } from 'node:test';
import { scopes, type ShareAccess } from '../../src/access/access.ts';
import { SqliteStorage } from '../../src/sqlite/storage.ts';
import { addToken, call } from '../support/app.ts';
import { serve, type Service } from '../support/command.ts';
import { databaseFile, fill, soundIds } from '../support/database.ts';
import { shareLedger, type ShareLedger } from '../support/ledger.ts';
import { until } from '../support/until.ts';

const clients = 8;

it('kill -9 during writes loses no acknowledged change', async (t) => {
  const { path, url } = databaseFile(t);
  const token = await fill(path, 0);
  const sharing = await (async () => {
    await using storage = new SqliteStorage(path, { create: false });
    return addToken(storage, 'bob', { scopes });
  })();
  const shares = shareLedger();
  const acknowledged: number[] = [];
  let service = await serve(t, ['--database', url]);
  for (let round = 1; round <= 2; round++) {
    const writing = [
      ...Array.from({ length: clients }, () => write(service, token, acknowledged)),
      share(service, sharing, shares, round),
    ];
    const enough = acknowledged.length + 100;
    await until('enough plants are written', () => acknowledged.length >= enough);
    await service.stop('SIGKILL');
    await Promise.all(writing);

    service = await serve(t, ['--database', url]);
    const answered = new Set(await idsOf(service, token));
    const lost = acknowledged.filter((id) => !answered.has(id));
    assert.deepEqual(lost, []);
    const { json } = await call(`${service.address}/shares`, 'GET', { token: sharing });
    shares.check((json as { given: { user: string; access: ShareAccess }[] }).given);
    assert.deepEqual(new Set(soundIds(path)), answered);
  }
  assert.equal(await service.stop(), 0);
  assert.equal(new Set(acknowledged).size, acknowledged.length, 'no id was assigned twice');
});

/** Creates plants until the service is gone, and notes each that was acknowledged. */
async function write({ address }: Service, token: string, acknowledged: number[]): Promise<void> {
  const options = { token, json: { name: 'Monstera' } };
  for (;;) {
    const url = `${address}/plants?fields=id`;
    const answer = await call(url, 'POST', options).catch(() => undefined);
    if (answer === undefined) return;
    assert.equal(answer.status, 201, answer.text);
    acknowledged.push(JSON.parse(answer.text).id);
  }
}

/** Changes shares until the service is gone. */
async function share({ address }: Service, token: string, shares: ShareLedger, round: number) {
  const gone = new AbortController();
  const send = async (method: string, path: string, json?: object) => {
    const answer = await call(address + path, method, { token, json }).catch(() => undefined);
    if (answer === undefined) gone.abort();
    return answer && { ...answer, kind: '' };
  };
  for (let turn = 0; !gone.signal.aborted; turn++) await shares.change(round, turn, send);
}

async function idsOf({ address }: Service, token: string): Promise<number[]> {
  const { text } = await call(`${address}/plants?fields=id`, 'GET', { token });
  const plants: { id: number }[] = JSON.parse(text);
  return plants.map(({ id }) => id);
}
