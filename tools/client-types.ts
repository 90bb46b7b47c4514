/**
 * Generates the types of the client from openapi.json and the kinds of problems, and lists of the fields of a plant.
 * `npm run openapi` writes them to src/client/types.ts. A test compares the committed file with the generated types.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { format, resolveConfig } from 'prettier';
import { optionalTexts, shownFields, textFields } from '../src/plants/fields.ts';
import { problemKinds } from '../src/problem.ts';
import { openapiFile } from './openapi.ts';
import type { Schema } from './reference/openapi.ts';

export const clientTypesFile = fileURLToPath(new URL('../src/client/types.ts', import.meta.url));

/** The client neither checks the health of a service, nor manages webhooks. Roles and shares are arguments and no bodies. */
const unused = new Set(
  'Health Readiness NewWebhook Webhook WebhookTest NewShare UserRole'.split(' '),
);

interface Components {
  schemas: Record<string, Schema>;
}

/** The types as text, as they are committed. */
export async function clientTypesText(): Promise<string> {
  const { components }: { components: Components } = JSON.parse(readFileSync(openapiFile, 'utf8'));
  const schemas = Object.entries(components.schemas).filter(([name]) => !unused.has(name));
  const declarations = [
    ...schemas.map(([name, schema]) => declaration(name, schema)),
    declaration('ProblemKind', {
      enum: Object.keys(problemKinds),
      description: 'The kinds of problems that the service responds with.',
    }),
    list('allFields', shownFields, 'What a response can have of a plant.'),
    list('textFields', textFields, 'The texts of a plant.'),
    list('optionalTexts', optionalTexts, 'Those that can be empty.'),
  ];
  const text = `// Generated from openapi.json by \`npm run openapi\`. Do not edit it.\n\n${declarations.join('\n\n')}`;
  const style = await resolveConfig(clientTypesFile);
  return format(text, { ...style, filepath: clientTypesFile });
}

function declaration(name: string, schema: Schema): string {
  const isObject = schema.type === 'object';
  const head = isObject ? `interface ${name}` : `type ${name} =`;
  return `${comment(schema)}export ${head} ${typeOf(schema)}`;
}

function typeOf({ $ref, type, enum: values, items, properties = {}, required }: Schema): string {
  if ($ref !== undefined) return $ref.slice($ref.lastIndexOf('/') + 1);
  if (values !== undefined) return values.map((value) => JSON.stringify(value)).join(' | ');
  if (Array.isArray(type)) return type.map((one) => typeOf({ type: one })).join(' | ');
  switch (type) {
    case 'null':
    case 'string':
      return type;
    case 'boolean':
      return 'boolean';
    case 'integer':
      return 'number';
    case 'array':
      return `(${typeOf(items ?? {})})[]`; // Prettier removes parentheses that are not needed
    case 'object': {
      const members = Object.entries(properties).map(
        ([name, schema]) =>
          `${comment(schema)}${name}${required?.includes(name) ? '' : '?'}: ${typeOf(schema)};`,
      );
      return `{\n${members.join('\n')}\n}`;
    }
    default:
      throw new Error(`No TypeScript type for ${type}. Add it to tools/client-types.ts.`);
  }
}

function list(name: string, values: readonly string[], description: string): string {
  return `${comment({ description })}export const ${name} = ${JSON.stringify(values)} as const;`;
}

function comment({ description }: Schema): string {
  return description === undefined ? '' : `/** ${description} */\n`;
}

if (import.meta.main) writeFileSync(clientTypesFile, await clientTypesText());
