/**
 * The reference is true: each of its samples runs and prints the response beside it, and each of its links leads
 * somewhere.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { tmpdir } from 'node:os';
import { it } from 'node:test';
import { promisify } from 'node:util';
import { runInNewContext } from 'node:vm';
import { languages, sampleAddress } from '../../tools/reference/samples.ts';
import openapi from '../../openapi.json' with { type: 'json' };
import { scopes } from '../../src/access/access.ts';
import { startApp, type TestApp } from '../support/app.ts';
import { idOf } from '../support/tokens.ts';
import { without, type Program } from '../support/programs.ts';

const operations = Object.values(openapi.paths).flatMap((atPath) => Object.values(atPath));

/** Every sample of the page, in an order in which they can run. */
const inOrder = [
  'createPlant',
  'listPlants',
  'getPlant',
  'paging',
  'updatePlant',
  'deletePlant',
  'listDeletedPlants',
  'restorePlant',
  'getHistory',
  'sharePlants',
  'listShares',
  'endShare',
  'getToken',
  'createToken',
  'listTokens',
  'revokeToken',
  'livez',
  'readyz',
  'revokeOwnToken', // the last one that its token allows
];

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

/** A service where the plant of the samples gets the id that they have, and the share exists. */
async function startWithSamples(t: Parameters<typeof startApp>[0]) {
  const app = await startApp(t);
  const token = await app.token('alice', { scopes });
  const other = await app.token('alice');
  const { status } = await app.call('POST', '/plants', { token, json: { id: 41, name: 'Ficus' } });
  assert.equal(status, 201);
  await app.call('PUT', '/shares/bob', { token, json: { access: 'read' } });
  const { text } = await app.call('GET', '/docs');
  const page = text.replaceAll(shownTokenId, idOf(other));
  return { app, token, other, shown: shownOn(page) };
}

function neededFor(language: string): Program[] {
  return language === 'curl' ? ['curl'] : language === 'Python' ? ['python3'] : [];
}

async function runSample(app: TestApp, token: string, language: string, text: string) {
  const program = text.replaceAll(sampleAddress, app.address);
  const commands: Record<string, [string, ...string[]]> = {
    curl: ['sh', '-c', program],
    JavaScript: [process.execPath, '--input-type=module', '--eval', program],
    Python: ['python3', '-c', program],
  };
  const [command, ...args] = commands[language] ?? [''];
  const env = { ...process.env, PLANT_STORE_TOKEN: token };
  return (await promisify(execFile)(command, args, { env, cwd: tmpdir() })).stdout;
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

it('has samples for each operation, and for getting every page', async (t) => {
  const { shown } = await startWithSamples(t);
  const expected = new Set(['paging', ...operations.map(({ operationId }) => operationId)]);
  assert.deepEqual(new Set(shown.keys()), expected);
  assert.deepEqual(new Set(inOrder), expected);
});

for (const language of languages) {
  const skip = without(...neededFor(language));
  it(`has samples in ${language} that print the response beside them`, { skip }, async (t) => {
    const { app, token, other, shown } = await startWithSamples(t);
    for (const id of inOrder) {
      const { samples = {}, response = '' } = shown.get(id) ?? {};
      const output = await runSample(app, token, language, samples[language] ?? '');
      const [, body = ''] = response.split('\n\n');
      if (id === 'paging') {
        for (const plant of ['41.*Ficus', '42.*Monstera']) assert.match(output, new RegExp(plant));
      } else if (body === '') {
        assert.match(output, /^(204\n)?$/);
      } else {
        const read = readers[language]?.(output);
        const expected = await expectedOf(app, token, id, JSON.parse(body), read);
        assert.equal(JSON.stringify(read), JSON.stringify(expected), `${id}: ${output}`);
      }
    }
    assert.equal((await app.call('GET', '/token', { token })).status, 401);
    assert.equal((await app.call('GET', '/token', { token: other })).status, 401);
  });
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
    listDeletedPlants: bin,
  }[id];
  if (path !== undefined) return (await call('GET', path, { token })).json;
  if (id !== 'createToken') return example;
  const { token: created } = read as { token: string }; // a JSON object, as the next request shows
  const { json } = await call('GET', '/tokens', { token });
  const found = (json as { id: string }[]).find((one) => one.id === idOf(created));
  return { ...found, token: created };
}

it('shows the status and the headers of each response', { skip: without('curl') }, async (t) => {
  const { app, token, shown } = await startWithSamples(t);
  for (const id of inOrder) {
    const { samples = {}, response = '' } = shown.get(id) ?? {};
    if (id === 'paging') continue;
    const withHeaders = (samples['curl'] ?? '').replace(/^curl/, 'curl --silent --include');
    const [head = ''] = (await runSample(app, token, 'curl', withHeaders)).split('\r\n\r\n');
    const [status, ...headers] = (response.split('\n\n')[0] ?? '').trimEnd().split('\n');
    assert.equal(head.split('\r\n')[0], status, id);
    for (const header of headers) {
      // All plants fit into one page, so it has no next one.
      if (header.startsWith('Link')) continue;
      const shownPart = header.replace(/(?<=\/tokens\/).*/, ''); // the id is new
      assert.ok(head.toLowerCase().includes(shownPart.toLowerCase()), header);
    }
  }
});

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

it('links only to what exists', async (t) => {
  const { call, address } = await startApp(t);
  const { text } = await call('GET', '/docs');
  const links = [...text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, link = '']) => link);
  const inPage = links.filter((link) => link.startsWith('#'));
  assert.ok(inPage.length > 10);
  for (const link of inPage) assert.ok(text.includes(`id="${link.slice(1)}"`), link);
  const files = links.filter((link) => !/^(#|data:)/.test(link));
  assert.ok(files.length > 3);
  for (const file of new Set(files)) {
    const url = new URL(file, `${address}/docs`);
    assert.equal(url.origin, address, file);
    assert.equal((await call('GET', url.pathname)).status, 200, file);
  }
});

it('is small', async (t) => {
  const { address } = await startApp(t);
  let bytes = 0;
  for (const path of [
    'docs',
    'web/styles/theme.css',
    'web/styles/reference.css',
    'web/reference.ts',
  ]) {
    const response = await fetch(`${address}/${path}`);
    assert.equal(response.headers.get('content-encoding'), 'gzip');
    bytes += Number(response.headers.get('content-length'));
  }
  t.diagnostic(`${bytes} bytes compressed`);
  assert.ok(bytes < 40_000, `${bytes} bytes`);
});
