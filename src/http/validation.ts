/**
 * Validates requests against the TypeBox schemas of their routes. It coerces no types, refuses unknown, repeated and
 * lossy input, and reports all faults of all parts in one response.
 *
 * Fastify's own validation stops at the first part that fails, so a hook replaces it.
 */
import type { TObject } from '@sinclair/typebox';
import { Ajv, type ValidateFunction } from 'ajv';
import type { FastifyInstance, onRequestHookHandler } from 'fastify';
import { parseTimestamp } from '../timestamp.ts';
import { rangeOf } from '../token.ts';
import { OptionalKind } from '../typebox.ts';
import { Faults, invalidRequest, type FaultPlace } from '../problem.ts';
import { pointerTo, readJson } from './json.ts';
import { allowed, readQuery, parseParameter } from './query.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Validates `query` at the first call. If there are faults, `query` is not valid. Only on routes with a schema for it. */
    readQuery: () => Faults;
  }
}

const toParameter = (name: string): FaultPlace => ({ parameter: name });
const toMember = (name: string): FaultPlace => ({ pointer: pointerTo(name) });

const ajv = new Ajv({
  strict: true,
  formats: {
    'date-time': (text) => parseTimestamp(text) !== undefined,
    'token-id': (text) => rangeOf(text) !== undefined,
  },
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
    const checkParams = params && checkOf(params, toParameter);
    const checkQuery = querystring && checkOf(querystring, toParameter);
    const checkBody = body && checkOf(body, toMember);

    if (querystring && checkQuery) {
      const addReadQuery: onRequestHookHandler = (request, _reply, done) => {
        let faults: Faults | undefined;
        request.readQuery = () => {
          if (faults === undefined) {
            faults = new Faults();
            const { url = '' } = request.raw;
            request.query = checkQuery(readQuery(querystring, url, faults), faults);
          }
          return faults;
        };
        done();
      };
      route.onRequest = [addReadQuery, ...[route.onRequest ?? []].flat()];
    }
    route.preValidation = (request, _reply, done) => {
      const faults = checkQuery ? request.readQuery() : new Faults();
      if (params && checkParams) {
        request.params = checkParams(readParams(params, request.params), faults);
      }
      if (checkBody) request.body = checkBody(readBody(body, request.body, faults), faults);
      done(faults.count > 0 ? invalidRequest(faults) : undefined);
    };
  });
}

function readParams(schema: TObject, params: unknown): unknown {
  const texts = Object.entries(params as Record<string, string>); // find-my-way returns only strings
  const value = texts.map(([name, text]) => [name, parseParameter(schema.properties[name], text)]);
  return Object.fromEntries(value);
}

function readBody(schema: TObject, body: unknown, faults: Faults): unknown {
  const bytes = body instanceof Buffer ? body : Buffer.alloc(0);
  const isOmitted = bytes.length === 0 && OptionalKind in schema;
  return isOmitted ? {} : readJson(bytes, schema.examples?.[0], faults);
}

/**
 * Returns a check that adds the faults of a value, and returns the value. Validators stop at the first error, so that
 * invalid input costs little: if the whole value is not valid, each member is checked by itself.
 */
function checkOf(schema: TObject, placeOf: (name: string) => FaultPlace) {
  // Compiled at the first request that needs it, to keep startup fast.
  let validate: ValidateFunction | undefined;
  const validators = new Map<string, ValidateFunction>();
  return (value: unknown, faults: Faults): unknown => {
    validate ??= ajv.compile(schema);
    if (value === undefined || validate(value)) return value;
    if (value === null || typeof value !== 'object' || Array.isArray(value)) {
      faults.add({ pointer: '' }, () => `The body must be ${schema.description}.`);
      return value;
    }
    const members = value as Record<string, unknown>;
    for (const [name, member] of Object.entries(schema.properties)) {
      if (!Object.hasOwn(members, name)) {
        if (schema.required?.includes(name))
          faults.add(
            placeOf(name),
            () => `"${name}" is missing; it must be ${member.description}.`,
          );
        continue;
      }
      const validator = validators.get(name) ?? ajv.compile(member);
      validators.set(name, validator);
      if (validator(members[name])) continue;
      const place = placeOf(name);
      const reason = reasonOf(validator.errors?.[0]?.keyword, members[name], 'parameter' in place);
      faults.add(place, () => `"${name}" ${reason}; it must be ${member.description}.`);
    }
    for (const name of Object.keys(members)) {
      if (Object.hasOwn(schema.properties, name)) continue;
      faults.add(placeOf(name), () => `Unknown field "${name}"; ${allowed(schema.properties)}.`);
    }
    return value;
  };
}

function reasonOf(keyword = '', value: unknown, isParameter: boolean): string {
  if (keyword === 'pattern') return refusedCharacter(String(value)) ?? 'is blank';
  // A parameter is always text, so "wrong type" would confuse.
  const reason = isParameter && keyword === 'type' ? undefined : reasons[keyword];
  return reason ?? 'is not valid';
}

/** Describes the first character of the text that no name or tag can have (plant.ts). */
function refusedCharacter(text: string): string | undefined {
  const [character] = /\p{Cc}|\p{Cs}/u.exec(text) ?? [];
  if (character === undefined) return undefined;
  const point = character.codePointAt(0) ?? 0;
  const kind = point < 0xd800 ? 'control character' : 'lone surrogate';
  return `has a ${kind} (U+${point.toString(16).toUpperCase().padStart(4, '0')})`;
}

const reasons: Record<string, string> = {
  type: 'has the wrong type',
  minLength: 'is empty',
  maxLength: 'is too long',
  minItems: 'is empty',
  minimum: 'is too small',
  maximum: 'is too large',
  enum: 'has an unknown value',
  uniqueItems: 'repeats a value',
};
