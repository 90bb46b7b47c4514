/**
 * The tools for assistants: the official client of the Model Context Protocol starts the command, which calls a real
 * service.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text as textOf } from 'node:stream/consumers';
import { describe, it, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client, type ClientOptions } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Page } from '../../tools/markdown.ts';
import { startApp, type TokenOptions } from '../support/app.ts';
import { executable, run } from '../support/command.ts';
import { shared } from '../support/shared.ts';
import { tempFolder } from '../support/temp.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

describe('mcp', { concurrency: 2 }, () => {
  const app = shared((t) => startApp(t));

  const settingsOf = async (user: string, options?: TokenOptions) => ({
    PLANT_STORE_URL: app().address,
    PLANT_STORE_TOKEN: await app().token(user, options),
  });

  for (const mode of ['legacy', { pin: '2026-07-28' }] as const) {
    const name = typeof mode === 'string' ? 'the initialize handshake' : `version ${mode.pin}`;
    it(`finds, gets, adds, edits, deletes and brings back plants, with ${name}`, async (t) => {
      const env = await settingsOf(`user of ${name}`);
      const { call } = await connect(t, ['--write'], env, { versionNegotiation: { mode } });
      const added = await call('add_plant', { name: 'Monstra', tag: 'indoor' });
      assert.ok(added instanceof Object && 'id' in added);
      const { id } = added;
      assert.deepEqual(added, { id, name: 'Monstra', tag: 'indoor' });
      const monstera = { id, name: 'Monstera', tag: 'indoor' };
      assert.deepEqual(await call('edit_plant', { id, name: 'Monstera' }), monstera);
      for (const query of [{}, { text: 'MONST' }, { tag: 'indoor' }]) {
        const found = { plants: [monstera], hasMore: false };
        assert.deepEqual(await call('search_plants', query), found);
      }
      assert.deepEqual(await call('delete_plant', { id }), { deleted: id });
      assert.deepEqual(await call('search_plants', {}), { plants: [], hasMore: false });
      assert.deepEqual(await call('delete_plant', { id, undo: true }), monstera);
      const whole = { ...monstera, owner: `user of ${name}`, access: 'write' };
      assert.deepEqual(await call('get_plant', { id }), whole);
    });
  }

  it('searches in pages', async (t) => {
    const env = await settingsOf('pages', { store: 'pages' });
    const { call } = await connect(t, ['--write'], env);
    for (let plants = 0; plants < 3; plants++) await call('add_plant', { name: 'Aloe' });
    const plant = (id: number) => ({ id, name: 'Aloe', tag: '' });
    const first = await call('search_plants', { limit: 2 });
    assert.deepEqual(first, { plants: [plant(1), plant(2)], hasMore: true });
    const second = await call('search_plants', { limit: 2, after: 2 });
    assert.deepEqual(second, { plants: [plant(3)], hasMore: false });
  });

  it('lists few words, of which some warn about names, and nothing that writes without --write', async (t) => {
    const env = await settingsOf('alice');
    const all = await (await connect(t, ['--write'], env)).client.listTools();
    const few = await connect(t, [], env);
    const { tools } = await few.client.listTools();
    assert.deepEqual(
      all.tools.map(({ name, annotations }) => [name, annotations?.readOnlyHint]),
      [
        ['search_plants', true],
        ['get_plant', true],
        ['add_plant', false],
        ['edit_plant', false],
        ['delete_plant', false],
      ],
    );
    const charactersOfToken = 3; // of JSON; English has more
    assert.ok(JSON.stringify(all).length / charactersOfToken < 1_500, JSON.stringify(all));
    assert.deepEqual(tools, all.tools.slice(0, 2));
    for (const { description } of tools) assert.match(description ?? '', /never follow/);
    await assert.rejects(few.call('add_plant', { name: 'Aloe' }), /add_plant not found/);
  });

  it('shows the errors of the service in plain words', async (t) => {
    const { PLANT_STORE_URL } = await settingsOf('bob');
    const { call } = await connect(t, ['--write'], await settingsOf('bob'));
    const missing = 'There is no plant with this id, or you do not have access to it.';
    assert.equal(await call('get_plant', { id: 99 }), missing);
    assert.match(String(await call('add_plant', { name: ' ' })), /^"name" .* Use a string of 1/);
    assert.match(String(await call('get_plant', { id: 0 })), /^An id must be an integer from 1/);
    assert.match(String(await call('get_plant', { plant: 1 })), /must have required property 'id'/);
    assert.match(String(await call('edit_plant', { id: 1, tga: 'x' })), /additional properties/);
    const reader = await settingsOf('bob', { scopes: ['plants:read'] });
    const other = await connect(t, ['--write'], reader);
    assert.match(
      String(await other.call('add_plant', { name: 'x' })),
      /requires the scope plants:/,
    );
    const stranger = { PLANT_STORE_URL, PLANT_STORE_TOKEN: 'plant_0' };
    const unknown = await connect(t, [], stranger);
    assert.match(String(await unknown.call('search_plants', {})), /Set another token in PLANT_/);
  });

  it('shows the hidden characters of a name', async (t) => {
    const { client } = await connect(t, ['--write'], await settingsOf('hidden'));
    const name = 'a\u202eb\u{e0041}'; // the last one is an invisible letter
    const { content } = await client.callTool({ name: 'add_plant', arguments: { name } });
    assert.match(JSON.stringify(content), /a\\\\u202eb\\\\udb40\\\\udc41/);
  });

  for (const end of ['stdin', 'stdout'] as const) {
    it(`writes nothing but the protocol, and ends when ${end} closes`, async () => {
      const env = { ...process.env, ...(await settingsOf('raw')) };
      const child = spawn(process.execPath, [executable, 'mcp'], { env });
      const stderr = textOf(child.stderr);
      const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
      const answer = async () => JSON.parse((await lines.next()).value ?? '');
      child.stdin.write(`${opening.join('\n')}\n`);
      assert.equal((await answer()).result.serverInfo.name, 'plant-store');
      child.stdin.write(`${request(2, 'tools/call', { name: 'search_plants' })}\n`);
      const [{ text }] = (await answer()).result.content;
      assert.deepEqual(JSON.parse(text), { plants: [], hasMore: false });
      const exited = once(child, 'exit');
      child[end].destroy();
      if (end === 'stdout') child.stdin.write(`${request(3, 'tools/list', {})}\n`);
      assert.deepEqual(await exited, [0, null]);
      assert.equal(await stderr, '');
    });
  }

  it('refuses a token from standard input', async () => {
    const { status, stderr } = await run(['mcp', '--token', '-']);
    assert.equal(status, 2);
    assert.match(stderr, /Standard input is for the assistant/);
  });

  for (const [at, { command, args }] of recipes().entries()) {
    it(`starts as docs/how-to/assistants.md shows, recipe ${at + 1}`, async (t) => {
      const folder = tempFolder(t);
      const { PLANT_STORE_TOKEN: token, PLANT_STORE_URL } = await settingsOf('reader');
      writeFileSync(join(folder, 'assistant-token'), token);
      const real = ([command, ...args] as const).map((arg) =>
        arg
          .replace('/home/you/plant-store/assistant-token', join(folder, 'assistant-token'))
          .replace('/home/you/plant-store', root),
      );
      const [program = '', ...rest] = real;
      const env = { PLANT_STORE_URL, PATH: process.env['PATH'] ?? '' };
      const transport = new StdioClientTransport({
        command: program,
        args: rest,
        env,
        cwd: folder,
      });
      const { client } = await connectTo(t, transport);
      assert.equal((await client.listTools()).tools.length, 2);
    });
  }
});

/** The commands that the page tells assistants to start. */
function recipes(): { command: string; args: string[] }[] {
  const { blocks } = new Page(join(root, 'docs/how-to/assistants.md'));
  const found = blocks.flatMap(({ language, text }) => {
    if (language === 'json') return Object.values<Recipe>(JSON.parse(text).servers);
    if (language !== 'bash') return [];
    const [, line = ''] = /^claude mcp add \w+ -- (.*)$/m.exec(text) ?? [];
    const [command = '', ...args] = line.split(' ');
    return { command, args };
  });
  assert.equal(found.length, 2);
  return found;
}

interface Recipe {
  command: string;
  args: string[];
}

async function connect(
  t: TestContext,
  args: readonly string[],
  env: Record<string, string>,
  options?: ClientOptions,
) {
  const command = { command: process.execPath, args: [executable, 'mcp', ...args], env };
  return connectTo(t, new StdioClientTransport(command), options);
}

async function connectTo(t: TestContext, transport: StdioClientTransport, options?: ClientOptions) {
  const client = new Client({ name: 'test', version: '1.0.0' }, options);
  t.after(() => client.close());
  await client.connect(transport);
  /** Returns the result, or the text of an error. */
  const call = async (name: string, args: Record<string, unknown>): Promise<unknown> => {
    const { content, isError } = await client.callTool({ name, arguments: args });
    const [block] = content;
    assert.ok(block?.type === 'text' && content.length === 1);
    return isError ? block.text : JSON.parse(block.text);
  };
  return { client, call };
}

function request(id: number, method: string, params: object): string {
  return JSON.stringify({ jsonrpc: '2.0', id, method, params });
}

/** How an assistant opens a connection. */
const opening = [
  request(1, 'initialize', {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'test', version: '1.0.0' },
  }),
  JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }),
];
