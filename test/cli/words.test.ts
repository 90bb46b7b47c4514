/**
 * What the commands print, word by word, in words.test.ts.snapshot. To update it:
 *
 *   node_modules/.bin/node --test --test-update-snapshots test/cli/words.test.ts
 */
import assert from 'node:assert/strict';
import { readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { scopes } from '../../src/access/access.ts';
import { startApp } from '../support/app.ts';
import { databaseFile, fill } from '../support/database.ts';
import { session } from './session.ts';

test('wrong usage ends with status 2 and advice, and creates nothing', async (t) => {
  const { folder, url } = databaseFile(t);
  await session(t, { folder, env: { PLANT_STORE_DATABASE: url } })`
    frobnicate
    token frobnicate
    token create
    token create 'a\tb'
    token create ''
    token create alice --role admin
    token create alice --scope plants:admin
    token create alice --expires 0d
    token create alice --expires 1000000s
    token create alice --label 'two\tlines'
    token create alice --store ' '
    token create alice --database plants.db
    token create alice --database sqlite::memory:
    token create alice --database sqlite://plants.db
    token create alice --database mysql://localhost/plants
    token list
    token list --database <token>
    token revoke 0123456789abcdef
    token create alice < n
    token create alice < yesterday
    token create alice < ^D
    token check << ''
    token check << <token>0
    token check << plant_x
    token check << plant_${'0'.repeat(57)}-
    token check << plant_${'0'.repeat(58)}
    token check <token>
    token check << <token>
    share alice bob all
    share alice alice read
    user remove alice --plants-to alice
    access alice 0
    copy --from sqlite:plants.db
    backup copy.db
    restore copy.db
    restore .
    plants list --url plants.example/api
    plants list --url ftp://x
    plants list --fields name,nmae
    plants list --fields name,name
    plants list --json --csv
    plants list --deleted --tag a
    plants list --deleted --search a
    plants list --deleted --fields id
    plants list --token ''
    plants list --token 'plant_ 0'
    plants list --token @/nowhere/token
    plants add ''
    plants add x --id 0
    plants edit 1
    plants rm Monstera
    plants import - --token -
    plants import none.csv
    plants import .
    plants import - << nmae\\nMonstera
    serve --frobnicate
    serve 8081
    serve --port
    serve --port 65536
    serve --workers 0
    serve --base-url 127.0.0.1
    serve --base-url https://me:secret@plants.example
    serve --cors-origin garden.example
    serve --cors-origin file://x
    serve --cors-origin https://garden.example/app
    serve --cors-origin 'https://a.example, *'
    serve --log-level loud
    serve --keep-alive 25h
    serve --max-plants-per-user 0
    serve --max-plants-per-store 0
    serve --rate-limit 200
    serve --auth-failure-limit 1/d
    serve --max-requests-in-progress 0
    serve --trust-proxy 10.0.0.0/33
    serve --trust-proxy 127.0.0.1/8/8
    serve --trust-proxy proxy.example
    serve --trust-proxy 2001:db8::/129,::1
    serve --webhook-networks private
    serve --webhook-networks public,10.0.0.0/33
    serve --webhook-networks public --keep-changes 3d
    serve --webhook-networks public --keep-changes 0
    serve --rate-limit-redis redis://127.0.0.1
    serve --rate-limit off --rate-limit-redis redis://127.0.0.1
    serve --rate-limit 1/s --rate-limit-redis rediss://:secret@
    serve --rate-limit 1/s --rate-limit-redis http://:secret@127.0.0.1
    serve --tls-cert cert.pem
    serve --tls-key key.pem
    serve --oidc-issuer https://login.example
    serve --oidc-audience plants
    serve --oidc-store-claim nursery
    serve --oidc-role-claim a --oidc-manager-value b
    serve --oidc-issuer https://login.example --oidc-audience plants --oidc-role-claim roles
    serve --oidc-issuer https://login.example --oidc-audience plants --oidc-manager-value boss
    serve --oidc-client-id page
    serve --oidc-issuer https://login.example --oidc-audience plants --oidc-client-scope openid
    serve --oidc-client-scope profile
    serve --oidc-store a --oidc-store-claim b
    serve --oidc-token-type any
    serve --oidc-issuer http://login.example
    serve --oidc-issuer https://a@login.example`;
  assert.deepEqual(readdirSync(folder), []);
  await session(t, { folder })`
    token check << <token>
    token check --json << <token>`;
  assert.deepEqual(readdirSync(folder), []);
});

test('a database is new, then has a user without a question, then others with one', async (t) => {
  const { folder, url } = databaseFile(t);
  await session(t, { folder, env: { PLANT_STORE_DATABASE: url } })`
    token create alice
    token create alice --database sqlite:other.db --yes < n
    migrate --database sqlite:second.db --json
    migrate --database sqlite:third.db
    migrate --database sqlite:third.db --json
    token create alice --database sqlite:third.db < n
    token create alice --database sqlite:third.db --expires 999999d < n
    token create alcie --database sqlite:third.db < n
    token create alice --database sqlite:third.db --store mian < n
    token create bob --database sqlite:third.db < y
    token create dora --database sqlite:third.db --store south --yes < n`;
});

test('the commands about tokens, users and shares print what they did', async (t) => {
  const { folder, path, url } = databaseFile(t);
  await fill(path, 2);
  await session(t, { folder, env: { PLANT_STORE_DATABASE: url } })`
    token check << <token>
    token list
    token list --json
    token create alice --role manager
    token create Zoë --store north --scope 'plants:write, plants:read,plants:write' --expires 90d --label 'for CI' --json
    token list --store north
    token check << <token>
    token check --json << <token>
    token check < <token>
    token revoke <token>
    token revoke <token id>
    token revoke <token id> --json
    token check << <token>
    token list --store north
    token create bob --scope plants:read --yes
    user list
    user list --store north --json
    store list
    store list --json
    user list --store nosuch
    token list --store nosuch
    token revoke alice
    access bob 1
    share alice bob read
    share alice bob read --json
    access bob 1 --json
    share alice bob write
    access bob 1
    share alice carol write
    token create carol --yes
    token revoke <token id>
    access carol 1
    share alice alice read
    share dora alice read
    share alice bob read --store nosuch
    shares
    shares bob --json
    shares --store north --json
    shares --store nosuch
    unshare alice bob
    unshare alice bob
    access dora 1
    access alice 1
    access alice 99
    token create maria --role manager --yes
    access maria 1
    user remove nobody
    user remove alice --plants-to nobody
    user remove alice --plants-to Zoë
    user remove alice --plants-to alice
    user remove alice
    user remove alice --plants-to bob
    user remove alice --plants-to bob < n
    user remove alice --plants-to bob < y
    user remove alice --plants-to bob --yes --json
    user remove bob --plants-to alice --yes
    user forget maria --yes
    user remove maria --yes --json
    user forget maria < n
    user forget maria --yes --json
    user forget maria --yes
    user list
    token create alice --yes
    migrate`;
});

test('names of others are shown on a terminal without their control characters', async (t) => {
  const { folder, path, url } = databaseFile(t);
  await fill(path, 1);
  await session(t, { folder, env: { PLANT_STORE_DATABASE: url } })`
    token create 日本 --yes < ^D
    token create a\u202eb --store b --label 'x\u2028\u2066y' --yes < ^D
    token list --store b < ^D
    user list < ^D
    user list --json < ^D
    user list
    share 日本 a\u202eb read < ^D
    shares < ^D
    access a\u202eb 1 --store b < ^D
    access a\u202ebc 1 < ^D`;
});

test('log shows who changed what, and hides what is too old', async (t) => {
  const app = await startApp(t);
  const { url } = app.database;
  const env = { PLANT_STORE_DATABASE: url };
  const place = { folder: dirname(url.slice('sqlite:'.length)), env };
  const token = await app.token('alice', { scopes: ['plants:write', 'shares:write'] });
  await app.call('POST', '/plants', { token, json: { name: 'Monstera', tag: 'indoor' } });
  await app.call('PATCH', '/plants/1', { token, json: { name: 'Fern' } });
  await app.call('PUT', '/shares/bob', { token, json: { access: 'read' } });
  await session(t, place)`
    share alice bob write
    token create heir --yes
    token create heir --role manager
    user remove alice --plants-to heir --yes
    log
    log < ^D
    log --plant 1 --json < ^D
    log --plant 1 < ^D
    log --user alice --since 1h
    log --user nobody
    log --user nobody < ^D
    log --store north`;
  await app.database.run(`UPDATE changes SET at = at - ${40 * 24 * 3_600_000} WHERE plant = 1`);
  await session(t, place)`
    log --plant 1
    log --plant 1 --since 50d
    log --plant 1 --since 30d
    log --plant 1 --keep-changes 90d
    log --user alice`;
});

test('user restore shows what it would do, does it, and is undone', async (t) => {
  const app = await startApp(t);
  const { url } = app.database;
  const folder = dirname(url.slice('sqlite:'.length));
  const token = await app.token('alice');
  await app.call('POST', '/plants', { token, json: { name: 'Monstera', tag: 'indoor' } });
  await session(t, { folder, env: { PLANT_STORE_DATABASE: url } })`
    user restore alice --since 2026-02-30
    user restore nobody --since 1h
    user restore alice --since 1h
    user restore alice --since 1h --json
    user restore alice --since 1h < n
    user restore alice --since 1h < y
    user restore alice --since 1h --yes`;
});

test('the commands about databases print what they did', async (t) => {
  const { folder, path, url } = databaseFile(t);
  await fill(path, 2);
  writeFileSync(join(folder, 'text'), 'Monstera');
  await session(t, { folder, env: { PLANT_STORE_DATABASE: url } })`
    backup copy.db
    backup copy.db
    backup again.db --json
    backup copy.db --database sqlite:nowhere.db
    backup copy.db --database postgres://plants@db.example/plants
    restore copy.db --database sqlite:new.db
    restore copy.db
    restore copy.db --json
    restore plants.db
    restore text
    restore nowhere.db
    copy --from sqlite:plants.db --to sqlite:other.db
    copy --from sqlite:plants.db --to sqlite:other.db
    copy --from sqlite:plants.db --to sqlite:third.db --json
    copy --from sqlite:plants.db --to sqlite:plants.db
    copy --from sqlite:nowhere.db --to sqlite:fourth.db`;
});

test('the commands about plants print what they did', async (t) => {
  const app = await startApp(t);
  const { address } = app;
  const tokenOf = async (user: string, options = {}) => ({
    PLANT_STORE_URL: address,
    PLANT_STORE_TOKEN: await app.token(user, options),
  });
  const env = await tokenOf('alice', { scopes });
  const folder = dirname(app.database.url.slice('sqlite:'.length));
  writeFileSync(join(folder, 'token'), `${env.PLANT_STORE_TOKEN}\n`);
  await session(t, { folder, address, env })`
    plants list
    plants list < ^D
    plants list --csv
    plants add Monstra --tag indoor
    plants add Ficus --tag indoor --id 40
    plants add Ficus --id 40
    plants add new < ^D
    plants add a\u202eb < ^D
    plants list
    plants list < ^D
    plants list --json --limit 1 < ^D
    plants list --tag indoor --fields name
    plants list --search FÍCUS --fields id
    plants list --search FÍCUS --tag outdoor
    plants list --search 'a\tb'
    plants list --limit 1 --csv
    plants list --fields access,owner --limit 1
    plants get 42
    plants get 42 < ^D
    plants get 2
    plants edit 1 --name Monstera
    plants edit 1 --tag ''
    plants edit 1 --name Fern < ^D
    plants edit 2 --name Fern
    plants list --deleted
    plants rm 1 2
    plants rm 40
    plants rm 5 --json
    plants rm 42 --json
    plants rm 41 --url <url>
    plants list --deleted --limit 2
    plants list --deleted --limit 1 --csv
    plants list --deleted < ^D
    plants restore 1
    plants restore 1
    plants restore 7
    plants history 1
    plants history 1 < ^D
    plants history 1 --json
    plants list --url <url>/other
    plants list --url <url>/plants
    plants list --token plant_0
    plants import - --concurrency 1 << name;tag\\nMonstera;indoor\\n"a\u009b";\\n"b;c
    plants import - --concurrency 1 --json << [{"name": "Monstera"}, {"name": ""}]`;
  const { PLANT_STORE_TOKEN: token, ...withoutToken } = env;
  await session(t, { folder, address, env: withoutToken, token })`
    plants list --token @token
    plants list --token - << <token>
    plants list --token 'Bearer <token>'
    plants list --token http://127.0.0.1:8080/#token=<token>
    plants list`;
  await app.call('PUT', '/shares/bob', { token, json: { access: 'read' } });
  await session(t, { folder, address, env: await tokenOf('bob') })`
    plants rm 1
    plants edit 1 --tag x`;
  await session(t, { folder, address, env: await tokenOf('alice', { scopes: ['plants:write'] }) })`
    plants edit 1 --tag x < ^D
    plants rm 1
    plants restore 1 < ^D
    plants list`;
});

test('the commands of people who are signed in print what they did', async (t) => {
  const app = await startApp(t);
  const { address } = app;
  const folder = dirname(app.database.url.slice('sqlite:'.length));
  const env = { XDG_CONFIG_HOME: join(folder, 'config') };
  const manager = await app.token('ann', { role: 'manager', scopes });
  const member = await app.token('bob');
  await app.call('POST', '/plants', { token: member, json: { name: 'Monstera' } });
  await session(t, { folder, address, env, token: member })`
    whoami
    token list
    login
    login <url>/#token=x
    login <url> --token-stdin << <token>x
    login plants.example --token-stdin
    login <url> --token-stdin --profile a/b
    login <url> --token-stdin --profile bob << Bearer <token>
    whoami --profile bob
    whoami --profile bob < ^D
    share list --profile bob < ^D
    user list --profile bob
    whoami --profile carol`;
  await session(t, { folder, address, env, token: manager })`
    login --token-stdin << <url>/#token=<token>
    share add bob
    share add bob --write < ^D
    share add --everyone < ^D
    share add bob --everyone
    share add
    share list
    share list --json
    share list < ^D
    share end bob < ^D
    share end --everyone
    share end bob
    user list
    user list < ^D
    user access bob 1 < ^D
    user access carol 1
    user invite carol --role manager --uses 101
    user invite carol --role manager --uses 2 --scope plants:read < ^D
    user invite carol --expires 1d
    user invite carol --expires 8d
    user invite carol < n
    user invite carol < y
    user remove bob
    user remove bob < n
    user remove bob < y
    user remove bob --plants-to ann < y
    user remove ann --yes
    user remove carol --yes --json
    token create --label phone
    token create dora --expires 1d --json
    token create dora --store north
    token list < ^D
    token revoke <token id>
    token revoke 0
    token list --url <url>
    token list --database sqlite:x.db --profile bob
    user list --database sqlite:plants.db
    api GET /plants
    api GET /plants < ^D
    api GET plants
    api HEAD /plants
    api DELETE /plants/9
    logout
    logout
    whoami`;
});
