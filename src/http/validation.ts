/**
 * Validates requests against the TypeBox schemas of their routes. It coerces no types, refuses unknown, repeated and
 * lossy input, and reports all faults of all parts in one response.
 *
 * Fastify's own validation stops at the first part that fails, so a hook replaces it.
 */
import type { TObject } from '@sinclair/typebox';
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import type { FastifyInstance, onRequestHookHandler } from 'fastify';
import { parseTimestamp } from '../timestamp.ts';
import { OptionalKind } from '../typebox.ts';
import { invalidRequest, type Fault, type FaultPlace } from '../problem.ts';
import { pointerTo, readJson } from './json.ts';
import { readQuery, parseParameter } from './query.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Validates `query` at the first call. If it returns faults, `query` is not valid. Only on routes with a schema for it. */
    readQuery: () => readonly Fault[];
  }
}

interface Input {
  value: unknown;
  faults: Fault[];
}

const toParameter = (name: string): FaultPlace => ({ parameter: name });
const toMember = (name: string): FaultPlace => ({ pointer: pointerTo(name) });

const ajv = new Ajv({
  allErrors: true, // bounded by the size of a body and of the headers
  verbose: true,
  strict: true,
  formats: { 'date-time': (text) => parseTimestamp(text) !== undefined },
  validateSchema: false, // a test does it, because compiling the meta-schema slows down startup
});

/**
 * Validates the requests of every route that is added to `app` later and has schemas. A query can be read before the
 * caller is known, so that a storage can read both at once (auth.ts). Its faults are reported afterwards.
 */
export function validateRequests(app: FastifyInstance): void {
  app.decorateRequest('readQuery');
  app.addHook('onRoute', (route) => {
    // Fastify does not type schemas; those of our routes are TypeBox objects.
    const { params, querystring, body } = (route.schema ?? {}) as Record<string, TObject>;
    const checkParams = params && compile(params, toParameter);
    const checkQuery = querystring && compile(querystring, toParameter);
    const checkBody = body && compile(body, toMember);

    if (querystring && checkQuery) {
      const addReadQuery: onRequestHookHandler = (request, _reply, done) => {
        let faults: Fault[] | undefined;
        request.readQuery = () => {
          if (faults === undefined) {
            faults = [];
            request.query = checkQuery(readQuery(querystring, request.raw.url ?? ''), faults);
          }
          return faults;
        };
        done();
      };
      route.onRequest = [addReadQuery, ...[route.onRequest ?? []].flat()];
    }
    route.preValidation = (request, _reply, done) => {
      const faults: Fault[] = [];
      if (params && checkParams) {
        request.params = checkParams(readParams(params, request.params), faults);
      }
      if (checkQuery) faults.push(...request.readQuery());
      if (checkBody) request.body = checkBody(readBody(body, request.body), faults);
      done(faults.length > 0 ? invalidRequest(faults) : undefined);
    };
  });
}

function readParams(schema: TObject, params: unknown): Input {
  const texts = Object.entries(params as Record<string, string>); // find-my-way returns only strings
  const value = texts.map(([name, text]) => [name, parseParameter(schema.properties[name], text)]);
  return { value: Object.fromEntries(value), faults: [] };
}

function readBody(schema: TObject, body: unknown): Input {
  const bytes = body instanceof Buffer ? body : Buffer.alloc(0);
  const isOmitted = bytes.length === 0 && OptionalKind in schema;
  return isOmitted ? { value: {}, faults: [] } : readJson(bytes, schema.examples?.[0]);
}

function compile(schema: TObject, placeOf: (name: string) => FaultPlace) {
  let validate: ValidateFunction | undefined;
  return (input: Input, faults: Fault[]): unknown => {
    faults.push(...input.faults);
    validate ??= ajv.compile(schema); // at the first request, to keep startup fast
    if (input.value !== undefined && !validate(input.value)) {
      // One fault per member: its first error, with the complete rule.
      const reported = new Set(input.faults.map(placeKey));
      for (const error of validate.errors ?? []) {
        const name = memberName(error);
        const at = name === undefined ? { pointer: '' } : placeOf(name);
        const fault = { ...at, detail: describeFault(error, name, schema, 'parameter' in at) };
        if (!reported.has(placeKey(fault))) faults.push(fault);
        reported.add(placeKey(fault));
      }
    }
    return input.value;
  };
}

function placeKey(fault: FaultPlace): string {
  return 'pointer' in fault ? fault.pointer : fault.parameter;
}

/** The member that the error is about; undefined for the whole object. */
function memberName(error: ErrorObject): string | undefined {
  const params: Record<string, unknown> = error.params;
  if (error.keyword === 'required') return String(params['missingProperty']);
  if (error.keyword === 'additionalProperties') return String(params['additionalProperty']);
  const [, member] = error.instancePath.split('/');
  return member?.replaceAll('~1', '/').replaceAll('~0', '~');
}

function describeFault(
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
  // A parameter is always text, so "wrong type" would confuse.
  const reason = isParameter && error.keyword === 'type' ? 'is not valid' : reasons[error.keyword];
  return `"${name}" ${reason ?? 'is not valid'}; it must be ${rule}.`;
}

const reasons: Record<string, string> = {
  type: 'has the wrong type',
  minLength: 'is empty',
  maxLength: 'is too long',
  pattern: 'is blank or has a character that is not allowed',
  minimum: 'is too small',
  maximum: 'is too large',
  enum: 'has an unknown value',
  uniqueItems: 'repeats a value',
};
