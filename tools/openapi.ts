/**
 * Generates the OpenAPI document from the schemas of the routes. `npm run openapi` writes it to openapi.json. A test
 * compares the committed file with the generated document.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { TObject, TSchema } from '@sinclair/typebox';
import { fastify, type FastifySchema } from 'fastify';
import { pino } from 'pino';
import { addRoutes } from '../src/http/app.ts';
import { mediaTypesOf } from '../src/http/request/body.ts';
import type { Operation } from '../src/http/routes/operation.ts';
import type { Storage } from '../src/storage.ts';
import { OptionalKind } from '../src/shared/typebox.ts';
import { Page } from './markdown.ts';
import {
  exampleRequestId,
  headers,
  problemComponents,
  requestHeaders,
  responsesOf,
} from './openapi-responses.ts';
import { messages, schemas, WebhookMessage } from './openapi-schemas.ts';
import { problemOf } from './problems.ts';

export const openapiFile = fileURLToPath(new URL('../openapi.json', import.meta.url));
const packageFile = new URL('../package.json', import.meta.url);
const maxInt32 = 2 ** 31 - 1;
/** Only these formats are known to others; the others are rules of the service. */
const standardFormats: readonly unknown[] = ['date-time', 'uri-reference'];
const errorsFile = fileURLToPath(new URL('../docs/reference/errors.md', import.meta.url));

/** The document as text, as it is committed. */
export function openapiText(): string {
  const { version } = JSON.parse(readFileSync(packageFile, 'utf8'));
  const { paths, parameters } = operationsOfRoutes();
  const responses = Object.fromEntries(
    Object.entries(problemComponents).toSorted(([a], [b]) => (a < b ? -1 : 1)),
  );
  const named = { schemas, responses, headers, parameters };
  const document = {
    openapi: '3.1.0',
    info: {
      title: 'Plant Store',
      version,
      description:
        'A small store of plants: create, list, change and delete plants. Each operation on plants needs a bearer token. Every error is a problem document (RFC 9457). After one, nothing was changed, unless its type ends with `internal-error` or `outcome-unknown`.',
      license: { name: 'MIT', identifier: 'MIT' },
      contact: { name: 'The Plant Store authors' },
    },
    servers: [{ url: 'http://127.0.0.1:8080' }],
    tags: [
      { name: 'plants', description: 'The plants that the calling user has access to.' },
      { name: 'changes', description: 'What has changed, for those who follow a store.' },
      { name: 'shares', description: 'Access to the plants of other users.' },
      { name: 'tokens', description: 'The tokens of the calling user.' },
      { name: 'users', description: 'The users of the store, for its managers.' },
      { name: 'webhooks', description: 'Endpoints that get the changes as messages.' },
      { name: 'health', description: 'Checks for balancers and monitoring. They need no token.' },
    ],
    security: [{ bearer: [] }],
    paths,
    webhooks: { message: { post: messageOperation() } },
    components: {
      ...named,
      examples: examplesOfProblems(responses),
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description: 'Your token (RFC 6750).',
        },
      },
    },
  };
  return `${JSON.stringify(withReferences(document, named), null, 2)}\n`;
}

/** The operations by path and method, and their parameters by name. */
function operationsOfRoutes() {
  const paths: Record<string, Record<string, object>> = {};
  const parameters = new Map<TSchema, ReturnType<typeof parameterOf>>();
  const parametersIn = (place: string, { properties = {}, required = [] }: Partial<TObject> = {}) =>
    Object.entries(properties).map(([name, schema]) => {
      const known = parameters.get(schema);
      const parameter = known ?? parameterOf(name, place, required.includes(name), schema);
      parameters.set(schema, parameter);
      return parameter;
    });

  const app = fastify({ exposeHeadRoutes: false });
  app.addHook('onRoute', ({ method, url, schema }) => {
    if (schema === undefined) return; // routes of documents, which are not operations
    // Fastify does not type schemas. Those of our routes have this type.
    const operation = schema as Operation & Pick<FastifySchema, 'operationId' | 'tags'>;
    const { operationId, tags, summary, description, scopes } = operation;
    const { params, querystring, body, requestHeaders: named = [] } = operation;
    const needed = scopes?.map((scope) => `\`${scope}\``).join(' or ');
    const right = needed === '' ? ' Requires no scope.' : ` Requires the scope ${needed}.`;
    const atPath = (paths[url.replaceAll(/:(\w+)/g, '{$1}')] ??= {});
    atPath[String(method).toLowerCase()] = {
      operationId,
      summary,
      description: scopes === undefined ? description : description + right,
      tags,
      ...(scopes === undefined && { security: [] }),
      parameters: [
        ...parametersIn('path', params),
        ...parametersIn('query', querystring),
        ...named.map((name) => requestHeaders[name]),
      ],
      ...(body && {
        requestBody: {
          required: !(OptionalKind in body),
          content: Object.fromEntries(
            mediaTypesOf(String(method)).map((mediaType) => [mediaType, { schema: body }]),
          ),
        },
      }),
      responses: responsesOf(operation, String(method)),
    };
  });
  addRoutes(app, {
    storage: {} as Storage, // never called, because no request is sent
    log: pino({ enabled: false }),
    baseUrl: '',
    stopping: new AbortController().signal,
  });
  // Only the first one of a name: the others are part of their operations.
  const byName = [...parameters.values()].map((parameter) => [parameter.name, parameter] as const);
  return { paths, parameters: { ...Object.fromEntries(byName.toReversed()), ...requestHeaders } };
}

