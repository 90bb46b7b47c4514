/**
 * The log of changes, as the operator sees it.
 */
import assert from 'node:assert/strict';
import { startApp } from '../support/app.ts';
import { run, runOk } from '../support/command.ts';
import { it, itOnce } from '../support/storages.ts';

it('log shows changes to plants, shares and tokens, by users and by the operator', async (t) => {
  const app = await startApp(t);
  const env = { PLANT_STORE_DATABASE: app.database.url };
  const token = await runOk(['token', 'create', 'alice', '--scope', 'plants:write,shares:write'], {
    env,
  });
  await app.call('POST', '/plants', { token, json: { name: 'Monstera', tag: 'indoor' } });
  await app.call('PATCH', '/plants/1', { token, json: { name: 'Fern' } });
  await app.call('PUT', '/shares/bob', { token, json: { access: 'read' } });
  await app.call('POST', '/plants', { token, json: { name: 'Aloe' } });
  await runOk(['share', 'alice', 'bob', 'write'], { env });
  await runOk(['token', 'create', 'heir'], { env });
  await runOk(['token', 'create', 'heir', '--role', 'manager', '--yes'], { env });
  await runOk(['user', 'remove', 'alice', '--plants-to', 'heir', '--yes'], { env });

  const log = async (...args: string[]) => {
    const printed = await runOk(['log', ...args], { env });
    return printed === '' ? [] : printed.split('\n').map((line) => JSON.parse(line));
  };
  const all = await log();
  assert.deepEqual(
    all.map(({ event, user, plant, owner, name, tag }) => [event, user, plant, owner, name, tag]),
    [
      ['token-created', undefined, undefined, 'alice', all[0].name, 'plants:write shares:write'],
      ['created', 'alice', 1, undefined, undefined, undefined],
      ['updated', 'alice', 1, 'alice', 'Monstera', 'indoor'],
      ['shared', 'alice', undefined, 'alice', 'bob', 'read'],
      ['created', 'alice', 2, undefined, undefined, undefined],
      ['share-changed', undefined, undefined, 'alice', 'bob', 'write'],
      ['token-created', undefined, undefined, 'heir', all[6].name, 'plants:read plants:write'],
      ['role-changed', undefined, undefined, 'heir', undefined, 'manager'],
      ['token-created', undefined, undefined, 'heir', all[8].name, 'plants:read plants:write'],
      ['token-revoked', undefined, undefined, 'alice', all[0].name, 'plants:write shares:write'],
      ['share-ended', undefined, undefined, 'alice', 'bob', 'write'],
      ['moved', undefined, 1, 'alice', 'Fern', 'indoor'],
      ['moved', undefined, 2, 'alice', 'Aloe', ''],
      ['user-removed', undefined, undefined, 'alice', undefined, undefined],
    ],
  );
  for (const { user, token: id, request, at } of all) {
    assert.equal(id, user === undefined ? undefined : all[0].name);
    assert.equal(request === undefined, user === undefined);
    assert.ok(Date.now() - Date.parse(at) < 60_000);
  }
  const ofPlant = (await log('--plant', '1')).map(({ event }) => event);
  assert.deepEqual(ofPlant, ['created', 'updated', 'moved']);
  assert.equal((await log('--user', 'alice', '--since', '1h')).length, 4);
  assert.equal((await log('--user', 'nobody')).length, 0);
  const { stdout } = await run(['log', '--plant', '1'], { env, isTerminal: true });
  assert.match(
    stdout,
    /^AT +USER +CHANGE +PLANT +DETAILS\n\S+ +alice +created +1\n\S+ +alice +updated +1 +before: Monstera · indoor · alice\n/,
  );
  const [header, ...others] = (await run(['log'], { env, isTerminal: true })).stdout.split('\n');
  assert.match(header ?? '', /^AT +USER +CHANGE +PLANT +DETAILS$/);
  assert.ok(
    others.some((line) => / the operator +share changed +alice with bob: write$/.test(line)),
  );
  assert.ok(others.some((line) => / the operator +role changed +heir: manager$/.test(line)));
  const none = await run(['log', '--user', 'nobody'], { env, isTerminal: true });
  assert.equal(none.stdout, 'AT  USER  CHANGE  PLANT  DETAILS\n');
  const { status, stderr } = await run(['log', '--store', 'north'], { env });
  assert.equal(status, 1);
  assert.match(stderr, /north/);

  await app.database.run(`UPDATE changes SET at = at - ${40 * 24 * 3_600_000} WHERE plant = 1`);
  const printed = async (...args: string[]) => {
    const part = await run(['log', ...args], { env });
    return [part.stdout.split('\n').length - 1, part.stderr];
  };
  const hidden = 'Older changes are hidden. To show them, set --keep-changes.\n';
  assert.deepEqual(await printed(), [all.length - 3, hidden]);
  assert.deepEqual(await printed('--since', '50d'), [all.length - 3, hidden]);
  assert.deepEqual(await printed('--plant', '1', '--since', '30d'), [0, '']);
  assert.deepEqual(await printed('--keep-changes', '90d'), [all.length, '']);
});

itOnce(
  'log --since and --plant read a part of the log, and find what is out of order',
  async (t) => {
    const app = await startApp(t);
    const env = { PLANT_STORE_DATABASE: app.database.url };
    await app.token('alice');
    const [rows, minuteMs] = [40_000, 60_000];
    // A change each 20 seconds for 9 days, by processes whose clocks differ by half an hour.
    const startMs = Date.now() - rows * 20_000;
    await app.database.run(`
    WITH RECURSIVE rows (at) AS (SELECT 1 UNION ALL SELECT at + 1 FROM rows WHERE at < ${rows})
    INSERT INTO changes (store, version, number, event, at, plant, owner, name, tag, is_restorable)
    SELECT (SELECT min(store) FROM stores), at + 1, 1, 'updated', ${startMs} + at * 20000 - (at % 2) * ${30 * minuteMs}, at, 1, 'a', '', 0
    FROM rows;
    UPDATE changes SET at = ${startMs} WHERE version = 1;
    UPDATE stores SET version = ${rows} + 1`);
    const read = async (...args: string[]) => {
      const before = process.cpuUsage();
      const printed = await runOk(['log', ...args], { env });
      const { user, system } = process.cpuUsage(before);
      return { cpu: user + system, found: printed.split('\n').length };
    };
    const whole = await read('--user', 'alice');
    const since = await read('--since', '60m');
    assert.ok(Math.abs(since.found - 135) <= 2, `${since.found}`); // 90 of the even ones, 45 of the others
    const plant = await read('--plant', '20000');
    assert.equal(plant.found, 1);
    for (const { cpu } of [since, plant])
      assert.ok(cpu * 3 < whole.cpu, `${cpu} and ${whole.cpu} µs`);
  },
);
