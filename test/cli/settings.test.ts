/**
 * Arguments and environment variables that no command accepts, and variables as settings.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { InvalidArgumentError, type CommandUnknownOpts } from '@commander-js/extra-typings';
import { program } from '../../src/cli/main.ts';
import { run, runHere, runOk, serve } from '../support/command.ts';
import { databaseFile, fill } from '../support/database.ts';

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
    const { url } = databaseFile(t);
    const create = `exec "$0" "$1" token create "$(printf 'J\\366rg')" --yes`;
    const store = `PLANT_STORE_STORE="$(printf 'n\\374rnberg')" exec "$0" "$1" token create a --yes`;
    const messages: [script: string, place: string][] = [
      [create, 'Argument 3'],
      [store, 'The variable PLANT_STORE_STORE'],
    ];
    for (const [script, place] of messages) {
      const env = { PLANT_STORE_DATABASE: url };
      const { status, stdout, stderr } = await run([], { env, under: ['sh', '-c', script] });
      assert.deepEqual(
        [status, stdout, stderr],
        [2, '', `error: ${place} is not valid UTF-8, or contains U+FFFD. Write it in UTF-8.\n`],
      );
    }
  });

  it('have no unknown variable: the message contains the nearest one', async () => {
    const nearest = {
      PLANT_STORE_DATABSE: 'PLANT_STORE_DATABASE',
      PLANT_STORE_TAG: 'PLANT_STORE_TO', // --tag is of one call, so it has no variable
      PLANT_STORE_OIDC_MANAGER_VAL: 'PLANT_STORE_OIDC_MANAGER_VALUE',
      PLANT_STORE_LISTEN_PORT: 'PLANT_STORE_PORT',
    };
    for (const [name, meant] of Object.entries(nearest)) {
      const { status, stderr } = await runHere(['token', 'list'], { env: { [name]: '8081' } });
      const message = `error: There is no setting ${name}. Did you mean ${meant}?\n`;
      assert.deepEqual([status, stderr], [2, message]);
    }
    const env = { PLANT_STORE_DATABSE: 'x' };
    assert.equal((await runHere(['--help'], { env })).status, 0);
    assert.equal((await runHere(['complete'], { env })).stderr, '');
  });

  it('do not include the variables of a linked service, which the log names', async (t) => {
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
    const { url } = databaseFile(t);
    const args = ['--database', url, '--workers', '2'];
    const service = await serve(t, args, { env: link });
    assert.equal(await service.stop(), 0);
    const wrong = await runHere(['token', 'list'], { env: { PLANT_STORE_DATABASE: 'tcp://x:1' } });
    assert.equal(wrong.status, 2);
    const lines = service.log().match(/^.*tcp:.*$/gm);
    assert.equal(lines?.length, 1, service.log());
    assert.match(lines[0], /"port":"tcp:\/\/10\.0\.0\.1:8080".*PLANT_STORE_PORT/);
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