/** What a receiver gets. */
function messageOperation() {
  const header = (name: string, description: string, example: string) => ({
    name,
    in: 'header',
    required: true,
    description,
    schema: { type: 'string' },
    example,
  });
  const timestamp = '2026-02-01T09:30:00.000Z';
  const examples = Object.entries(messages).map(([type, data]) => [
    type,
    { summary: type, value: { type, timestamp, data } },
  ]);
  return {
    operationId: 'receiveMessage',
    summary: 'Receive a message',
    description:
      'What the service sends to a webhook, after [Standard Webhooks](https://www.standardwebhooks.com). Verify the signature, then respond within 7 seconds. A message can arrive more than once.',
    tags: ['webhooks'],
    security: [],
    parameters: [
      header('webhook-id', 'The id of the message, the same in each attempt.', 'msg_5f2c8d0e'),
      header('webhook-timestamp', 'When this attempt was made (Unix time).', '1769938200'),
      header(
        'webhook-signature',
        'Signatures of `{webhook-id}.{webhook-timestamp}.{body}`, separated by spaces: `v1,` and an HMAC-SHA256 in base64.',
        'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
      ),
    ],
    requestBody: {
      required: true,
      content: {
        'application/json': { schema: WebhookMessage, examples: Object.fromEntries(examples) },
      },
    },
    responses: {
      '2XX': { description: 'The receiver has the message.' },
      '410': { description: 'The receiver wants no more messages: the webhook is retired.' },
      default: { description: 'The service tries again, for three days.' },
    },
  };
}

function parameterOf(name: string, place: string, required: boolean, schema: TSchema) {
  const { description, ...rest } = asPublished(schema);
  const style = rest['type'] === 'array' && { style: 'form', explode: true };
  return { name, in: place, required, description, ...style, schema: rest };
}

/** A schema with the descriptions, patterns and formats that clients need. */
function asPublished(schema: object): Record<string, unknown> {
  const { meaning, portablePattern, ...copy }: Record<string, unknown> = { ...schema };
  const refused =
    portablePattern === undefined ? '' : ' U+0080 to U+009F and lone surrogates are refused too.';
  if (typeof meaning === 'string') {
    copy['description'] = `${meaning} ${sentence(copy['description'])}${refused}`;
  }
  if (portablePattern !== undefined) copy['pattern'] = portablePattern;
  if (!standardFormats.includes(copy['format'])) delete copy['format'];
  if (copy['type'] === 'integer') {
    copy['format'] = Number(copy['maximum']) <= maxInt32 ? 'int32' : 'int64';
  }
  if (Array.isArray(copy['anyOf'])) copy['anyOf'] = copy['anyOf'].map(asPublished);
  return copy;
}

function sentence(rule: unknown): string {
  const text = String(rule);
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

/** The examples of docs/reference/errors.md that responses refer to. */
function examplesOfProblems(responses: object): object {
  const referring = JSON.stringify(responses);
  const sections = new Page(errorsFile).sections.filter(({ heading }) =>
    referring.includes(`"#/components/examples/${heading}"`),
  );
  const examples = sections.map((section) => {
    const text = JSON.stringify(problemOf(section));
    const value = JSON.parse(text.replaceAll('<request id>', exampleRequestId));
    return [section.heading, { summary: value.title, value }];
  });
  return Object.fromEntries(examples);
}

/** Replaces every value that has a name under `components` with a reference to it. */
function withReferences(document: object, components: Record<string, object>): unknown {
  const references = new Map<unknown, string>();
  for (const [kind, named] of Object.entries(components)) {
    for (const [name, component] of Object.entries(named)) {
      references.set(component, `#/components/${kind}/${name}`);
    }
  }
  const write = (value: unknown, at: string): unknown => {
    if (Array.isArray(value)) return value.map((inner, index) => write(inner, `${at}/${index}`));
    if (value === null || typeof value !== 'object') return value;
    const $ref = references.get(value);
    if ($ref !== undefined && $ref !== at) return { $ref };
    const entries = Object.entries(asPublished(value));
    return Object.fromEntries(entries.map(([key, inner]) => [key, write(inner, `${at}/${key}`)]));
  };
  return write(document, '#');
}

if (import.meta.main) writeFileSync(openapiFile, openapiText());
