/**
 * Random requests: sound ones, and sound ones with one or two things changed that a client, a proxy or
 * an attacker may get wrong. fast-check makes them, so that a failure prints its seed and shrinks.
 */
import * as fc from 'fast-check';
import { oneOf, rarely } from './pick.ts';
import { newToken, oddBody, patch, plant, share } from './random-bodies.ts';
import {
  authorization,
  condition,
  extra,
  json,
  oddHost,
  oddType,
  patchType,
  type Header,
} from './random-headers.ts';
import {
  binQuery,
  fieldsQuery,
  historyPath,
  historyQuery,
  oddPath,
  path,
  plantPath,
  query,
  restorePath,
  sharePath,
  tokenPath,
} from './random-targets.ts';
import type { Bytes, Request } from './request.ts';
import { decode } from './document.ts';

/** How a request goes over its connection. */
export type Manner =
  | { kind: 'whole' }
  /** In pieces that end at these parts of a thousand. */
  | { kind: 'pieces'; cuts: readonly number[] }
  /** Whole, and then the client closes its side: the response still comes. */
  | { kind: 'half-closed' }
  /** Only this part of a thousand; then the client closes its side or resets the connection. */
  | { kind: 'aborted'; at: number; isReset: boolean };

/** Requests that are written together, the answers awaited after. */
export interface Group {
  requests: readonly Request[];
  manner: Manner;
}

type Framing = Pick<Request, 'chunks' | 'extension' | 'trailer'> | undefined;
const framing: fc.Arbitrary<Framing> = rarely<Framing>(
  fc.constant(undefined),
  fc.record({
    chunks: fc.array(fc.integer({ min: 1, max: 30 }), { maxLength: 3 }),
    extension: rarely(fc.constantFrom(''), fc.constantFrom(';a=b', ';a="b c"', ';a')),
    trailer: rarely(
      fc.constantFrom(''),
      fc.constantFrom('X-Trailer: a\r\n', 'Content-Length: 5\r\n', 'Authorization: Bearer x\r\n'),
    ),
  }),
  5,
);

const oddMethod = oneOf(
  'PUT PATCH TRACE PROPFIND QUERY PURGE SEARCH CONNECT FLY get Post G OPTIONS OPTIONS HEAD DELETE POST GET',
);

interface Parts {
  method: string;
  path: string;
  query: string;
  body: Bytes | undefined;
  type: readonly Header[];
  more?: readonly Header[];
}
const bodyless = {
  body: fc.constant(undefined),
  type: rarely(fc.constant<Header[]>([]), fc.constant(json)),
};
/** Sometimes with a condition. */
const more = rarely(fc.constant<Header[]>([]), condition, 1);

const sound: fc.Arbitrary<Parts> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      method: fc.constant('POST'),
      path: fc.constant('/plants'),
      query: rarely(fc.constant(''), fieldsQuery, 3),
      body: rarely<Bytes | undefined>(plant, oddBody, 3),
      type: fc.constant(json),
    }),
  },
  {
    weight: 7,
    arbitrary: fc.record({ method: oneOf('GET GET HEAD'), path, query, more, ...bodyless }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      method: oneOf('GET GET HEAD'),
      path: plantPath,
      query: fc.constant(''),
      more: condition,
      ...bodyless,
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      method: fc.constant('PATCH'),
      path: plantPath,
      query: rarely(fc.constant(''), fieldsQuery, 3),
      body: rarely<Bytes | undefined>(patch, oddBody, 6),
      type: patchType,
      more,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      method: fc.constant('POST'),
      path: restorePath,
      query: rarely(fc.constant(''), rarely(fieldsQuery, query), 3),
      ...bodyless,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      method: oneOf('GET GET HEAD'),
      path: historyPath,
      query: rarely(fc.constant(''), historyQuery, 3),
      ...bodyless,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      method: oneOf('GET GET HEAD'),
      path: fc.constant('/bin'),
      query: rarely(fc.constant(''), binQuery, 1),
      ...bodyless,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      method: fc.constant('PUT'),
      path: sharePath,
      query: rarely(fc.constant(''), query, 10),
      body: rarely<Bytes | undefined>(share, oddBody, 10),
      type: fc.constant(json),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      method: fc.constant('DELETE'),
      path: sharePath,
      query: rarely(fc.constant(''), query, 10),
      ...bodyless,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      method: fc.constant('DELETE'),
      path: plantPath,
      query: rarely(fc.constant(''), query, 10),
      more,
      ...bodyless,
    }),
  },
);

