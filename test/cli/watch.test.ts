/**
 * `plants watch` in a pipe, on a terminal, with a command and with a receiver of webhooks.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { it, type TestContext } from 'node:test';
import { Webhook as Verifier } from 'standardwebhooks';
import { scopes } from '../../src/access/access.ts';
import { PlantStore } from '../../src/client/client.ts';
import { inNewStore, startApp } from '../support/app.ts';
import { run, start } from '../support/command.ts';
import { cutBefore, startGateway } from '../support/gateway.ts';
import { quotedExecutable, startOnTerminal } from '../support/on-terminal.ts';
import { listen } from '../support/listen.ts';
import { freePort } from '../support/postgres.ts';
import { shared } from '../support/shared.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

const app = shared((t) => startApp(t));

/** Alice in a store of her own, through a gateway. */
async function setUp(t: TestContext) {
  const { address, token: tokenOf } = inNewStore(app());
  const gateway = await startGateway(t, address);
  const clientOf = async (user: string) =>
    new PlantStore({ url: address, token: await tokenOf(user, { scopes }) });
  const env = { PLANT_STORE_URL: gateway.address, PLANT_STORE_TOKEN: await tokenOf('alice') };

  /** Starts a watch, and waits until it has begun. */
  async function watch(...args: string[]) {
    const child = start(['plants', 'watch', ...args], { env });
    const closed = once(child, 'close');
    t.after(async () => {
      child.kill('SIGKILL');
      await closed;
    });
    let [out, err] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (chunk) => (out += String(chunk)));
    child.stderr.setEncoding('utf8').on('data', (chunk) => (err += String(chunk)));
    await until('it watches', () => err.includes('Watching for changes.'));
    const items = () => out.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
    return {
      items,
      output: () => out,
      errors: () => err,
      shows: (count: number) => until(`${count} lines`, () => items().length >= count),
      /** Resolves to the exit status and the cursor with which the next watch continues. */
      async ended(signal?: NodeJS.Signals) {
        if (signal !== undefined) child.kill(signal);
        const [status] = (await closed) as [number | null];
        const [, cursor = ''] = /--after (\S+)/.exec(err) ?? [];
        return { status, cursor };
      },
    };
  }

  return { env, gateway, alice: await clientOf('alice'), clientOf, watch };
}

it('prints a line of JSON for each change in a pipe, and continues where it has ended', async (t) => {
  const { alice, watch } = await setUp(t);
  const first = await watch();
  await alice.create({ name: 'Monstera', tag: 'indoor' });
  await first.shows(1);
  await alice.delete(1);
  await first.shows(2);
  const [created, deleted] = first.items();
  const { at, after, ...others } = created;
  const plant = { name: 'Monstera', tag: 'indoor' };
  assert.deepEqual(others, { id: 1, event: 'created', user: 'alice', plant });
  assert.ok(Date.parse(at) > 0);
  assert.deepEqual([deleted.event, deleted.plant], ['deleted', undefined]);
  const { status, cursor } = await first.ended('SIGINT');
  assert.deepEqual([status, cursor], [0, deleted.after]);

  for (const wrong of ['garbage', `${cursor}\n`]) {
    const refused = await run(['plants', 'watch', '--after', wrong]);
    assert.equal(refused.status, 2);
    assert.match(refused.stderr, /Use a cursor that an earlier watch has printed/);
  }

  await alice.restore(1);
  const second = await watch('--after', cursor);
  await second.shows(1);
  assert.equal(second.items()[0].event, 'restored');
  assert.equal((await second.ended('SIGTERM')).status, 0);
  const third = await watch('--after', after);
  await third.shows(1);
  assert.equal(third.items()[0].event, 'restored', 'a plant is there once');
});

it('prints a line of text for each change on a terminal, until Ctrl+C', async (t) => {
  const { env, alice } = await setUp(t);
  const settings = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const command = `exec env ${settings.join(' ')} ${quotedExecutable} plants watch`;
  const terminal = startOnTerminal(t, command);
  if (terminal === undefined) return;
  await terminal.shows(/Watching/);
  await alice.create({ name: 'a\u202eb' });
  await terminal.shows(/^\d{4}-\S+Z created 1: a<U\+202E>b \(alice\)$/m);
  await alice.delete(1);
  await terminal.shows(/^\S+ deleted 1 \(alice\)$/m);
  terminal.type('\u0003');
  assert.equal(await terminal.ended, 0);

  const slow = startOnTerminal(t, `${command} --exec 'echo begun; exec sleep 60'`);
  await slow?.shows(/Watching/);
  const { value: before } = await alice.changes().next();
  await alice.restore(1);
  await slow?.shows(/begun/);
  slow?.type('\u0003');
  assert.equal(await slow?.ended, 0);
  assert.ok(slow?.output().endsWith(` --after ${before.after}\n`), 'the change is not done');
});

