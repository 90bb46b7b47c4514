/**
 * The parts of openapi.json that the reference shows.
 */
export interface OpenApi {
  info: { version: string; description: string };
  tags: { name: string; description: string }[];
  /** Operations by path and method. */
  paths: Record<string, Record<string, Operation>>;
  components: { headers: Record<string, Header>; examples: Record<string, { summary: string }> };
}

export interface Operation {
  operationId: string;
  summary: string;
  description: string;
  tags: string[];
  /** Empty if the operation needs no token. */
  security?: object[];
  parameters: Parameter[];
  requestBody?: { content: Record<string, { schema: Schema }> };
  responses: Record<string, Response>;
}

export interface Parameter {
  name: string;
  in: string;
  required: boolean;
  description: string;
  schema: Schema;
}

export interface Schema {
  /** The whole schema, until parseOpenApi() replaces it. */
  $ref?: string;
  type?: string | string[];
  description?: string;
  format?: string;
  enum?: string[];
  anyOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  examples?: Example[];
}

/** Any JSON. */
export type Example = string | number | boolean | null | Example[] | { [name: string]: Example };

export interface Header {
  description: string;
  example: unknown;
}

export interface Response {
  description: string;
  headers?: Record<string, Header>;
  content?: Record<string, { schema: Schema; examples?: Record<string, unknown> }>;
}

/** Parses the document and replaces each `$ref` with its target. No component contains itself. */
export function parseOpenApi(text: string): OpenApi {
  const document: OpenApi = JSON.parse(text);
  const resolve = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(resolve);
    if (value === null || typeof value !== 'object') return value;
    if ('$ref' in value) return resolve(targetOf(document, String(value.$ref)));
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, resolve(inner)]));
  };
  return resolve(document) as OpenApi; // references are replaced by what the types say
}

function targetOf(document: unknown, reference: string): unknown {
  let target = document;
  for (const key of reference.split('/').slice(1)) target = Object(target)[key];
  return target;
}

/** The value that the reference shows for a schema: its own example, or one of its items. */
export function exampleOf({ examples, items }: Schema): Example | undefined {
  if (examples !== undefined) return examples[0];
  const example = items && exampleOf(items);
  return example === undefined ? undefined : [example];
}
