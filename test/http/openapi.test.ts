import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { it } from 'node:test';
import type { TSchema } from '@sinclair/typebox';
import { Ajv } from 'ajv';
import * as operations from '../../src/http/operations.ts';
import { openapiFile, openapiText } from '../../tools/openapi.ts';
import { startApp } from '../support/app.ts';

interface RouteSchemas {
  params?: TSchema;
  querystring?: TSchema;
  body?: TSchema;
}

it('openapi.json is what the routes say; run "npm run openapi" after a change', async () => {
  assert.equal(readFileSync(openapiFile, 'utf8'), await openapiText());
});

it('tells that fields are written with commas, as the service takes them', () => {
  const { paths } = JSON.parse(readFileSync(openapiFile, 'utf8'));
  for (const operation of [
    paths['/plants'].get,
    paths['/plants'].post,
    paths['/plants/{id}'].get,
  ]) {
    const fields = operation.parameters.find(({ name }: { name: string }) => name === 'fields');
    assert.deepEqual([fields.style, fields.explode], ['form', false]);
  }
});

it('the schemas of the operations are schemas', () => {
  const ajv = new Ajv({ strict: true, keywords: ['style', 'explode'] });
  for (const { params, querystring, body } of Object.values(operations) as RouteSchemas[]) {
    for (const schema of [params, querystring, body]) {
      if (schema !== undefined) assert.ok(ajv.validateSchema(schema), ajv.errorsText());
    }
  }
});

it('/openapi.json is the document that is committed', async (t) => {
  const { call } = await startApp(t);
  const { json } = await call('GET', '/openapi.json');
  assert.deepEqual(json, JSON.parse(readFileSync(openapiFile, 'utf8')));
});

it('/docs and all that it loads come from the service itself', async (t) => {
  const { call, address } = await startApp(t);
  const page = await call('GET', '/docs');
  assert.equal(page.status, 200);
  assert.match(page.headers.get('content-security-policy') ?? '', /default-src 'none'/);
  const links = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, link]) => link ?? '');
  const files = links.filter((link) => !link.startsWith('data:'));
  assert.ok(files.length >= 4);
  for (const file of files) {
    const url = new URL(file, `${address}/docs`);
    assert.equal(url.origin, address, file);
    const { status, text } = await call('GET', url.pathname);
    assert.equal(status, 200, file);
    assert.ok(text.length > 50, file);
  }
});
