/**
 * --help is the reference of the commands, so all of it is tested here.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { addToken, call } from '../support/app.ts';
import { run, runHere, runOk, serve } from '../support/command.ts';
import { databaseFile, fill, soundIds } from '../support/database.ts';
import { tempFolder } from '../support/temp.ts';
import { SqliteStorage } from '../../src/sqlite/storage.ts';

const database = 'env: PLANT_STORE_DATABASE; default: sqlite:plant-store.db';

const json = { '--json': 'env: none; default: none' };

const shared = {
  '--url <url>': 'env: PLANT_STORE_URL; default: http://127.0.0.1:8080',
  '--token <token>': 'env: PLANT_STORE_TOKEN; default: none',
  ...json,
};

const inStore = {
  '--database <url>': database,
  '--store <name>': 'env: PLANT_STORE_STORE; default: "main"',
  ...json,
};

/** Every command, and of every flag its variable and its default. */
const commands: Record<string, Record<string, string>> = {
  serve: {
    '--database <url>': database,
    '--host <host>': 'env: PLANT_STORE_HOST; default: "127.0.0.1"',
    '--port <number>': 'env: PLANT_STORE_PORT; default: 8080',
    '--base-url <url>': 'env: PLANT_STORE_BASE_URL; default: none',
    '--cors-origin <list>': 'env: PLANT_STORE_CORS_ORIGIN; default: none',
    '--tls-cert <file>': 'env: PLANT_STORE_TLS_CERT; default: none',
    '--tls-key <file>': 'env: PLANT_STORE_TLS_KEY; default: none',
    '--max-plants-per-user <number>': 'env: PLANT_STORE_MAX_PLANTS_PER_USER; default: none',
    '--max-plants-per-store <number>': 'env: PLANT_STORE_MAX_PLANTS_PER_STORE; default: none',
    '--workers <number>': 'env: PLANT_STORE_WORKERS; default: 1',
    '--rate-limit <rate>': 'env: PLANT_STORE_RATE_LIMIT; default: off',
    '--rate-limit-redis <url>': 'env: PLANT_STORE_RATE_LIMIT_REDIS; default: none',
    '--auth-failure-limit <rate>': 'env: PLANT_STORE_AUTH_FAILURE_LIMIT; default: 600/m',
    '--max-requests-in-progress <number>':
      'env: PLANT_STORE_MAX_REQUESTS_IN_PROGRESS; default: 512',
    '--trust-proxy <list>': 'env: PLANT_STORE_TRUST_PROXY; default: none',
    '--oidc-issuer <url>': 'env: PLANT_STORE_OIDC_ISSUER; default: none',
    '--oidc-audience <text>': 'env: PLANT_STORE_OIDC_AUDIENCE; default: none',
    '--oidc-token-type <type>': 'env: PLANT_STORE_OIDC_TOKEN_TYPE; default: "at+jwt"',
    '--oidc-user-claim <claim>': 'env: PLANT_STORE_OIDC_USER_CLAIM; default: "sub"',
    '--oidc-store <name>': 'env: PLANT_STORE_OIDC_STORE; default: "main"',
    '--oidc-store-claim <claim>': 'env: PLANT_STORE_OIDC_STORE_CLAIM; default: none',
    '--oidc-role-claim <claim>': 'env: PLANT_STORE_OIDC_ROLE_CLAIM; default: none',
    '--oidc-manager-value <text>': 'env: PLANT_STORE_OIDC_MANAGER_VALUE; default: none',
    '--oidc-scope-prefix <text>': 'env: PLANT_STORE_OIDC_SCOPE_PREFIX; default: none',
    '--oidc-client-id <text>': 'env: PLANT_STORE_OIDC_CLIENT_ID; default: none',
    '--oidc-client-scope <list>': 'env: PLANT_STORE_OIDC_CLIENT_SCOPE; default: none',
    '--keep-changes <duration>': 'env: PLANT_STORE_KEEP_CHANGES; default: 30d',
    '--log-level <level>': 'env: PLANT_STORE_LOG_LEVEL; default: "info"',
  },
  'token create': {
    '--database <url>': database,
    '--store <name>': 'env: PLANT_STORE_STORE; default: "main"',
    '--role <role>': 'env: none; default: none',
    '--scope <list>': 'env: none; default: plants:read,plants:write',
    '--expires <duration>': 'env: none; default: none',
    '--label <text>': 'env: none; default: none',
    '--yes': 'env: none; default: false',
    ...json,
  },
  'token list': {
    '--database <url>': database,
    '--store <name>': 'env: PLANT_STORE_STORE; default: none',
    ...json,
  },
  'token check': { '--database <url>': database, ...json },
  'user list': {
    '--database <url>': database,
    '--store <name>': 'env: PLANT_STORE_STORE; default: none',
    ...json,
  },
  'user remove': {
    '--database <url>': database,
    '--store <name>': 'env: PLANT_STORE_STORE; default: "main"',
    '--plants-to <user>': 'env: none; default: none',
    '--yes': 'env: none; default: false',
    ...json,
  },
  'store list': { '--database <url>': database, ...json },
  'token revoke': { '--database <url>': database, ...json },
  share: inStore,
  unshare: inStore,
  shares: inStore,
  access: inStore,
  log: {
    ...inStore,
    '--user <user>': 'env: none; default: none',
    '--plant <id>': 'env: none; default: none',
    '--since <duration>': 'env: none; default: none',
    '--keep-changes <duration>': 'env: PLANT_STORE_KEEP_CHANGES; default: 30d',
  },
  migrate: { '--database <url>': database, ...json },
  backup: { '--database <url>': database, ...json },
  restore: { '--database <url>': database, ...json },
  copy: {
    '--from <url>': 'env: PLANT_STORE_FROM; default: none',
    '--to <url>': 'env: PLANT_STORE_TO; default: none',
    '--resume': 'env: none; default: false',
    ...json,
  },
  'plants list': {
    ...shared,
    '--fields <list>': 'env: none; default: id,name,tag',
    '--tag <text>': 'env: none; default: none',
    '--search <text>': 'env: none; default: none',
    '--deleted': 'env: none; default: none',
    '--limit <number>': 'env: none; default: none',
    '--csv': 'env: none; default: none',
  },
  'plants get': shared,
  'plants add': {
    ...shared,
    '--tag <text>': 'env: none; default: none',
    '--id <number>': 'env: none; default: none',
  },
  'plants edit': {
    ...shared,
    '--name <text>': 'env: none; default: none',
    '--tag <text>': 'env: none; default: none',
  },
  'plants restore': shared,
  'plants history': shared,
  'plants rm': shared,
  'plants import': {
    ...shared,
    '--concurrency <number>': 'env: none; default: 32',
    '--key <text>': 'env: none; default: none',
  },
  completion: {},
};

