import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { it } from 'node:test';
import { Ajv } from 'ajv';
import { Name, Tag } from '../../src/plants/plant.ts';
import { openapiFile, openapiText } from '../../tools/openapi.ts';
import { startApp } from '../support/app.ts';

const committed = JSON.parse(readFileSync(openapiFile, 'utf8'));

/** Every object of the document, the deepest ones too. */
function* objectsIn(value: unknown): Generator<Record<string, unknown>> {
  if (value === null || typeof value !== 'object') return;
  yield value as Record<string, unknown>; // arrays have keys as well
  for (const inner of Object.values(value)) yield* objectsIn(inner);
}

it('openapi.json matches the routes; run "npm run openapi" after a change', () => {
  assert.equal(readFileSync(openapiFile, 'utf8'), openapiText());
});

it('has patterns that mean the same with and without the u flag, in any language', () => {
  const { name, tag } = committed.components.schemas.NewPlant.properties;
  const { schema: wanted } = committed.components.parameters.tag;
  const patterns = [...objectsIn(committed)].flatMap(({ pattern }) => pattern ?? []).map(String);
  const { schema: key } = committed.components.parameters['Idempotency-Key'];
  assert.deepEqual(
    new Set(patterns),
    new Set([name.pattern, tag.pattern, wanted.pattern, key.pattern]),
  );
  for (const pattern of patterns) {
    assert.match(pattern, /^[ -~]+$/, 'it is plain ASCII');
    assert.doesNotMatch(
      pattern,
      /\(\?|\\[^Ssx]/,
      'RE2 and others have no lookaround, no \\u and no \\p',
    );
    for (const flags of ['', 'u', 'v']) {
      const regExp = new RegExp(pattern, flags);
      const isKey = pattern === key.pattern; // plants.test.ts compares it with the service
      const texts = ['🌵', '🌵'.repeat(200), 'Monstera deliciosa', ' a ', 'é\u3000ß'];
      for (const text of isKey ? ['5f2c', '"a b"'] : texts) {
        assert.match(text, regExp, `${pattern} with the flags "${flags}"`);
      }
      const refused = ['a\n', '\u0000', 'a\u001f', '🌵\u007f'];
      if (pattern === name.pattern) refused.push('', ' ', '\u3000\u00a0');
      for (const text of refused) {
        assert.doesNotMatch(text, regExp, `${pattern} with the flags "${flags}"`);
      }
    }
  }
});

it('has patterns that accept every valid value', () => {
  const { name, tag } = committed.components.schemas.NewPlant.properties;
  for (const [{ pattern: strict = '' }, { pattern }] of [
    [Name, name],
    [Tag, tag],
  ] as const) {
    const [valid, ...published] = [
      new RegExp(strict, 'u'),
      new RegExp(pattern),
      new RegExp(pattern, 'u'),
    ];
    const refused: string[] = [];
    for (let codePoint = 0; codePoint <= 0x1_0000; codePoint++) {
      const text = String.fromCodePoint(codePoint);
      if (!valid?.test(text) || published.every((regExp) => regExp.test(text))) continue;
      refused.push(`U+${codePoint.toString(16)}`);
    }
    assert.deepEqual(refused, []);
  }
});

it('has a format for every integer, and int32 if it fits', () => {
  const integers = [...objectsIn(committed)].filter(({ type }) => type === 'integer');
  assert.ok(integers.length > 0);
  for (const { minimum, maximum, format } of integers) {
    assert.ok(typeof minimum === 'number' && typeof maximum === 'number');
    assert.equal(format, maximum < 2 ** 31 ? 'int32' : 'int64', `up to ${maximum}`);
  }
});

it('describes conditions, entity tags, repeated fields, and what has no content', () => {
  const { get, patch, delete: deletion } = committed.paths['/plants/{id}'];
  const { post: restore } = committed.paths['/plants/{id}/restore'];
  const { get: list, post: create } = committed.paths['/plants'];
  const { parameters, headers: described } = committed.components;
  const namesOf = (operation: { parameters: { $ref?: string }[] }) =>
    operation.parameters.map(({ $ref = '' }) => $ref.replace('#/components/parameters/', ''));
  for (const operation of [get, patch, deletion]) {
    const conditions = namesOf(operation).filter((name) => name.startsWith('If-'));
    assert.deepEqual(conditions, ['If-Match', 'If-None-Match']);
    assert.ok(operation.responses[412]);
  }
  const onePlant = [get.responses[200], get.responses[304], patch.responses[200]];
  for (const { headers } of [...onePlant, restore.responses[200], create.responses[201]]) {
    assert.deepEqual(headers.ETag, { $ref: '#/components/headers/ETag' });
  }
  for (const { responses } of [get, deletion])
    assert.equal('content' in (responses[304] ?? responses[204]), false);
  const mediaTypes = Object.keys(patch.requestBody.content);
  assert.equal(described['Accept-Patch'].example, mediaTypes.join(', '));
  for (const operation of [list, create, get]) assert.ok(namesOf(operation).includes('fields'));
  const { in: place, style, explode } = parameters.fields;
  assert.deepEqual([place, style, explode], ['query', 'form', true]);
});

it('describes each schema, response, header and parameter once', () => {
  const described = [...objectsIn(committed)].map(({ description }) => description);
  const texts = described.filter((description) => typeof description === 'string');
  assert.deepEqual(texts.filter((text, at) => texts.indexOf(text) !== at).toSorted(), []);
});

it('has schemas that a strict validator accepts with the formats of OpenAPI alone', () => {
  const formats = { 'date-time': true, 'uri-reference': true, int32: true, int64: true } as const;
  const ajv = new Ajv({ strict: true, formats });
  const { components, ...others } = JSON.parse(
    JSON.stringify(committed).replaceAll('#/components/schemas/', 'schema:'),
  );
  for (const [name, schema] of Object.entries<object>(components.schemas))
    ajv.addSchema(schema, `schema:${name}`);
  for (const name of Object.keys(components.schemas)) assert.ok(ajv.getSchema(`schema:${name}`));
  const used = [...objectsIn(components), ...objectsIn(others)].flatMap(
    ({ schema }) => schema ?? [],
  );
  assert.ok(used.length > 20);
  for (const schema of used) ajv.compile(schema);
});

it('/openapi.json is the committed document with the address of the service', async (t) => {
  const { call, address } = await startApp(t);
  const { json } = await call('GET', '/openapi.json');
  // Relative to the document (RFC 3986), so a path prefix in front of the service is kept.
  assert.deepEqual(json, { ...committed, servers: [{ url: '.' }] });
  assert.equal(new URL('.', `${address}/nursery/openapi.json`).href, `${address}/nursery/`);
});

it('describes the statuses and headers of each operation, and names it as its summary does', () => {
  const operationsAt = Object.values<Record<string, Operation>>(committed.paths).flatMap((each) =>
    Object.values(each),
  );
  const headerOf = (one: Header): Header =>
    one.$ref === undefined ? one : committed.components.headers[one.$ref.split('/').at(-1) ?? ''];
  for (const { operationId, summary, security, responses: each } of operationsAt) {
    assert.equal(each['405'], undefined, 'its path supports its method');
    assert.ok(each['400'], operationId);
    if (security !== undefined) continue;
    const [verb = ''] = summary.toLowerCase().split(' ');
    assert.ok(operationId.startsWith(verb), `${operationId}: ${summary}`);
    for (const [status, { $ref = '', headers: own = {} }] of Object.entries(each)) {
      const headers = committed.components.responses[$ref.split('/').at(-1) ?? '']?.headers ?? own;
      assert.deepEqual(
        'Accept-Patch' in headers,
        operationId === 'updatePlant' && status === '415',
      );
      assert.equal(headerOf(headers.Vary).required, false);
      if (['401', '408', '417', '431', '505'].includes(status)) continue; // before the limits
      for (const name of ['RateLimit', 'RateLimit-Policy'])
        assert.equal(headerOf(headers[name] ?? {}).required, false, `${operationId} ${status}`);
    }
    const refusal = committed.components.responses.InvalidToken;
    assert.equal(headerOf(refusal.headers['WWW-Authenticate']).required, true);
  }
  assert.deepEqual(committed.components.schemas.NewToken.properties.label.examples, ['phone']);
});

interface Header {
  $ref?: string;
  required?: boolean;
}

interface Operation {
  operationId: string;
  summary: string;
  security?: unknown;
  responses: Record<string, { $ref?: string; headers?: Record<string, Header> }>;
}
