/**
 * Checks what a request says against the TypeBox schemas of its route, strictly: no type is coerced,
 * nothing unknown, repeated or lossy passes, and every fault of every part is told in one answer.
 *
 * Fastify's own validation stops at the first part that fails, so a hook does it instead.
 */
import type { TObject } from '@sinclair/typebox';
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import type { FastifyInstance } from 'fastify';
import { invalidRequest, type Fault, type FaultPlace } from '../problem.ts';
import { pointerTo, readJson } from './json.ts';
import { readQuery, readText } from './query.ts';

interface Reading {
  value: unknown;
  faults: Fault[];
}

const toParameter = (name: string): FaultPlace => ({ parameter: name });
const toMember = (name: string): FaultPlace => ({ pointer: pointerTo(name) });

const ajv = new Ajv({
  allErrors: true, // bounded by the size of a body and of the headers
  verbose: true,
  strict: true,
  validateSchema: false, // a test does: to compile the schema of schemas takes as long as all of ours
  keywords: ['style', 'explode'],
});

/** Makes every route below `app` that has schemas check its requests. */
export function validateRequests(app: FastifyInstance): void {
  app.addHook('onRoute', (route) => {
    // Fastify has no type for schemas; those of our routes are TypeBox objects.
    const { params, querystring, body } = (route.schema ?? {}) as Record<string, TObject>;
    const checkParams = params && compile(params, toParameter);
    const checkQuery = querystring && compile(querystring, toParameter);
    const checkBody = body && compile(body, toMember);

    route.preValidation = (request, _reply, done) => {
      const faults: Fault[] = [];
      if (params && checkParams) {
        request.params = checkParams(readParams(params, request.params), faults);
      }
      if (querystring && checkQuery) {
        request.query = checkQuery(readQuery(querystring, request.raw.url ?? ''), faults);
      }
      if (checkBody) request.body = checkBody(readBody(request.body), faults);
      done(faults.length > 0 ? invalidRequest(faults) : undefined);
    };
  });
}

function readParams(schema: TObject, params: unknown): Reading {
  const texts = Object.entries(params as Record<string, string>); // find-my-way makes no others
  const value = texts.map(([name, text]) => [name, readText(schema.properties[name], text)]);
  return { value: Object.fromEntries(value), faults: [] };
}

function readBody(body: unknown): Reading {
  return body instanceof Buffer ? readJson(body) : readJson(Buffer.alloc(0));
}

function compile(schema: TObject, placeOf: (name: string) => FaultPlace) {
  let validate: ValidateFunction | undefined;
  return (reading: Reading, faults: Fault[]): unknown => {
    faults.push(...reading.faults);
    validate ??= ajv.compile(schema); // with the first request, which takes less than all at the start
    if (reading.value !== undefined && !validate(reading.value)) {
      // One fault for each member: the first thing wrong with it, and its whole rule.
      const told = new Set(reading.faults.map(keyOf));
      for (const error of validate.errors ?? []) {
        const name = memberOf(error);
        const at = name === undefined ? { pointer: '' } : placeOf(name);
        const fault = { ...at, detail: detailOf(error, name, schema, 'parameter' in at) };
        if (!told.has(keyOf(fault))) faults.push(fault);
        told.add(keyOf(fault));
      }
    }
    return reading.value;
  };
}

function keyOf(fault: FaultPlace): string {
  return 'pointer' in fault ? fault.pointer : fault.parameter;
}

/** The member of the object that the error is about; undefined for the object as a whole. */
function memberOf(error: ErrorObject): string | undefined {
  const params: Record<string, unknown> = error.params;
  if (error.keyword === 'required') return String(params['missingProperty']);
  if (error.keyword === 'additionalProperties') return String(params['additionalProperty']);
  const [, member] = error.instancePath.split('/');
  return member?.replaceAll('~1', '/').replaceAll('~0', '~');
}

function detailOf(
  error: ErrorObject,
  name: string | undefined,
  schema: TObject,
  isParameter: boolean,
): string {
  const known = Object.keys(schema.properties);
  if (name === undefined) return `The body must be ${schema.description}.`;
  if (error.keyword === 'additionalProperties') {
    const kind = isParameter ? 'parameter' : 'field';
    const allowed = known.length > 0 ? `use ${known.join(', ')}` : 'there are none here';
    return `Unknown ${kind} "${name}"; ${allowed}.`;
  }
  const rule = schema.properties[name]?.description ?? 'something else';
  if (error.keyword === 'required') return `"${name}" is missing; it must be ${rule}.`;
  // A parameter is text, so it cannot have a wrong type as a member of the body can.
  const wrong = isParameter && error.keyword === 'type' ? 'is not valid' : wrongs[error.keyword];
  return `"${name}" ${wrong ?? 'is not valid'}; it must be ${rule}.`;
}

const wrongs: Record<string, string> = {
  type: 'has the wrong type',
  minLength: 'is empty',
  maxLength: 'is too long',
  pattern: 'is blank or has a character that is not allowed',
  minimum: 'is too small',
  maximum: 'is too large',
  enum: 'has an unknown value',
  uniqueItems: 'repeats a value',
};