/** The flags of a help page, as `commands` has them. */
function flagsOf(help: string): Record<string, string> {
  const [, options = ''] = help.split('\nOptions:\n');
  const entries = options.split(/\n? {2}(?=-)/).map((entry) => entry.replaceAll(/\s+/g, ' '));
  const flags = entries.filter((entry) => entry.startsWith('--'));
  return Object.fromEntries(
    flags.map((entry) => {
      const [, flag = ''] = /^(--\S+(?: <\w+>)?)/.exec(entry) ?? [];
      const [, variable = 'none'] = /\benv: (\w+)\)/.exec(entry) ?? [];
      const [, preset = 'none'] = /\bdefault: (\S+?)(?:, env|\))/.exec(entry) ?? [];
      return [flag, `env: ${variable}; default: ${preset}`];
    }),
  );
}

describe('help', { concurrency: 2 }, () => {
  it('lists every command with --help', async () => {
    const groups = ['', 'token ', 'user ', 'store ', 'plants '];
    for (const group of groups) {
      const help = await runOk([...group.split(' ').filter(Boolean), '--help']);
      const named = [...help.matchAll(/^ {2}(\w+) .*/gm)].map(([, name = '']) => name);
      const inGroup = Object.keys(commands).filter((name) => name.startsWith(group));
      const expected = inGroup.map((name) => name.slice(group.length).split(' ')[0] ?? '');
      assert.deepEqual(new Set(named), new Set([...expected, 'help']));
    }
  });

  for (const [command, expected] of Object.entries(commands)) {
    it(`of ${command} shows every flag with its variable and its default`, async () => {
      const help = await runOk([...command.split(' '), '--help']);
      assert.match(help, new RegExp(`^Usage: plant-store ${command} \\[options\\]`));
      assert.deepEqual(flagsOf(help), expected);
    });

    it(`of ${command} has examples, whose flags exist`, async () => {
      const help = await runOk([...command.split(' '), '--help']);
      const [, examples = ''] = help.split('\n\nExamples:\n');
      assert.match(examples, new RegExp(`^ {2}\\$ .*npx plant-store ${command}( |$)`, 'm'));
      const ofAll = Object.values(commands).flatMap((flags) => Object.keys(flags)); // one can use several
      const flags = ofAll.map((flag) => flag.split(' ')[0]);
      for (const [flag] of examples.matchAll(/--[a-z-]+/g)) assert.ok(flags.includes(flag), flag);
    });
  }

  it('is suggested after wrong usage, with exit status 2', async () => {
    const misuses = {
      frobnicate: "error: unknown command 'frobnicate'",
      'token frobnicate': "error: unknown command 'frobnicate'",
      'serve --frobnicate': "error: unknown option '--frobnicate'",
      'serve 8081': "error: too many arguments for 'serve': 8081. Did you mean --port 8081?\n",
      'token create': "error: missing required argument 'user'",
      'serve --port': "error: option '--port <number>' argument missing",
    };
    for (const [args, message] of Object.entries(misuses)) {
      const { status, stdout, stderr } = await runHere(args.split(' '));
      assert.deepEqual([status, stdout], [2, ''], args);
      assert.ok(stderr.startsWith(message), stderr);
      assert.match(stderr, /\(add --help for usage\)/);
    }
  });

  it('is not needed for an address without its scheme: the message has the whole address', async () => {
    const corrected = {
      'plants list --url localhost:8080': 'http://localhost:8080',
      'plants list --url plants.example/api': 'https://plants.example/api',
      'serve --base-url 127.0.0.1': 'http://127.0.0.1',
      'token list --database /x.db': 'sqlite:/x.db',
      'copy --from plants.db': 'sqlite:plants.db',
    };
    for (const [args, address] of Object.entries(corrected)) {
      const { status, stderr } = await runHere(args.split(' '));
      assert.equal(status, 2, args);
      assert.ok(stderr.includes(` Did you mean ${address}?\n`), stderr);
    }
    for (const args of ['plants list --url ftp://x', 'token list --database mysql:x']) {
      assert.doesNotMatch((await run(args.split(' '))).stderr, /Did you mean/);
    }
  });

  it('is shown if there is no command, with exit status 2', async () => {
    for (const args of [[], ['token']]) {
      const { status, stdout, stderr } = await run(args);
      assert.deepEqual([status, stdout], [2, '']);
      assert.match(stderr, /^Usage: plant-store/);
    }
  });

  it('has --version, which prints the version of the package', async () => {
    const file = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
    assert.equal(await runOk(['--version']), JSON.parse(file).version);
  });
});

