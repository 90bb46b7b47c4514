/**
 * The reference is true: each of its samples runs and prints the response beside it, and each of its links leads
 * somewhere.
 */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { it, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { runInNewContext } from 'node:vm';
import { languages, sampleAddress } from '../../tools/reference/samples.ts';
import openapi from '../../openapi.json' with { type: 'json' };
import { scopes } from '../../src/access/access.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { startReceiver } from '../support/receiver.ts';
import { idOf } from '../support/tokens.ts';
import { without, type Program } from '../support/programs.ts';

const operations = Object.values(openapi.paths).flatMap((atPath) => Object.values(atPath));

/** Every sample of the page, in an order in which they can run. */
const inOrder = (
  'listChanges createPlant listPlants getPlant paging updatePlant deletePlant listDeletedPlants restorePlant getHistory ' +
  'sharePlants listShares endShare sharePlantsWithTeam getTeamShare endTeamShare ' +
  'createUserToken listUsers setRole explainAccess removeUser createWebhook listWebhooks testWebhook deleteWebhook ' +
  'getToken createToken listTokens revokeToken livez readyz previewReturn returnToTime ' +
  'revokeOwnToken'
) // the last one that its token allows
  .split(' ');

interface Shown {
  /** By language. */
  samples: Record<string, string>;
  /** The response: its first line, its headers and its body. */
  response: string;
}

/** The samples of a page by the id of their section. */
function shownOn(page: string): Map<string, Shown> {
  const sections = page.split(/<section id="|<section class="operation" id="/).slice(1);
  const shown = sections.flatMap((section): [string, Shown][] => {
    const samples = [
      ...section.matchAll(/class="sample" data-language="(\w+)">[^]*?<code>([^]*?)<\/code>/g),
    ].map(([, language = '', code = '']) => [language, textOf(code)]);
    if (samples.length === 0) return [];
    const [, response = ''] =
      /Response<\/h4>\s*<pre[^>]*><code>([^]*?)<\/code>/.exec(section) ?? [];
    const [id = ''] = section.split('"');
    return [[id, { samples: Object.fromEntries(samples), response: textOf(response) }]];
  });
  return new Map(shown);
}

function textOf(html: string): string {
  return html
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)));
}

/** The id of a token in the samples, which stands for that of a real one. */
const shownTokenId = '000000001-22894e9580395e64';
/** The same for a webhook. */
const shownWebhookId = '5f2c8d0e9b1a4c37';

/** A service where the plant of the samples gets the id that they have, and the share exists. */
async function startWithSamples(t: TestContext) {
  const app = await startApp(t, { webhookNetworks: ['127.0.0.0/8'] });
  const token = await app.token('alice', { scopes, role: 'manager' });
  const other = await app.token('alice');
  const { status } = await app.call('POST', '/plants', { token, json: { id: 41, name: 'Ficus' } });
  assert.equal(status, 201);
  await app.call('PUT', '/shares/bob', { token, json: { access: 'read' } });
  await app.call('PUT', '/team-share', { token, json: { access: 'read' } });
  const { url } = await startReceiver(t);
  const { json } = await app.call('POST', '/webhooks', { token, json: { url } });
  const { id: webhook } = json as { id: string }; // a webhook
  const { text } = await app.call('GET', '/docs');
  const page = text.replaceAll(shownTokenId, idOf(other)).replaceAll(shownWebhookId, webhook);
  return { app, token, other, shown: shownOn(page) };
}

function neededFor(language: string): Program[] {
  return language === 'curl' ? ['curl'] : language === 'Python' ? ['python3'] : [];
}

