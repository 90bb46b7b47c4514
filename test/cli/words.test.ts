/**
 * What the commands print, word by word, in words.test.ts.snapshot. To write it anew:
 *
 *   node_modules/.bin/node --test --test-update-snapshots test/cli/words.test.ts
 */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test, type TestContext } from 'node:test';
import { runHere } from '../support/command.ts';
import { databaseFile, fill } from '../support/database.ts';

/** Runs a command per line. After "<" is what a person types on a terminal. Compares what they print. */
async function session(t: TestContext, url: string, folder: string, lines: string): Promise<void> {
  const shown: string[] = [];
  for (const line of lines.trim().split(/\n\s*/)) {
    const [command = '', typed] = line.split(' < ');
    const args = command.match(/'[^']*'|\S+/g)?.map((word) => word.replaceAll("'", '')) ?? [];
    const terminal = typed === undefined ? {} : { input: `${typed}\n`, isTerminal: true };
    const env = { PLANT_STORE_DATABASE: url };
    const { status, stdout, stderr } = await runHere(args, { env, cwd: folder, ...terminal });
    const printed = (stderr + stdout).replace('(add --help for usage)\n', '');
    shown.push(`$ ${line}\n${printed}[${status}]`);
  }
  const text = shown
    .join('\n')
    .replaceAll(folder, '~')
    .replaceAll(/plant_\w{58}/g, '<token>')
    .replaceAll(/\w{9}-[\da-f]{16}/g, '<token id>')
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d\.\d{3})?Z/g, '<time>');
  t.assert.snapshot(text, { serializers: [(value: string) => value] });
}

test('wrong usage ends with status 2 and advice, and creates nothing', async (t) => {
  const { folder, url } = databaseFile(t);
  await session(
    t,
    url,
    folder,
    `
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
    token revoke 0123456789abcdef
    token create alice < n
    share alice bob all
    access alice 0
    plants list --url plants.example/api
    plants list --url ftp://x
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
    serve --oidc-issuer https://a@login.example
    `,
  );
  assert.deepEqual(readdirSync(folder), []);
});

test('the commands about tokens, users and shares print what they did', async (t) => {
  const { folder, path, url } = databaseFile(t);
  await fill(path, 2);
  await session(
    t,
    url,
    folder,
    `
    token list
    token list --json
    token create alice --role manager
    token create alcie < n
    token create alice --store mian < n
    token create Zoë --store north --scope 'plants:write, plants:read,plants:write' --expires 90d --label 'for CI' --json
    token list --store north
    token create dora --store south --yes < n
    token list --store south
    token create bob < y
    user list
    user list --store north --json
    store list
    store list --json
    user list --store nosuch
    token revoke alice
    share alice bob read
    share alice carol write
    share alice alice read
    share dora alice read
    share alice bob read --store nosuch
    shares
    shares bob --json
    unshare alice bob
    unshare alice bob
    access dora 1
    access alice 1
    user remove nobody
    user remove alice --plants-to nobody
    user remove alice --plants-to alice
    user remove alice
    user remove alice --plants-to bob
    user remove alice --plants-to bob < n
    user remove alice --plants-to bob < y
    user list
    migrate
    migrate --json
    `,
  );
});