describe('an environment variable works like its flag', { concurrency: 2 }, () => {
  it('for token create', async (t) => {
    const { url } = databaseFile(t);
    const env = {
      PLANT_STORE_DATABASE: url,
      PLANT_STORE_STORE: 'nursery',
    };
    await runOk(['token', 'create', 'alice'], { env });
    const list = await runOk(['token', 'list', '--database', url]);
    assert.match(list, /\n\S+ +nursery +alice +member /);
  });

  it('for token list and token revoke', async (t) => {
    const { path, url } = databaseFile(t);
    await fill(path, 0);
    await using storage = new SqliteStorage(path, { create: false });
    await addToken(storage, 'bob', { store: 'nursery' });
    const env = { PLANT_STORE_DATABASE: url, PLANT_STORE_STORE: 'nursery' };
    const [, row = '', ...others] = (await runOk(['token', 'list'], { env })).split('\n');
    assert.match(row, / nursery +bob /);
    assert.deepEqual(others, []);
    assert.match(
      await runOk(['token', 'revoke', row.split(' ')[0] ?? ''], { env }),
      /^Revoked token /,
    );
  });

  it('for user list, user remove and store list', async (t) => {
    const { path, url } = databaseFile(t);
    await fill(path, 1);
    await using storage = new SqliteStorage(path, { create: false });
    await addToken(storage, 'bob', { store: 'nursery' });
    const env = { PLANT_STORE_DATABASE: url, PLANT_STORE_STORE: 'nursery' };
    assert.match(await runOk(['user', 'list'], { env }), /\nnursery +bob +member +1$/);
    assert.match(await runOk(['store', 'list'], { env }), /\nmain .*\nnursery +1 +0$/);
    assert.match(await runOk(['user', 'remove', 'bob', '--yes'], { env }), /from store nursery\.$/);
  });

  it('for migrate, backup, restore and copy', async (t) => {
    const { folder, path, url } = databaseFile(t);
    await fill(path, 2);
    const copy = join(folder, 'copy');
    const env = { PLANT_STORE_DATABASE: url };
    assert.match(await runOk(['migrate'], { env }), /plants\.db has the newest schema\.$/);
    await runOk(['backup', copy], { env });
    assert.deepEqual(soundIds(copy), [1, 2]);
    await runOk(['restore', copy], { env: { PLANT_STORE_DATABASE: `${url}.new` } });
    assert.deepEqual(soundIds(`${path}.new`), [1, 2]);
    await runOk(['copy'], { env: { PLANT_STORE_FROM: url, PLANT_STORE_TO: `${url}.other` } });
    assert.deepEqual(soundIds(`${path}.other`), [1, 2]);
  });

  it('for serve: the database, the base URL and the log level', async (t) => {
    const { path, url } = databaseFile(t);
    const token = await fill(path, 1);
    const env = {
      PLANT_STORE_DATABASE: url,
      PLANT_STORE_BASE_URL: 'https://plants.example/api',
      PLANT_STORE_LOG_LEVEL: 'silent',
    };
    const service = await serve(t, [], { env });
    const plant = { name: 'Monstera' };
    const { headers } = await call(`${service.address}/plants`, 'POST', { token, json: plant });
    assert.equal(headers.get('location'), 'https://plants.example/api/plants/2');
    assert.equal(await service.stop(), 0);
    assert.equal(service.log(), '');
  });

  it('for serve: the address to listen on', async (t) => {
    const taken = createServer().listen(0, '127.0.0.1');
    t.after(() => taken.close());
    await once(taken, 'listening');
    const port = String((taken.address() as AddressInfo).port); // it listens on a port
    const env = { PLANT_STORE_DATABASE: databaseFile(t).url, PLANT_STORE_PORT: port };
    const onPort = await runHere(['serve'], { env });
    assert.equal(onPort.status, 1);
    assert.match(
      onPort.stderr,
      new RegExp(`^error: Cannot listen on 127\\.0\\.0\\.1:${port}: the port is in use`),
    );
    // An address for documentation (RFC 5737), which no machine has.
    const onHost = await runHere(['serve'], { env: { ...env, PLANT_STORE_HOST: '192.0.2.1' } });
    assert.equal(onHost.status, 1);
    assert.match(
      onHost.stderr,
      /^error: Cannot listen on 192\.0\.2\.1:.* Choose another with --host\.$/m,
    );
  });

  it('unless the flag is given too', async (t) => {
    const { url } = databaseFile(t);
    const env = { PLANT_STORE_DATABASE: 'sqlite:/nowhere/plants.db', PLANT_STORE_STORE: 'nursery' };
    await runOk(['token', 'create', 'alice', '--database', url, '--store', 'main'], { env });
    assert.match(await runOk(['token', 'list', '--database', url]), / main +alice /);
  });

  it('even if it is invalid: the message contains its name', async () => {
    const env = { PLANT_STORE_PORT: 'http' };
    const { status, stderr } = await runHere(['serve'], { env });
    assert.equal(status, 2);
    assert.match(stderr, /PLANT_STORE_PORT.*Use an integer from 0 to 65535\./);
  });
});

it('without --database, the database is plant-store.db in the working directory', async (t) => {
  const cwd = tempFolder(t);
  await runOk(['migrate'], { cwd });
  assert.deepEqual(soundIds(join(cwd, 'plant-store.db')), []);
});
