/**
 * Random requests to each operation of the document: sound ones, and sound ones with one or two things changed that a
 * client, a proxy or an attacker may get wrong. fast-check makes them, so that a failure prints its seed and shrinks.
 */
import * as fc from 'fast-check';
import { decode, operations, type Operation } from './document.ts';
import {
  authorization,
  condition,
  extra,
  oddHost,
  oddType,
  typeOf,
  type Headers,
} from './headers.ts';
import type { Bytes, Request } from './request.ts';
import { brokenAtTimes, jsonOf, oneOf, queryOf, rarely, segmentOf } from './values.ts';

/** How a request goes over its connection. */
export type Manner =
  | { kind: 'whole' }
  /** In pieces that end at these parts of a thousand. */
  | { kind: 'pieces'; cuts: readonly number[] }
  /** Only this part of a thousand; then the client closes its side. */
  | { kind: 'aborted'; at: number };

/** Requests that are written together, the answers awaited after. */
export interface Group {
  requests: readonly Request[];
  manner: Manner;
}

interface Parts {
  method: string;
  path: Bytes;
  query: Bytes;
  body: Bytes;
  type: Headers;
  more: Headers;
  host: Headers;
  version: Request['version'];
}

const none = fc.constant<Headers>([]);
const { constant, constantFrom } = fc;
/** What changes plants and shares is more frequent, so that the others find something. */
const weights: Record<string, number> = {
  createPlant: 10,
  listPlants: 8,
  getPlant: 8,
  updatePlant: 10,
  deletePlant: 8,
  restorePlant: 6,
  returnToTime: 8,
  getHistory: 4,
  sharePlants: 7,
  endShare: 4,
  livez: 1,
  readyz: 1,
};

/** Requests that are sound if they and what they are about exist, most of them. */
function soundOf({ method, template, parameters, requestBody }: Operation): fc.Arbitrary<Parts> {
  const isIn = (place: string) => parameters.filter((one) => one.in === place);
  const segments = template.split('/').map((segment) => {
    const parameter = isIn('path').find(({ name }) => segment === `{${name}}`);
    return parameter ? segmentOf(parameter.schema, parameter.name) : constant(segment);
  });
  const [content] = Object.values(requestBody?.content ?? {});
  const types = Object.keys(requestBody?.content ?? {});
  const isConditional = isIn('header').some(({ name }) => name === 'If-Match');
  return fc.record({
    method: method === 'GET' ? oneOf('GET GET HEAD') : constant(method),
    path: fc.tuple(...segments).map((all) => all.join('/')),
    query: queryOf(isIn('query')),
    body: content ? brokenAtTimes(jsonOf(content.schema)) : constant(''),
    type: content ? typeOf(...types) : rarely(none, typeOf('application/json')),
    more: isConditional ? rarely(none, condition, 1) : none,
    host: constant([['Host', ' x']] as const),
    version: constant('1.1'),
  });
}

/** They change who the people of a session are, or what each of them sees. */
const notSent = /^\/(users|team-share)/;

const sound = fc.oneof(
  ...operations
    .filter(({ template }) => !notSent.test(template))
    .map((operation) => ({
      weight: weights[operation.operationId] ?? 2,
      arbitrary: soundOf(operation),
    })),
);

const oddMethod = oneOf(
  'PUT PATCH TRACE PROPFIND QUERY PURGE SEARCH CONNECT FLY get Post G OPTIONS OPTIONS HEAD DELETE POST GET',
);
const oddPath = fc.oneof(
  oneOf(`/ // /plants/ /plants// //plants /plants/1/ /plants/1/leaves /plants/1/restore/ /plants/1/restore/1
    /plants//restore /plants/1/HISTORY /plants/restore /shares/1/history /plants/1/%68istory /PLANTS /plant /plantss
    /%70lants /bin/ /bin/1 /BIN /bi%6E /bin%2F1 /plants/bin /shares/ /shares/alice/ /shares/alice/bob /SHARES /%73hares
    /shares%2Falice /plants%2F1 /plants%2f /plants;x=1 /./plants /plants/../plants /%2e/plants /plants%20 /docs /token/
    /tokens/ /TOKENS /%74oken / /?a /web/styles/theme.css /web/ /web/styles/theme.css/ /web/..%2findex.html
    /web/index.html /client/ /client/.. /problems /problems/id-taken /problems/id-taken/ /problems/nothing
    /problems/..%2f..%2findex /docs/ /docs/start.js /docs/../../package.json /docs/%2e%2e%2fapp.ts /livez/ /%6civez
    /openapi.json%00 /docs/swagger-ui.css.map /favicon.ico /.env * *plants http://x/plants HTTP://x:80/plants
    https://x/plants/1 http://x http://x/%70lants ftp://x/plants /plants#x /plants/1# plants /plants\\1 /% /%ff
    /plants% /a%zz`),
  constantFrom('/pl\xe4nts', '/plants\x00'),
);

const twist: fc.Arbitrary<Partial<Parts>> = fc.oneof(
  fc.record({ method: oddMethod }),
  fc.record({ path: oddPath }),
  sound.map(({ query }) => ({ query })),
  sound.map(({ body }) => ({ body })),
  fc.record({ type: oddType }),
  fc.record({ more: extra }),
  fc.record({ more: extra }),
  fc.record({ more: condition }),
  fc.record({ host: oddHost }),
  fc.record({ version: constant('1.0' as const) }),
);

/** Sizes of chunks; undefined if the body has a length. */
const chunking = rarely<number[] | undefined>(
  constant(undefined),
  fc.array(fc.integer({ min: 1, max: 30 }), { maxLength: 3 }),
  5,
);

export const request: fc.Arbitrary<Request> = fc
  .tuple(
    sound,
    rarely(constant<Partial<Parts>[]>([]), fc.array(twist, { minLength: 1, maxLength: 2 }), 2),
    authorization,
    chunking,
  )
  .map(([parts, twists, auth, chunks]): Request => {
    const twisted: Parts = Object.assign({}, parts, ...twists);
    const { method, path, query, body, type, more, host, version } = twisted;
    const takes = body !== '' || ['POST', 'PUT', 'PATCH'].includes(method);
    const length =
      chunks === undefined
        ? (['Content-Length', String(body.length)] as const)
        : (['Transfer-Encoding', 'chunked'] as const);
    const headers = [...host, ...auth, ...type, ...more, ...(takes ? [length] : [])];
    return {
      method,
      target: path + query,
      version,
      headers,
      body,
      ...(takes && chunks && { chunks }),
    };
  })
  .filter((one) => !spoilsTheRest(one));

/**
 * Whether it can revoke a token that the rest of the run needs, or create a plant with one of the largest ids: each
 * service would assign random ids after them.
 */
function spoilsTheRest({ method, target, headers, body }: Request): boolean {
  if (/900719925474099[01](?!\.)/.test(body)) return true;
  const isOwn = /^(?:https?:\/\/[^/]*)?\/token(?:\?|$)/i.test(decode(target) ?? '');
  const isNeeded = headers.some(([, value]) => value.includes('<') && !value.includes('<spare>'));
  return method === 'DELETE' && isOwn && isNeeded;
}

const manner: fc.Arbitrary<Manner> = fc.oneof(
  { weight: 30, arbitrary: constant<Manner>({ kind: 'whole' }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: constant('pieces'),
      cuts: fc.array(fc.nat(999), { minLength: 1, maxLength: 4 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: constant('aborted'), at: fc.nat(999) }),
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