it('tells that changes can be missing, and that it waits for the service', async (t) => {
  const { gateway, alice, clientOf, watch } = await setUp(t);
  const bob = await clientOf('bob');
  const watching = await watch();
  await gateway.received(2); // it waits
  await bob.share('alice', 'read');
  await watching.shows(1);
  const [{ after, ...reset }] = watching.items();
  assert.deepEqual(reset, { event: 'reset', reason: 'access-changed' });
  assert.match(after, /^\S+$/);
  await gateway.received(4);
  gateway.plan.push(cutBefore, cutBefore); // of the first one alone, which a proxy could end, nobody is told
  await bob.create({ name: 'shared' });
  await alice.create({ name: 'own' });
  await watching.shows(3);
  assert.equal(watching.errors().match(/Waiting for the service: /g)?.length, 1);
});

it('ends at once if the service cannot be used', async (t) => {
  const { env } = await setUp(t);
  for (const [args, message] of [
    [['--url', `http://127.0.0.1:${await freePort()}`], /^error: Cannot connect to /m],
    [['--after', 'x'], /^error: .*after/m],
    [
      ['--webhook-secret', 'whsec_short'],
      /^error: The secret of a webhook is whsec_ .* base64\.$/m,
    ],
    [['--forward-to', 'x'], /Use an http or https URL/],
    [['--forward-to', 'http://127.0.0.1', '--exec', 'true'], /cannot be used with/],
  ] as const) {
    const { status, stderr } = await run(['plants', 'watch', ...args], { env });
    assert.notEqual(status, 0);
    assert.match(stderr, message);
    assert.ok(!stderr.includes('whsec_short'));
  }
});

it('runs a command for each change in order, and ends if the command fails', async (t) => {
  const { alice, watch } = await setUp(t);
  const folder = tempFolder(t);
  const [seen, script] = [join(folder, 'seen'), join(folder, 'script.sh')];
  writeFileSync(
    script,
    `read -r change; echo "$change" >> '${seen}'; case $change in *Fails*) exit 1;; esac\n`,
  );
  const names = () => {
    const lines = readFileSync(seen, 'utf8').trim().split('\n');
    return lines.map((line) => JSON.parse(line).plant.name);
  };
  const first = await watch('--exec', `sh '${script}'`);
  for (const name of ['a', 'b', 'Fails', 'c']) await alice.create({ name });
  const { status, cursor } = await first.ended();
  assert.equal(status, 1);
  assert.match(
    first.errors(),
    /^error: The command failed with status 1 for the change of plant 3\.$/m,
  );
  assert.deepEqual(names(), ['a', 'b', 'Fails']);

  await alice.update(3, { name: 'fixed' });
  const second = await watch('--after', cursor, '--exec', `sh '${script}'; echo done`);
  await until('all are done', () => second.output() === 'done\n'.repeat(3));
  // The plant is shown as it is now, for each of its changes.
  assert.deepEqual(names(), ['a', 'b', 'Fails', 'fixed', 'c', 'fixed']);
  assert.equal((await second.ended('SIGINT')).status, 0);

  const third = await watch('--exec', 'kill -INT $$'); // as if Ctrl+C ended it before the watch
  await alice.create({ name: 'd' });
  assert.equal((await third.ended()).status, 0);
});

it('forwards changes like a webhook, and repeats them until they are accepted', async (t) => {
  const { alice, clientOf, watch } = await setUp(t);
  const received: { headers: IncomingMessage['headers']; body: string }[] = [];
  const plan: ((response: ServerResponse) => unknown)[] = [
    (response) => response.destroy(),
    (response) => response.writeHead(307, { location: '/elsewhere' }).end(),
  ];
  const receive = async (request: IncomingMessage, response: ServerResponse) => {
    assert.equal(request.url, '/webhook?key=1');
    received.push({ headers: request.headers, body: await text(request) });
    (plan.shift() ?? (() => response.writeHead(204).end()))(response);
  };
  const server = createServer((request, response) => void receive(request, response));
  const port = await listen(t, server);
  const watching = await watch('--forward-to', `http://localhost:${port}/webhook?key=1`);
  const [secret = ''] = /whsec_\S+/.exec(watching.errors()) ?? [];
  await alice.create({ name: 'Monstera' });
  await watching.shows(1);
  await (await clientOf('bob')).share('alice', 'read');
  await watching.shows(2);
  assert.equal(received.length, 4);
  const refusals = watching
    .errors()
    .matchAll(/^The watch sends a message again, .* refused: (.*)$/gm);
  assert.deepEqual(
    Array.from(refusals, ([, why]) => why),
    ['The connection failed (ECONNRESET).', 'status 307'],
  );

  const messages = received.map(({ headers, body }) => {
    const given = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, String(value)]),
    );
    return new Verifier(secret).verify(body, given) as { type: string; data: object };
  });
  const [first, ...others] = received.map(({ headers, body }) => [headers['webhook-id'], body]);
  assert.deepEqual(others.slice(0, 2), [first, first]);
  assert.partialDeepStrictEqual(messages[0], {
    type: 'plants.changed',
    data: { changes: [{ id: 1, event: 'created', plant: { name: 'Monstera', tag: '' } }] },
  });
  assert.partialDeepStrictEqual(messages[3], {
    type: 'plants.reset',
    data: { reason: 'access-changed' },
  });
});
