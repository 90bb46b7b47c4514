/**
 * The service behind nginx. The other proxies of docs/how-to/deploy.md have the same tests in proxies.long.ts.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { missing } from '../support/reverse-proxies.ts';
import { start, testProxy } from './proxies.ts';

testProxy('nginx');

it(
  'nginx logs the request id of the service, and no query',
  { skip: missing('nginx') },
  async (t) => {
    const { proxy, send } = await start(t, 'nginx');
    const { headers } = await send('GET', '/plants?tag=secret');
    const id = String(headers['x-request-id']);
    await send('GET', '/livez');
    const log = readFileSync(join(proxy.folder, 'plant-store.log'), 'utf8');
    assert.match(log, new RegExp(`"GET /plants" 200 \\d+ [\\d.]+ ${id}\n`));
    assert.ok(!log.includes('secret'));
  },
);