/** The tokens of the user. */
const ofTokens: fc.Arbitrary<Parts> = fc.oneof(
  fc.record({
    method: fc.constant('POST'),
    path: fc.constant('/tokens'),
    query: rarely(fc.constant(''), query, 10),
    body: rarely<Bytes | undefined>(newToken, fc.constant(undefined)),
    type: fc.constant(json),
  }),
  fc.record({
    method: fc.constant('DELETE'),
    path: rarely(tokenPath, fc.constant('/token'), 2),
    query: rarely(fc.constant(''), query, 10),
    ...bodyless,
  }),
);

type Twist = Partial<Parts> & {
  host?: readonly Header[];
  version?: '1.0';
};
const twist: fc.Arbitrary<Twist> = fc.oneof(
  fc.record({ method: oddMethod }),
  fc.record({ path: oddPath }),
  fc.record({ query }),
  fc.record({ type: oddType }),
  fc.record({
    body: fc.oneof(oddBody, plant, patch, share, newToken),
    type: rarely(fc.constant(json), oddType, 1),
  }),
  fc.record({ more: extra }),
  fc.record({ more: extra }),
  fc.record({ more: condition }),
  fc.record({ host: oddHost }),
  fc.record({ version: fc.constant('1.0' as const) }),
);

export const request: fc.Arbitrary<Request> = fc
  .tuple(
    rarely(sound, ofTokens, 4),
    authorization,
    framing,
    rarely(fc.constant<Twist[]>([]), fc.array(twist, { minLength: 1, maxLength: 2 }), 2),
  )
  .map(([parts, auth, framed, twists]): Request => {
    const twisted = Object.assign({ host: [['Host', ' x']] }, parts, ...twists) as Parts & Twist; // as was just put together
    const {
      method,
      path: where,
      query: search,
      body = '',
      type,
      more: others = [],
      host = [],
      version = '1.1',
    } = twisted;
    const takes = body !== '' || ['POST', 'PUT', 'PATCH'].includes(method);
    const length: Header[] =
      framed === undefined
        ? [['Content-Length', String(body.length)]]
        : [['Transfer-Encoding', 'chunked']];
    const headers = [...host, ...auth, ...type, ...others, ...(takes ? length : [])];
    return {
      method,
      target: where + search,
      version,
      headers,
      body: takes ? body : '',
      ...(takes && framed),
    };
  })
  .filter((one) => !isNeeded(one));

/** Whether it can revoke a token that the rest of the run needs. */
function isNeeded({ method, target, headers }: Request): boolean {
  if (method !== 'DELETE' || !/^(?:https?:\/\/[^/]*)?\/token(?:\?|$)/i.test(decode(target) ?? ''))
    return false;
  return headers.some(([, value]) => value.includes('<') && !value.includes('<spare>'));
}

const manner: fc.Arbitrary<Manner> = fc.oneof(
  { weight: 30, arbitrary: fc.constant<Manner>({ kind: 'whole' }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('pieces' as const),
      cuts: fc.array(fc.nat(999), { minLength: 1, maxLength: 4 }),
    }),
  },
  { weight: 1, arbitrary: fc.constant<Manner>({ kind: 'half-closed' }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('aborted' as const),
      at: fc.nat(999),
      isReset: fc.boolean(),
    }),
  },
);

export const groups = (count: number): fc.Arbitrary<Group[]> =>
  fc.array(
    fc.record({
      requests: rarely(
        request.map((one) => [one]),
        fc.array(request, { minLength: 2, maxLength: 4 }),
        4,
      ),
      manner,
    }),
    { minLength: count, maxLength: count },
  );
