/**
 * Arguments and environment variables that no command accepts, and what the settings of `serve` reach. words.test.ts has
 * the advice after invalid ones, and test/http/request-limits.test.ts and test/quota.contract.ts what the limits do.
 */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { InvalidArgumentError, type CommandUnknownOpts } from '@commander-js/extra-typings';
import { makeToken } from '../../src/access/token.ts';
import { program } from '../../src/cli/main.ts';
import { call } from '../support/app.ts';
import { run, runHere, runOk, serve } from '../support/command.ts';
import { Connection } from '../support/connection.ts';
import { databaseFile, fill } from '../support/database.ts';
import { without } from '../support/programs.ts';
import { startRedis } from '../support/redis.ts';

function allCommands(command: CommandUnknownOpts): CommandUnknownOpts[] {
  return [command, ...command.commands.flatMap(allCommands)];
}

describe('settings', { concurrency: 2 }, () => {
  it('refuse a blank value, in every option and argument', async () => {
    const canBeBlank = ['label', 'tag', 'token', 'words'];
    for (const command of allCommands(program())) {
      for (const option of command.options) {
        const isFlag = !option.required && !option.optional;
        // For commander, every value of a variable, also "false", sets a flag.
        if (isFlag) assert.equal(option.envVar, undefined, option.flags);
      }
      const values = command.options.filter(({ required, optional }) => required || optional);
      for (const target of [...values, ...command.registeredArguments]) {
        if (canBeBlank.includes(target.name())) continue;
        for (const blank of ['', ' ', '\n']) {
          const parse = () => target.parseArg?.(blank, undefined);
          assert.throws(parse, InvalidArgumentError, `${command.name()} ${target.name()}`);
        }
      }
    }
    const message = (from: string) =>
      `error: option '--oidc-manager-value <text>' ${from} is invalid. Use a value that is not blank.`;
    const variable = 'PLANT_STORE_OIDC_MANAGER_VALUE';
    const byVariable = await runHere(['serve'], { env: { [variable]: '' } });
    const byFlag = await runHere(['serve', '--oidc-manager-value=']);
    for (const [{ status, stderr }, from] of [
      [byVariable, `value '' from env '${variable}'`],
      [byFlag, `argument ''`],
    ] as const) {
      assert.equal(status, 2);
      assert.ok(stderr.startsWith(message(from)), stderr);
    }
  });

  it('refuse bytes that are not UTF-8, so that no two names become one', async (t) => {
    const env = { PLANT_STORE_DATABASE: databaseFile(t).url };
    const script = `exec "$0" "$1" token create "$(printf 'J\\366rg')" --yes`;
    const argument = await run([], { env, under: ['sh', '-c', script] });
    const store = { ...env, PLANT_STORE_STORE: 'n\ufffdrnberg' }; // as Node reads any other byte
    const variable = await runHere(['token', 'create', 'alice', '--yes'], { env: store });
    for (const [{ status, stdout, stderr }, place] of [
      [argument, 'Argument 3'],
      [variable, 'The variable PLANT_STORE_STORE'],
    ] as const) {
      assert.deepEqual(
        [status, stdout, stderr],
        [2, '', `error: ${place} is not valid UTF-8, or contains U+FFFD. Write it in UTF-8.\n`],
      );
    }
  });

  it('have no unknown variable', async () => {
    // --tag is of one call, so it has no variable.
    for (const name of ['PLANT_STORE_DATABSE', 'PLANT_STORE_TAG', 'PLANT_STORE_LISTEN_PORT']) {
      const { status, stderr } = await runHere(['token', 'list'], { env: { [name]: '8081' } });
      const message = `error: There is no setting ${name}. Each command lists its own with --help.\n`;
      assert.deepEqual([status, stderr], [2, message]);
    }
    const env = { PLANT_STORE_DATABSE: 'x' };
    assert.equal((await runHere(['--help'], { env })).status, 0);
    assert.equal((await runHere(['complete'], { env })).stderr, '');
  });

  it('can be variables, over which flags take precedence', async (t) => {
    const { path, url } = databaseFile(t);
    await fill(path, 0);
    const env = { PLANT_STORE_DATABASE: 'sqlite:/nowhere/plants.db', PLANT_STORE_STORE: 'nursery' };
    await runOk(['token', 'create', 'bob', '--yes', '--database', url], { env });
    assert.match(await runOk(['token', 'list', '--database', url, '--store', 'nursery']), / bob /);
    const { status, stderr } = await runHere(['serve'], { env: { PLANT_STORE_PORT: 'http' } });
    assert.equal(status, 2);
    assert.match(stderr, /PLANT_STORE_PORT.*Use an integer from 0 to 65535\./);
  });
});

