/**
 * People who are signed in: what `login` keeps, and which commands use it. words.test.ts has what they print.
 */
import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { scopes } from '../../src/access/access.ts';
import { startApp } from '../support/app.ts';
import { run, runOk, runProcess } from '../support/command.ts';
import { cutAfter, forwardAll, respond, startGateway } from '../support/gateway.ts';
import { quotedExecutable, startOnTerminal } from '../support/on-terminal.ts';
import { freePort } from '../support/postgres.ts';
import { shared } from '../support/shared.ts';
import { tempFolder } from '../support/temp.ts';
import { unprivileged, withoutUnprivileged } from '../support/unprivileged.ts';
import { until } from '../support/until.ts';

const skip = withoutUnprivileged;
/** Other systems have other programs that open a page. */
const onLinux = { skip: process.platform !== 'linux' };

describe('somebody who signs in', () => {
  const app = shared((t) => startApp(t));

  /** Commands of somebody who has a configuration folder of their own. */
  function setUp(t: TestContext) {
    const folder = tempFolder(t);
    const env: Record<string, string> = { XDG_CONFIG_HOME: join(folder, 'config') };
    const file = (name: string) => join(folder, 'config/plant-store', `${name}.json`);
    return {
      folder,
      env,
      file,
      run: (args: readonly string[], input = '', more = {}) =>
        run(args, { env: { ...env, ...more }, input }),
      login: (token: string, url = app().address, ...flags: string[]) =>
        run(['login', url, '--token-stdin', ...flags], { env, input: token }),
    };
  }

  async function invitationFor(user: string): Promise<string> {
    const token = await app().token('manager', { role: 'manager', scopes });
    const json = { invitation: {} };
    const { json: created } = await app().call('POST', `/users/${user}/tokens`, { token, json });
    return (created as { token: string }).token;
  }

  it('is asked for a token that is not shown, and keeps it where only they can read it', async (t) => {
    const { env, folder, file } = setUp(t);
    const token = await app().token('ann');
    const variables = `XDG_CONFIG_HOME='${env['XDG_CONFIG_HOME']}'`;
    const commands = `${quotedExecutable} login && ${quotedExecutable} token list`;
    const command = `umask 0; stty cols 40; export ${variables}; ${commands}`;
    const terminal = startOnTerminal(t, command, folder);
    if (terminal === undefined) return;
    await terminal.shows(/not shown\): $/);
    terminal.type(`${token}\n`);
    await terminal.shows(/Address of the service \(http:\/\/127\.0\.0\.1:8080\): $/);
    terminal.type(`${app().address}\n`);
    assert.equal(await terminal.ended, 0, terminal.output());
    assert.ok(!terminal.output().includes(token), terminal.output());
    const record = /\nID {8}\d{9}-[\da-f]{16}\nSCOPES {4}plants:read,plants:write\nCREATED .*\n/;
    assert.match(terminal.output(), record, 'a table that is too wide');
    assert.deepEqual(readdirSync(dirname(file('default'))), ['default.json']);
    const modes = [file('default'), dirname(file('default'))].map((path) => statSync(path).mode);
    assert.deepEqual(
      modes.map((mode) => mode & 0o777),
      [0o600, 0o700],
    );
    assert.equal(JSON.parse(await runOk(['whoami'], { env })).user, 'ann');
  });

  it('gets the same token from an invitation whose response was lost', async (t) => {
    const { env, login } = setUp(t);
    const { address, plan, requests } = await startGateway(t, app().address);
    const invitation = await invitationFor('bob');
    plan.push(forwardAll, cutAfter, cutAfter, cutAfter);
    const { status, stderr } = await login(`${address}/#token=${invitation}`, address);
    assert.equal(status, 1, stderr);
    const again = await login(invitation);
    assert.equal(again.status, 0, again.stderr);
    assert.equal(requests.length, 4);
    const tokens = JSON.parse(await runOk(['api', 'GET', '/tokens'], { env }));
    assert.deepEqual(
      tokens.filter(({ label }: { label: string }) => /^plant-store on ./.test(label)).length,
      1,
    );
    const other = setUp(t);
    assert.match((await other.login(invitation)).stderr, /^error: This invitation was used\./);
    assert.equal((await other.run(['whoami'])).status, 2);
  });

  it('has profiles, whose token goes to no other address, and which variables and a database replace', async (t) => {
    const { run: runHere, login } = setUp(t);
    const other = await startGateway(t, app().address);
    await login(await app().token('carol'));
    await login(await app().token('dave'), other.address, '--profile', 'work');
    other.requests.length = 0;
    const userOf = async (args: readonly string[], variables = {}) => {
      const { stdout, stderr } = await runHere(['whoami', ...args], '', variables);
      return stdout === '' ? stderr : JSON.parse(stdout).user;
    };
    assert.equal(await userOf([]), 'carol');
    assert.equal(await userOf(['--url', app().address]), 'carol');
    assert.match(await userOf(['--url', other.address]), /^error: No token is set\./);
    assert.match(await userOf([], { PLANT_STORE_URL: other.address }), /^error: No token is set\./);
    assert.equal(other.requests.length, 0);
    assert.equal(await userOf(['--profile', 'work']), 'dave');
    assert.equal(await userOf([], { PLANT_STORE_PROFILE: 'work' }), 'dave');
    const database = { PLANT_STORE_DATABASE: app().database.url };
    assert.match((await runHere(['user', 'list'], '', database)).stdout, /^STORE  USER/);
    assert.match(
      (await runHere(['token', 'list'])).stdout,
      /^\{"id":"[^"]+","label":"plant-store on/,
    );
    const url = { PLANT_STORE_URL: app().address };
    assert.equal(await userOf(['--profile', 'work'], url), 'dave');
    assert.match(await userOf([], { ...url, PLANT_STORE_PROFILE: 'work' }), /^error: No token/);
    const plants = ['add Aloe --id 7', 'edit 7 --name Fern', 'rm 7'].map((line) => line.split(' '));
    for (const words of plants) {
      const { stdout, stderr } = await runHere(['plants', ...words, '--profile', 'work']);
      assert.match(stdout, /^(?:\{"id":7,|Deleted .* restore 7 --profile work$)/m, stderr);
    }
    const PLANT_STORE_TOKEN = await app().token('erin');
    assert.equal(await userOf([], { PLANT_STORE_TOKEN, PLANT_STORE_URL: app().address }), 'erin');
    const both = await userOf(['--profile', 'work'], { PLANT_STORE_TOKEN });
    assert.match(both, /'--profile <name>' cannot be used with environment variable/);
  });

  it('signs in twice at once, and has one whole profile', async (t) => {
    const { env, file } = setUp(t);
    const tokens = [await app().token('fay'), await app().token('gil')];
    const logins = tokens.map((input) =>
      runProcess(['login', app().address, '--token-stdin'], { env, input }),
    );
    for (const { status, stderr } of await Promise.all(logins)) assert.equal(status, 0, stderr);
    assert.match(JSON.parse(await runOk(['whoami'], { env })).user, /^(?:fay|gil)$/);
    assert.deepEqual(readdirSync(dirname(file('default'))), ['default.json']);
  });

  it('is told about a profile that others can read, that is damaged, or that cannot be kept', async (t) => {
    const { run: runHere, login, file, env } = setUp(t);
    const token = await app().token('hal');
    await login(token);
    chmodSync(file('default'), 0o640);
    const readable = await runHere(['whoami']);
    assert.equal(readable.status, 0);
    assert.match(readable.stderr, /^Warning: other users can use the token in .*default\.json\./);
    assert.equal((await login(token)).status, 0);
    assert.equal((await runHere(['whoami'])).stderr, '', 'login replaces the file');
    writeFileSync(file('default'), '{"url":');
    assert.match((await runHere(['whoami'])).stderr, /default\.json is damaged\. Sign in again/);
    mkdirSync(file('folder'));
    assert.match(
      (await runHere(['whoami', '--profile', 'folder'])).stderr,
      /^error: Cannot read /m,
    );
    writeFileSync(join(dirname(dirname(file('x'))), 'file'), '');
    env['XDG_CONFIG_HOME'] += '/file';
    assert.match((await login(token)).stderr, /^error: Cannot keep the token in .*: a part of the/);
    const nowhere = { env: { XDG_CONFIG_HOME: '', HOME: '' }, input: token };
    const { status, stderr } = await run(['login', app().address, '--token-stdin'], nowhere);
    assert.deepEqual([status, stderr.includes('There is no home folder')], [1, true], stderr);
  });

  it('prevents nobody from using a database who cannot read the profile', { skip }, async (t) => {
    const { env, login, file } = setUp(t);
    await login(await app().token('lea'));
    chmodSync(dirname(file('default')), 0o000);
    const folder = tempFolder(t);
    chmodSync(folder, 0o777);
    const token = await runOk(['token', 'create', 'alice'], { env, cwd: folder, ...unprivileged });
    assert.match(token, /^plant_\w{58}$/);
  });

  it('is warned before a token crosses a network in the clear', async (t) => {
    const { run: runHere } = setUp(t);
    for (const host of ['nowhere.invalid', '127.0.0.1.invalid']) {
      const args = ['login', `http://${host}`, '--token-stdin'];
      const { stderr } = await runHere(args, 'plant_x');
      assert.match(stderr, /^Warning: others on the network can read/, host);
    }
  });

  it('signs out: its own token is revoked, or at least forgotten', async (t) => {
    const { run: runHere, login, file } = setUp(t);
    const token = await app().token('ivy');
    await login(token);
    const { token: own } = JSON.parse(readFileSync(file('default'), 'utf8'));
    assert.equal((await runHere(['logout'])).status, 0);
    const statusOf = async (which: string) =>
      (await app().call('GET', '/token', { token: which })).status;
    assert.deepEqual([await statusOf(own), await statusOf(token)], [401, 200]);
    assert.ok(!existsSync(file('default')));
    const { address, plan } = await startGateway(t, app().address);
    await login(await app().token('ivy'), address);
    plan.push(respond(500, ''));
    const { status, stderr } = await runHere(['logout']);
    assert.equal(status, 1);
    assert.match(stderr, /^The token was forgotten, but not revoked\.\nerror: /);
    assert.ok(!existsSync(file('default')));
  });

  it('sends any request, which stays within the service', async (t) => {
    const { run: runHere, login } = setUp(t);
    const { address, requests } = await startGateway(t, app().address, { prefix: '/garden' });
    await login(await app().token('jo'), `${address}/`);
    const created = await runHere(['api', 'POST', '/plants', '--data', '-'], '{"name": "Öhrchen"}');
    assert.deepEqual(created, { status: 0, stdout: '{"name":"Öhrchen","tag":""}', stderr: '' });
    const missing = await runHere(['api', 'DELETE', '/plants/99']);
    assert.deepEqual([missing.status, missing.stdout], [1, '']);
    assert.equal(JSON.parse(missing.stderr).status, 404);
    requests.length = 0;
    const withBody = await runHere(['api', 'GET', '/plants', '--data', '{}']);
    assert.deepEqual([withBody.status, withBody.stderr], [2, 'error: GET takes no body.\n']);
    const dots = await runHere(['share', 'add', '..']);
    assert.deepEqual(dots, {
      status: 1,
      stdout: '',
      stderr: 'error: No URL can contain the name "..".\n',
    });
    for (const path of ['plants', '/../plants', '/%2e%2e/plants', '@127.0.0.1/', '\\..\\plants']) {
      assert.equal((await runHere(['api', 'GET', path])).status, 2, path);
    }
    assert.equal(requests.length, 0);
    const closed = {
      PLANT_STORE_URL: `http://127.0.0.1:${await freePort()}`,
      PLANT_STORE_TOKEN: 'x',
    };
    const refused = await runHere(['api', 'GET', '/plants'], '', closed);
    assert.match(refused.stderr, /^error: Cannot connect to http:.* ECONNREFUSED /);
  });

  it(
    'opens the page with the program of the system, and is told the address',
    onLinux,
    async (t) => {
      const { env, folder, login } = setUp(t);
      await login(await app().token('kim'));
      const [pipe, opener] = [join(folder, 'opened'), join(folder, 'xdg-open')];
      writeFileSync(opener, `#!/bin/sh\necho "$*" >'${pipe}.new'; mv '${pipe}.new' '${pipe}'\n`, {
        mode: 0o755,
      });
      const path = { env: { ...env, PATH: `${folder}:${process.env['PATH']}` } };
      assert.equal(await runOk(['open'], path), `${app().address}/`);
      await until('the program has run', () => existsSync(pipe));
      assert.equal(readFileSync(pipe, 'utf8'), `${app().address}/\n`);
      const without = await run(['open'], { env: { ...env, PATH: '/nowhere' } });
      assert.match(without.stderr, /^error: Cannot start xdg-open\. Open http/);
    },
  );
});
