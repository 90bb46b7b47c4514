/**
 * Validates requests against the TypeBox schemas of their routes. It coerces no types, refuses unknown, repeated and
 * lossy input, and reports all faults of all parts in one response.
 *
 * Fastify's own validation stops at the first part that fails, so a hook replaces it.
 */
import type { Static, TObject, TSchema } from '@sinclair/typebox';
import { Ajv } from 'ajv';
import type { FastifyInstance, FastifyRequest, FastifyTypeProvider } from 'fastify';
import { parseTimestamp } from '../../shared/timestamp.ts';
import { rangeOf } from '../../access/token.ts';
import { parsePosition } from '../../log/change-log.ts';
import { parseCursor } from '../../log/feed.ts';
import { fold } from '../../plants/folding.ts';
import { sortCursor } from '../../plants/scans.ts';
import { documentation, KindGuard, OptionalKind } from '../../shared/typebox.ts';
import { isWebhookUrl } from '../../webhooks/webhook.ts';
import { Faults, invalidRequest, type FaultPlace } from '../../problem.ts';
import { isObject, pointerTo, readJson } from './json.ts';
import { allowed, readQuery, parseParameter } from './query.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The faults of the query, once it was validated. */
    queryFaults: Faults | undefined;
  }
}

/** Derives the types of a validated request from its schemas. Responses are text, so they have no type here. */
export interface TypeBoxProvider extends FastifyTypeProvider {
  validator: this['schema'] extends TSchema ? Static<this['schema']> : unknown;
  serializer: unknown;
}

const toParameter = (name: string): FaultPlace => ({ parameter: name });
const toMember = (name: string): FaultPlace => ({ pointer: pointerTo(name) });

const ajv = new Ajv({
  strict: true,
  keywords: documentation,
  formats: {
    'date-time': (text) => parseTimestamp(text) !== undefined,
    'token-id': (text) => rangeOf(text) !== undefined,
    'change-cursor': (text) => parseCursor(text) !== undefined,
    'log-position': (text) => parsePosition(text) !== undefined,
    'webhook-url': isWebhookUrl,
    'sort-cursor': sortCursor,
    'search-text': (text) => fold(text).trim() !== '',
  },
  validateSchema: false, // a test does it, because compiling the meta-schema slows down startup
});

/** Validates the requests of every route that is added to `app` later and has schemas. */
export function validateRequests(app: FastifyInstance): void {
  app.decorateRequest('queryFaults');
  app.addHook('onRoute', (route) => {
    // Fastify does not type schemas; those of our routes are TypeBox objects.
    const { params, querystring, body } = (route.schema ?? {}) as Record<string, TObject>;
    route.preValidation = (request, _reply, done) => {
      const faults = querystring ? validateQuery(querystring, request) : new Faults();
      if (params) {
        const values = request.params as Record<string, unknown>; // the router has strings by name
        for (const name in values)
          values[name] = parseParameter(params.properties[name], String(values[name]));
        addFaults(faults, params, values, toParameter);
      }
      if (body) {
        request.body = readBody(body, request.body, faults);
        addFaults(faults, body, request.body, toMember);
      }
      done(faults.listed.length > 0 ? invalidRequest(faults.listed, faults.more) : undefined);
    };
  });
}

/**
 * Validates the query at the first call for a request. A storage can need it before the caller is known (auth.ts); its
 * faults are reported afterwards.
 */
export function validateQuery(schema: TObject, request: FastifyRequest): Faults {
  if (request.queryFaults === undefined) {
    const faults = new Faults();
    request.query = readQuery(schema, request.raw.url ?? '', faults);
    addFaults(faults, schema, request.query, toParameter);
    request.queryFaults = faults;
  }
  return request.queryFaults;
}

function readBody(schema: TObject, body: unknown, faults: Faults): unknown {
  const bytes = body instanceof Buffer ? body : Buffer.alloc(0);
  const isOmitted = bytes.length === 0 && OptionalKind in schema;
  return isOmitted ? {} : readJson(bytes, schema.examples?.[0], faults);
}

/**
 * Adds the faults of a value. Ajv stops at the first error, so that invalid input costs little: if the whole value is
 * not valid, each member is checked by itself. Schemas are compiled at the first request that needs them, to keep
 * startup fast.
 */
function addFaults(
  faults: Faults,
  schema: TObject,
  value: unknown,
  placeOf: (name: string) => FaultPlace,
): void {
  if (value === undefined || ajv.validate(schema, value)) return;
  if (!isObject(value) || Object.keys(value).length < (schema.minProperties ?? 0)) {
    faults.add({ pointer: '' }, () => `The body must be ${schema.description}.`);
    return;
  }
  for (const [name, member] of Object.entries(schema.properties)) {
    const place = placeOf(name);
    const rule = `Use ${member.description}.`;
    if (!Object.hasOwn(value, name)) {
      if (schema.required?.includes(name)) faults.add(place, () => `"${name}" is missing. ${rule}`);
    } else if (!ajv.validate(member, value[name])) {
      const inner = value[name];
      if (KindGuard.IsObject(member) && isObject(inner)) {
        addFaults(faults, member, inner, (one) => ({ pointer: pointerTo(name) + pointerTo(one) }));
        continue;
      }
      const reason = reasonOf(ajv.errors?.[0]?.keyword, value[name], 'parameter' in place);
      faults.add(place, () => `"${name}" ${reason}. ${rule}`);
    }
  }
  for (const name of Object.keys(value)) {
    if (Object.hasOwn(schema.properties, name)) continue;
    faults.add(placeOf(name), () => `Unknown field "${name}". ${allowed(schema.properties)}`);
  }
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