/** Programs that run samples in one process: each line has a sample as JSON, and NUL ends what it prints. */
const drivers: Record<string, [string, ...string[]]> = {
  JavaScript: [
    process.execPath,
    '--input-type=module',
    '--eval',
    `import { createInterface } from 'node:readline';
    import { inspect } from 'node:util';
    inspect.defaultOptions.depth = null; // console.log abbreviates what is nested
    for await (const line of createInterface({ input: process.stdin })) {
      await import('data:text/javascript,' + encodeURIComponent(JSON.parse(line)));
      process.stdout.write('\\0');
    }`,
  ],
  Python: [
    'python3',
    '-c',
    'import json, sys\nfor line in sys.stdin: exec(json.loads(line), {}); print(end="\\0", flush=True)',
  ],
};

/** Returns what runs a sample, and resolves to what it prints. */
function runnerOf(
  t: TestContext,
  language: string,
  address: string,
  token: string,
): (sample: string) => Promise<string> {
  const options = { env: { ...process.env, PLANT_STORE_TOKEN: token }, cwd: tmpdir() };
  const programOf = (sample: string) => sample.replaceAll(sampleAddress, address);
  const driver = drivers[language];
  if (driver === undefined)
    return async (sample) =>
      (await promisify(execFile)('sh', ['-c', programOf(sample)], options)).stdout;
  const [command, ...args] = driver;
  const child = spawn(command, args, { ...options, stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => child.kill());
  const chunks: AsyncIterator<string> = child.stdout.setEncoding('utf8')[Symbol.asyncIterator]();
  return async (sample) => {
    child.stdin.write(`${JSON.stringify(programOf(sample))}\n`);
    for (let printed = ''; ;) {
      const { value, done } = await chunks.next();
      assert.ok(done !== true, `the sample fails: ${sample}`);
      printed += value;
      if (printed.endsWith('\0')) return printed.slice(0, -1);
    }
  };
}

/** Reads what a sample has printed. */
const readers: Record<string, (printed: string) => unknown> = {
  curl: JSON.parse,
  JavaScript: (printed) => runInNewContext(`(${printed})`),
  Python: (printed) =>
    JSON.parse(
      printed.replaceAll("'", '"').replaceAll(/\b(?:True|False)\b/g, (word) => word.toLowerCase()),
    ),
};

for (const language of languages) {
  const skip = without(...neededFor(language));
  it(`has samples in ${language} that print the response beside them`, { skip }, async (t) => {
    const { app, token, other, shown } = await startWithSamples(t);
    const expectedIds = new Set(['paging', ...operations.map(({ operationId }) => operationId)]);
    assert.deepEqual(new Set(shown.keys()), expectedIds);
    assert.deepEqual(new Set(inOrder), expectedIds);
    const run = runnerOf(t, language, app.address, token);
    for (const id of inOrder) {
      const { samples = {}, response = '' } = shown.get(id) ?? {};
      const [head = '', body = ''] = response.split('\n\n');
      const sample = samples[language] ?? '';
      if (id === 'paging') {
        const output = await run(sample);
        for (const plant of ['41.*Ficus', '42.*Monstera']) assert.match(output, new RegExp(plant));
        continue;
      }
      const output = await run(sample.replace(/^curl/, 'curl --silent --include'));
      const [sentHead = '', printed = ''] =
        language === 'curl' ? output.split('\r\n\r\n') : ['', output];
      if (language === 'curl') assertShows(head, sentHead, id);
      if (body === '') {
        assert.match(printed, /^(204\n)?$/);
      } else {
        const read = readers[language]?.(printed);
        const expected = await expectedOf(app, token, id, JSON.parse(body), read);
        assert.equal(JSON.stringify(read), JSON.stringify(expected), `${id}: ${printed}`);
      }
    }
    for (const ended of [token, other])
      assert.equal((await app.call('GET', '/token', { token: ended })).status, 401);
  });
}

/** Asserts that the page shows the status of the response, and headers that it has. */
function assertShows(shownHead: string, head: string, id: string): void {
  const [status, ...headers] = shownHead.trimEnd().split('\n');
  assert.equal(head.split('\r\n')[0], status, id);
  for (const header of headers) {
    // All plants fit into one page, so it has no next one. Positions and cursors are those of this store.
    if (/^(Link|Change-Position)/i.test(header)) continue;
    const shownPart = header.replace(/(?<=\/(?:tokens|webhooks)\/).*/, ''); // the id is new
    assert.ok(head.toLowerCase().includes(shownPart.toLowerCase()), header);
  }
}

interface Hook {
  id: string;
  after: string;
  lag: number;
  secret: string;
}

/** The examples of tokens and changes are those of somebody else, so they are compared with what the service responds. */
async function expectedOf(
  { call }: TestApp,
  token: string,
  id: string,
  example: unknown,
  read: unknown,
): Promise<unknown> {
  const history = '/plants/42/history?limit=10';
  const bin = '/bin?limit=100';
  const path = {
    getToken: '/token',
    listTokens: '/tokens',
    getHistory: history,
    listChanges: '/changes',
    listDeletedPlants: bin,
    listWebhooks: '/webhooks',
    listUsers: '/users',
    explainAccess: '/users/bob/access?plant=42',
    previewReturn: '/restore?since=2026-02-01T09:00:00Z',
  }[id];
  const { json: shown } = await call('GET', path ?? '/token', { token });
  if (id === 'listWebhooks') {
    // The service moves their cursors on.
    return (shown as Hook[]).map((hook, at) => {
      const { after, lag } = (read as Hook[])[at] ?? hook;
      return { ...hook, after, lag };
    });
  }
  if (path !== undefined) return shown;
  if (id === 'returnToTime') {
    const { plants, undoSince } = read as { plants: object[]; undoSince: string }; // as documented
    assert.ok(plants.length > 0);
    return { ...(example as object), plants, undoSince };
  }
  if (id === 'createWebhook') {
    const { id: created, after, lag, secret } = read as Hook; // as the next request shows
    const { json } = await call('GET', '/webhooks', { token });
    return { ...(json as { id: string }[]).find((one) => one.id === created), after, lag, secret };
  }
  if (!['createToken', 'createUserToken'].includes(id)) return example;
  const { token: created } = read as { token: string }; // a JSON object, as the next request shows
  const asOwner = id === 'createToken' ? token : created;
  const { json } = await call('GET', '/tokens', { token: asOwner });
  const found = (json as { id: string }[]).find((one) => one.id === idOf(created));
  return { ...found, ...(asOwner === created && { current: false }), token: created };
}

it('shows a Link as the service sends it', async (t) => {
  const { call, token: addToken } = await startApp(t);
  const token = await addToken('alice');
  for (const id of [42, 43]) {
    const json = { id, name: 'Monstera deliciosa', tag: 'indoor' };
    await call('POST', '/plants', { token, json });
  }
  const { headers } = await call('GET', '/plants?limit=1&tag=indoor&fields=id,name,tag', { token });
  const { example } = openapi.components.headers.Link;
  assert.equal(headers.get('link'), example.replace('limit=100', 'limit=1'));
});

it('is small, and links only to what exists', async (t) => {
  const { call, address } = await startApp(t);
  const { text } = await call('GET', '/docs');
  const links = [...text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, link = '']) => link);
  const inPage = links.filter((link) => link.startsWith('#'));
  assert.ok(inPage.length > 10);
  for (const link of inPage) assert.ok(text.includes(`id="${link.slice(1)}"`), link);
  const files = links.filter((link) => !/^(#|data:)/.test(link));
  assert.ok(files.length > 3);
  let bytes = 0;
  for (const file of new Set(['docs', ...files])) {
    const url = new URL(file, `${address}/docs`);
    assert.equal(url.origin, address, file);
    const { status, headers } = await call('GET', url.pathname);
    assert.equal(status, 200, file);
    if (!/^(docs|web\/.*)$/.test(file)) continue; // a page that is linked is not loaded
    assert.equal(headers.get('content-encoding'), 'gzip');
    bytes += Number(headers.get('content-length'));
  }
  t.diagnostic(`${bytes} bytes compressed`);
  assert.ok(bytes < 40_000, `${bytes} bytes`);
});