describe('serve', { concurrency: 2 }, () => {
  it('by default limits only failed authentications, and has quotas for all workers together', async (t) => {
    // The variables of a linked service are no settings.
    const link = {
      PLANT_STORE_SERVICE_HOST: '10.0.0.1',
      PLANT_STORE_SERVICE_PORT: '8080',
      PLANT_STORE_SERVICE_PORT_HTTP: '8080',
      PLANT_STORE_PORT: 'tcp://10.0.0.1:8080',
      PLANT_STORE_PORT_8080_TCP: 'tcp://10.0.0.1:8080',
      PLANT_STORE_PORT_8080_TCP_ADDR: '10.0.0.1',
      PLANT_STORE_PORT_8080_TCP_PORT: '8080',
      PLANT_STORE_PORT_8080_TCP_PROTO: 'tcp',
      PLANT_STORE_DB_SERVICE_HOST: '10.0.0.2',
      PLANT_STORE_DB_PORT: 'udp://10.0.0.2:5432',
      PLANT_STORE_NAME: '/web/plant-store',
      PLANT_STORE_ENV_NODE_VERSION: '26.10.0',
    };
    const quotas = { PLANT_STORE_MAX_PLANTS_PER_USER: '9', PLANT_STORE_MAX_PLANTS_PER_STORE: '7' };
    const { service, token, ask, create, statusesOf } = await start(t, ['--workers', '2'], {
      ...link,
      ...quotas,
    });
    const responses = await Promise.all(Array.from({ length: 20 }, () => create()));
    assert.equal(responses.filter(({ status }) => status === 201).length, 6);
    for (const { status, text } of responses) {
      if (status !== 201)
        assert.match(text, /"status":403,"detail":"A store .* at most 7 plants\./);
    }
    assert.equal((await ask(token)).headers.get('ratelimit'), null);
    const statuses = await statusesOf(makeToken(1), (seen) => seen.at(-1) !== 429);
    // 600 a minute: ten more each second, while the loop runs.
    assert.ok(statuses.length > 600 && statuses.length < 1_500, `${statuses.length} requests`);
    assert.equal((await ask(token)).status, 200, 'a known token');
    assert.equal(await service.stop(), 0);
    const wrong = await runHere(['token', 'list'], { env: { PLANT_STORE_DATABASE: 'tcp://x:1' } });
    assert.equal(wrong.status, 2);
  });

  it('takes limits from flags', async (t) => {
    const rates = ['--rate-limit', '1000/h', '--auth-failure-limit', '1/h'];
    const proxies = ['--trust-proxy', '10.0.0.0/8, 127.0.0.1'];
    const quota = ['--max-plants-per-user', '2'];
    const { token, ask, create } = await start(t, [...rates, ...proxies, ...quota]);
    assert.equal((await ask(token)).headers.get('ratelimit-policy'), '"token";q=1000;w=3600');
    for (const client of ['192.0.2.1', '192.0.2.2']) {
      const headers = { 'x-forwarded-for': client };
      assert.equal((await ask('invalid', headers)).status, 401);
      assert.equal((await ask('invalid', headers)).status, 429);
    }
    assert.equal((await create()).status, 201);
    assert.match((await create()).text, /"detail":"A user .* at most 2 plants\./);
  });

  it('takes limits from variables', { skip: without('redis-server') }, async (t) => {
    const redis = await startRedis(t);
    const { service, token, ask, statusesOf } = await start(t, [], {
      PLANT_STORE_RATE_LIMIT: '1000/m',
      PLANT_STORE_RATE_LIMIT_REDIS: redis.url,
      PLANT_STORE_AUTH_FAILURE_LIMIT: 'off',
      PLANT_STORE_MAX_REQUESTS_IN_PROGRESS: '1',
      PLANT_STORE_TRUST_PROXY: '127.0.0.1',
    });
    assert.equal((await ask(token)).headers.get('ratelimit-policy'), '"token";q=1000;w=60');
    assert.match(await redis.run('KEYS', '*'), /^plant-store:1000\/60:/);
    const refused = await statusesOf('invalid', ({ length }) => length < 700);
    assert.deepEqual(new Set(refused), new Set([401]));

    const connection = new Connection(service.address);
    t.after(() => connection.socket.destroy());
    connection.write(`POST /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n`);
    connection.write(
      'Content-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n',
    ); // no body follows
    assert.equal((await connection.answer())?.status, 100);
    assert.equal((await ask(token)).headers.get('ratelimit'), '"in-progress";r=0');
  });
});

/** A service with a plant of the user of `token`. */
async function start(t: TestContext, args: readonly string[], env: Record<string, string> = {}) {
  const { path, url } = databaseFile(t);
  const token = await fill(path, 1);
  const service = await serve(t, ['--database', url, ...args], { env });
  const plants = `${service.address}/plants`;
  const ask = (used: string, headers: Record<string, string> = {}) =>
    call(plants, 'GET', { token: used, headers });
  const create = () => call(plants, 'POST', { token, json: { name: 'Fern' } });
  /** The statuses of requests on one connection, while it goes on. */
  const statusesOf = async (used: string, goesOn: (statuses: readonly number[]) => boolean) => {
    const connection = new Connection(service.address);
    const statuses: number[] = [];
    do {
      connection.write(`GET /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${used}\r\n\r\n`);
      statuses.push((await connection.answer())?.status ?? 0);
    } while (goesOn(statuses));
    connection.socket.destroy();
    return statuses;
  };
  return { service, token, ask, create, statusesOf };
}
