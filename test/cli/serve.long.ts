/**
 * More ways to start serve.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { call } from '../support/app.ts';
import { runOk, serve } from '../support/command.ts';
import { databaseFile, fill } from '../support/database.ts';
import { cannotHaveHosts, withHosts } from '../support/own-hosts.ts';
import { serveOnTerminal } from '../support/serve-on-terminal.ts';

const links: [args: string[], link: RegExp][] = [
  [['--host', '0.0.0.0'], /^ {2}http:\/\/127\.0\.0\.1:\d+\/#token=plant_/m],
  [['--base-url', 'https://p.example/api/'], /^ {2}https:\/\/p\.example\/api\/#token=plant_/m],
  [['--host', '::', '--workers', '2'], /^ {2}http:\/\/\[::1\]:\d+\/#token=plant_/m],
];
for (const [args, link] of links) {
  it(`prints a link that a browser can open with ${args.join(' ')}`, async (t) => {
    const service = await serveOnTerminal(t, ['--database', databaseFile(t).url, ...args]);
    if (service === undefined) return;
    assert.match(service.output(), link);
    assert.equal(await service.interrupt(), 0);
  });
}

it('on a terminal creates no token if there is one, and prints how to', async (t) => {
  const { path, url } = databaseFile(t);
  await fill(path, 0);
  const service = await serveOnTerminal(t, ['--database', url]);
  if (service === undefined) return;
  assert.equal(await service.interrupt(), 0);
  assert.doesNotMatch(service.output(), /plant_/);
  assert.match(
    service.output(),
    new RegExp(`^Open ${service.address}/ in a browser and enter a token\\.`, 'm'),
  );
  const [, args = ''] = /^ {2}npx plant-store (token .*)$/m.exec(service.output()) ?? [];
  assert.match(await runOk(args.split(' ')), /^plant_\w{58}$/);
});

it('listens on one address of a name that has several', { skip: cannotHaveHosts() }, async (t) => {
  const under = withHosts(t, ['127.0.0.1 localhost', '::1 localhost']);
  const args = ['--database', databaseFile(t).url, '--host', 'localhost'];
  const { address } = await serve(t, args, { under });
  const { port } = new URL(address);
  const answers = await Promise.allSettled(
    ['127.0.0.1', '[::1]'].map((host) => call(`http://${host}:${port}/livez`, 'GET')),
  );
  assert.deepEqual(answers.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected']);
});
