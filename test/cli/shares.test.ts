import assert from 'node:assert/strict';
import { test } from 'node:test';
import { maxOwnersInReach, scopes } from '../../src/access/access.ts';
import type { Storage } from '../../src/storage.ts';
import { addToken } from '../support/app.ts';
import { run, runOk } from '../support/command.ts';
import { addOwners } from '../support/many-rows.ts';
import { itOnce, storageOf, testDatabase } from '../support/storages.ts';
import { identify, idOf } from '../support/tokens.ts';

test('shows names and labels of others on a terminal, but not their control characters', async (t) => {
  const database = await testDatabase(t);
  const { url } = database;
  await using storage = await database.open();
  const names = ['日本', 'a\u202eb'];
  const shown = ['日本', 'a<U+202E>b'];
  let token = '';
  for (const user of names) {
    token = await runOk(['token', 'create', user, '--label', 'x\u2028\u2066y', '--database', url]);
  }
  const { caller } = (await identify(storage, token)) ?? assert.fail();
  await storage.plants.create(caller, { name: 'Fern', id: 42 });
  const onTerminal = async (command: string) => {
    const args = [...command.split(' '), '--database', url];
    const { stdout, stderr } = await run(args, { isTerminal: true });
    return stdout + stderr;
  };
  assert.equal(
    await onTerminal('user list'),
    'STORE  USER        ROLE    ACTIVE TOKENS\n' +
      'main   a<U+202E>b  member  1\n' +
      'main   日本        member  1\n',
  );
  assert.match(await onTerminal('token list'), /  x<U\+2028><U\+2066>y\n.*  x<U\+2028>/);
  assert.equal(
    await onTerminal(`share ${names.join(' ')} read`),
    `${shown[1]} can read all plants of ${shown[0]}.\n`,
  );
  assert.equal(
    await onTerminal('shares'),
    `OWNER  USER        ACCESS\n${shown.join('   ')}  read\n`,
  );
  assert.match(
    await onTerminal(`access ${names[1]} 42`),
    /^a<U\+202E>b can read plant 42: a<U\+202E>b owns it\.\n/,
  );
  assert.match(await onTerminal(`access ${names[1]}c 42`), /^error: .* a<U\+202E>bc\./);
  const users: { user: string }[] = JSON.parse(await onTerminal('user list --json'));
  assert.deepEqual(new Set(users.map((each) => each.user)), new Set(names));
  assert.match(await runOk(['user', 'list', '--database', url]), /^main +a<U\+202E>b +member +1$/m);
});

itOnce('shares, lists shares, explains access and ends a share', async (t) => {
  const database = await testDatabase(t);
  const env = { PLANT_STORE_DATABASE: database.url };
  const storage = await database.open();
  t.after(() => storage[Symbol.asyncDispose]());
  await addToken(storage, 'alice');
  const reading = await addToken(storage, 'bob', { scopes: ['plants:read'] });
  const expired = await addToken(storage, 'bob', { scopes, expiresAtMs: 1 });
  const active = await addToken(storage, 'bob', { scopes });
  await createFor(storage, 'alice', 42);

  const explain = async (id = '42', user = 'bob') =>
    JSON.parse(await runOk(['access', user, id, '--json'], { env }));
  const before = await explain();
  assert.deepEqual(
    [before.owner, before.read, before.write],
    ['alice', { allowed: false, rule: 'no-access' }, { allowed: false, rule: 'no-access' }],
  );

  assert.equal(
    await runOk(['share', 'alice', 'bob', 'read'], { env }),
    'bob can read all plants of alice.',
  );
  assert.equal(
    await runOk(['share', 'alice', 'carol', 'write'], { env }),
    'carol can read, change and delete all plants of alice, once there is a user carol.',
  );
  assert.equal(
    await runOk(['shares'], { env }),
    'OWNER  USER   ACCESS\nalice  bob    read\nalice  carol  write',
  );
  assert.deepEqual(JSON.parse(await runOk(['shares', 'bob', '--json'], { env })), [
    { owner: 'alice', user: 'bob', access: 'read' },
  ]);

  const shared = { allowed: true, rule: 'share' };
  const onlyForReading = { allowed: false, rule: 'share-for-reading' };
  const { read, write, tokens } = await explain();
  assert.deepEqual([read, write], [shared, onlyForReading]);
  const rules = Object.fromEntries(
    tokens.map((each: { id: string; read: unknown; write: unknown }) => [
      each.id,
      [each.read, each.write],
    ]),
  );
  assert.deepEqual(rules, {
    [idOf(reading)]: [shared, onlyForReading],
    [idOf(expired)]: [{ allowed: false, rule: 'ended' }, onlyForReading],
    [idOf(active)]: [shared, onlyForReading],
  });
  await runOk(['share', 'alice', 'bob', 'write'], { env });
  const text = await runOk(['access', 'bob', '42'], { env });
  assert.match(text, /^bob can read plant 42: alice shares with bob \(write\)\.\nbob can write /);
  assert.match(
    text,
    new RegExp(`\n${idOf(reading)}  yes        no: scope  active   plants:read\n?`),
  );
  assert.deepEqual((await explain('43')).read, { allowed: false, rule: 'no-plant' });
  assert.deepEqual((await explain('42', 'alice')).write, { allowed: true, rule: 'owner' });
  await addToken(storage, 'dora', { role: 'manager' });
  assert.deepEqual((await explain('42', 'dora')).write, { allowed: true, rule: 'manager' });

  assert.equal(
    await runOk(['unshare', 'alice', 'bob'], { env }),
    'alice no longer shares with bob.',
  );
  const again = await run(['unshare', 'alice', 'bob'], { env });
  assert.deepEqual(
    [again.status, again.stderr],
    [1, 'error: alice does not share with bob. List all shares with "npx plant-store shares".\n'],
  );
});

itOnce('names the user or store that does not exist', async (t) => {
  const database = await testDatabase(t);
  const env = { PLANT_STORE_DATABASE: database.url };
  const storage = await database.open();
  t.after(() => storage[Symbol.asyncDispose]());
  await addToken(storage, 'alice');
  for (const [args, status, message] of [
    [['share', 'bob', 'alice', 'read'], 1, /Store main has no user bob\./],
    [['share', 'alice', 'bob', 'read', '--store', 'x'], 1, /There is no store x\./],
    [['share', 'alice', 'alice', 'read'], 2, /A user cannot share with themselves\./],
    [['share', 'alice', 'bob', 'all'], 2, /Allowed choices are read, write\./],
    [['shares', '--store', 'x'], 1, /There is no store x\./],
    [['access', 'bob', '1'], 1, /Store main has no user bob\./],
    [['access', 'alice', '0'], 2, /Use an integer from 1 to/],
  ] as const) {
    const { stderr, ...ended } = await run([...args], { env });
    assert.equal(ended.status, status, stderr);
    assert.match(stderr, message);
  }
});

itOnce('explains that a share is not in effect', async (t) => {
  const database = await testDatabase(t);
  const storage = await database.open();
  t.after(() => storage[Symbol.asyncDispose]());
  await addToken(storage, 'bob');
  await database.run(addOwners(storageOf(t), maxOwnersInReach, 'bob'));
  const text = await runOk(['access', 'bob', '1000', '--database', database.url]);
  assert.match(
    text,
    /bob cannot read plant 1000: owner 1000 shares .* has the maximum number of shares/,
  );
});

async function createFor(storage: Storage, user: string, id: number): Promise<void> {
  const grant = await identify(storage, await addToken(storage, user));
  assert.ok(grant);
  await storage.plants.create(grant.caller, { name: 'Fern', id });
}
