/**
 * Makes the OpenAPI document from the schemas of the routes. `npm run openapi` writes it to
 * openapi.json; a test compares what is committed with what this makes.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import swagger from '@fastify/swagger';
import { fastify } from 'fastify';
import { pino } from 'pino';
import { addRoutes } from '../src/http/app.ts';
import type { Storage } from '../src/storage.ts';

export const openapiFile = fileURLToPath(new URL('../openapi.json', import.meta.url));
const packageFile = new URL('../package.json', import.meta.url);

/** The document as text, as it is to be committed. */
export async function openapiText(): Promise<string> {
  const { version } = JSON.parse(readFileSync(packageFile, 'utf8'));
  await using app = fastify({ exposeHeadRoutes: false });
  app.setValidatorCompiler(() => () => true);
  app.setSerializerCompiler(() => JSON.stringify);
  await app.register(swagger, {
    // The service sends documents too, and they are no operations.
    transform: ({ schema, url }) => ({ schema: schema ?? { hide: true }, url }),
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Plant Store',
        version,
        description: 'A small store of plants: create a plant, list plants, delete a plant.',
        license: { name: 'MIT', identifier: 'MIT' },
        contact: { name: 'The Plant Store authors' },
      },
      servers: [{ url: '/' }],
      tags: [
        { name: 'plants', description: 'The plants that the calling user has access to' },
        { name: 'health', description: 'For whoever runs the service' },
      ],
      security: [{ bearer: [] }],
      components: {
        securitySchemes: {
          bearer: {
            type: 'http',
            scheme: 'bearer',
            description: 'A token that "plant-store token create" has made (RFC 6750).',
          },
        },
      },
    },
  });
  await app.register(async (routes) => {
    addRoutes(routes, {
      storage: {} as Storage, // no request is made, so it is never asked
      log: pino({ enabled: false }),
      baseUrl: '',
      stopping: new AbortController().signal,
    });
  });
  await app.ready();
  // Through JSON and back: what is left are plain objects.
  const document: Document = JSON.parse(JSON.stringify(app.swagger()));
  return `${JSON.stringify(withComponents(document), null, 2)}\n`;
}

interface Document {
  components: { schemas?: Record<string, unknown> };
}

/** Every schema that has a title stands once, under that name. */
function withComponents(document: Document): Document {
  const schemas: Record<string, unknown> = {};
  const hoist = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(hoist);
    if (value === null || typeof value !== 'object') return value;
    const entries = Object.entries(value).map(([key, inner]) => [key, hoist(inner)]);
    const copy: Record<string, unknown> = Object.fromEntries(entries);
    if (copy['in'] === 'query') return parameterOf(copy);
    if (copy['type'] !== 'object' || typeof copy['title'] !== 'string') return copy;
    schemas[copy['title']] = copy;
    return { $ref: `#/components/schemas/${copy['title']}` };
  };
  const hoisted = hoist(document) as Document; // the same shape with other schemas
  return { ...hoisted, components: { ...hoisted.components, schemas } };
}

/** How a list is written belongs to the parameter; an example would be sent by who tries it out. */
function parameterOf(parameter: Record<string, unknown>): object {
  delete parameter['example'];
  const { style, explode, ...schema } = parameter['schema'] as Record<string, unknown>; // it has one
  return style === undefined ? parameter : { ...parameter, style, explode, schema };
}

if (import.meta.main) writeFileSync(openapiFile, await openapiText());
