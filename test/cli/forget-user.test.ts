/**
 * `user forget`: no table has the texts of the user afterwards, and others notice nothing.
 */
import assert from 'node:assert/strict';
import { scopes } from '../../src/access/access.ts';
import { openArchive } from '../../src/cli/database.ts';
import { tables } from '../../src/copy/archive.ts';
import { startApp, type Send } from '../support/app.ts';
import { run, runOk } from '../support/command.ts';
import { quotedExecutable, startOnTerminal } from '../support/on-terminal.ts';
import { it } from '../support/storages.ts';

/** All rows of all tables. */
async function dumpOf(url: string): Promise<string> {
  await using archive = await openArchive(url, { create: false });
  const all = await Promise.all(
    tables.map(async (table) => [table, await archive.read(table, undefined, 10_000)]),
  );
  return JSON.stringify(all);
}

/** The address of the next changes. */
async function nextOf(user: Send, target = '/changes'): Promise<string> {
  const { status, headers } = await user('GET', target);
  assert.equal(status, 200);
  return /<([^>]*)>; rel="next"/.exec(headers.get('link') ?? '')?.[1] ?? assert.fail();
}

it('user forget blanks every text of a removed user, and followers see no gap', async (t) => {
  const app = await startApp(t, { webhookNetworks: ['127.0.0.0/8'] });
  const { database, storage } = app;
  const command = (...args: string[]) => runOk(['user', ...args, '--database', database.url]);
  const bob = await app.user('bob', { role: 'manager', scopes });
  const name = 'Secret Zoë';
  const zoe = await app.user(name, { scopes });
  const send = async (user: Send, method: string, target: string, json?: object, key = 'none') => {
    const headers = key === 'none' ? {} : { 'idempotency-key': `"${key}"` };
    const answer = await user(method, target, { headers, ...(json && { json }) });
    assert.ok(answer.status < 300, answer.text);
    return answer;
  };
  const plant = (id: number) => ({ id, name: `secret ${id}`, tag: 'secret tag' });
  for (const id of [1, 2, 3, 4]) await send(zoe, 'POST', '/plants', plant(id), `key ${id}`);
  await send(zoe, 'PATCH', '/plants/1', { name: 'another secret' });
  await send(bob, 'PATCH', '/plants/1', { name: 'Given', tag: '' });
  await send(zoe, 'DELETE', '/plants/2');
  await send(bob, 'DELETE', '/plants/3');
  await send(bob, 'POST', '/plants', { id: 9, name: 'of Bob' });
  await send(zoe, 'PUT', '/shares/bob', { access: 'read' });
  await send(bob, 'PUT', `/shares/${encodeURIComponent(name)}`, { access: 'write' });
  await send(zoe, 'PATCH', '/plants/9', { name: 'changed for Bob' });
  await send(zoe, 'POST', '/tokens', { label: 'secret phone' });
  await send(zoe, 'POST', '/webhooks', { url: 'http://secret.example/hook' });
  await send(zoe, 'PATCH', '/plants/4', { name: 'Also given', tag: '' });

  const forget = ['user', 'forget', name, '--yes', '--database', database.url];
  assert.match(
    (await run(forget)).stderr,
    /has access to store main or plants there\. First remove the user/,
  );
  await command('remove', name, '--plants-to', 'bob', '--yes');
  await send(bob, 'PUT', `/shares/${encodeURIComponent(name)}`, { access: 'read' });
  await send(bob, 'PATCH', '/plants/4', { name: 'now of Bob' });
  assert.match(await dumpOf(database.url), /secret/i);
  const next = await nextOf(bob);
  const positions = async () =>
    (await storage.log.list({ store: 'main', limit: 1_000 })).changes.map(
      (change) => change.position,
    );
  const before = await positions();
  const { user } = await storage.users.find('main', name);
  assert.ok(user && (await storage.users.forget(user, name, 1, 9)), 'as if it was killed');

  assert.match(
    (await run(forget.filter((word) => word !== '--yes'))).stderr,
    /Pass --yes to forget/,
  );
  assert.match(
    await runOk(forget),
    /^Forgot user Secret Zoë of store main\. Their texts can still be in/,
  );
  assert.match(await runOk(['verify', '--database', database.url]), /^ok/);
  assert.doesNotMatch(await dumpOf(database.url), /secret|Zoë/i);
  assert.match((await run(forget)).stderr, /Store main has no user Secret Zoë/);
  await nextOf(bob, next);
  assert.deepEqual(await positions(), [...before, before.length + 1], 'the end of a share');
  await runOk(['verify', '--database', database.url]);
  const { json } = await bob('GET', '/plants/4/history');
  assert.partialDeepStrictEqual(json, [
    { event: 'updated', user: 'bob', before: { name: 'Also given', owner: 'bob' } },
    { event: 'moved' },
    { event: 'updated', user: 'forgotten-2\u007F' },
    { event: 'created', user: 'forgotten-2\u007F' },
  ]);
  const again = await app.user(name);
  assert.deepEqual((await send(again, 'GET', '/plants')).json, []);
});

it('user forget leaves somebody who is invited with the name before the answer', async (t) => {
  const app = await startApp(t);
  const { database } = app;
  await app.user('bob', { role: 'manager' });
  await app.user('alice');
  await runOk(['user', 'remove', 'alice', '--yes', '--database', database.url]);
  const command = `${quotedExecutable} user forget alice --database '${database.url}'`;
  const terminal = startOnTerminal(t, command);
  if (terminal === undefined) return;
  await terminal.shows(/\[y\/N\]/);
  const alice = await app.user('alice');
  terminal.type('y\n');
  assert.equal(await terminal.ended, 1);
  assert.match(terminal.output(), /alice has access to store main/);
  assert.equal((await alice('GET', '/plants')).status, 200);
});
