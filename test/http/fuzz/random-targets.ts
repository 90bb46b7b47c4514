/**
 * Random paths and queries, as bytes: sound ones, and what crawlers, typos and attackers send.
 */
import * as fc from 'fast-check';
import { oneOf, rarely } from './pick.ts';
import { id, soundText } from './random-bodies.ts';
import { utf8Bytes, type Bytes } from './request.ts';

const { constantFrom } = fc;

const encode = (bytes: Bytes) =>
  bytes.replace(/[^\w.~-]/g, (one) => `%${one.charCodeAt(0).toString(16).padStart(2, '0')}`);
const tag = fc.oneof(
  constantFrom('', 'a', 'A', 'a b', 'é', '🌱').map((one) => encode(utf8Bytes(one))),
  oneOf('a+b %41 a%2520 %00 %FF %ED%A0%80 % %zz'),
  constantFrom('t'.repeat(101), '%F0%9F%8C%B1'.repeat(100)),
  soundText.map(encode),
);
const q = fc.oneof(
  tag,
  constantFrom('e', 'E', 'É', 'ı', ' ', '\u0301', '\uFE0F', '¨').map((one) =>
    encode(utf8Bytes(one)),
  ),
);
const parameter = fc.oneof(
  oneOf('limit=1 limit=2 limit=3 limit=6 limit=1000 limit=1001 limit=2147483647'),
  rarely(constantFrom('0'), id, 1).map((after) => `after=${after}`),
  tag.map((one) => `tag=${one}`),
  q.map((one) => `q=${one}`),
);
const fields =
  oneOf(`fields=id fields=name fields=tag fields=id,name fields=name,tag fields=id,name,tag
  fields=tag,id,name fields=id%2Cname fields=id&fields=name fields=tag&fields=id&fields=name
  fields=id,name&fields=tag fields=owner fields=id,access fields=access&fields=owner`);
const each = (name: string, values: string) => oneOf(values).map((value) => `${name}=${value}`);
const oddParameter = fc.oneof(
  each(
    'limit',
    `0 -1 01 1.0 1e3 %31 +5 %205 5%20 2147483648 99999999999999999999 x %D9%A3 NaN 0x1 % 1%00 Infinity 1,2
    1&limit=2 1&limit=1 1&limit=1&limit=1`,
  ),
  each('after', '-1 -0 x 9007199254740991 9007199254740992 1&after=2 %FF %FF&after=%FF'),
  each('fields', 'ID id, , id,,tag id,id owner,owner Owner * %69d id&fields=id %ff id&fields='),
  oneOf(`
  limit=
  after=
  fields=
  tag
  fields
  tag=a&tag=a
  Limit=1
  limit[]=1
  li%6Dit=1
  %
  %FF=1
  %&%
  =
  =1
  &
  &&
  offset=1
  access_token=1
  __proto__=1
  constructor=1
  q
  q=a&q=a
  Q=a
  page=2&page=3
  %00=1
  ?
  a=b=c`),
);
const joined = (all: readonly (string | null)[]) =>
  `?${all.filter((one) => one !== null).join('&')}`;

export const fieldsQuery = fields.map((one) => `?${one}`);
export const query = fc.oneof(
  { weight: 3, arbitrary: constantFrom('') },
  { weight: 4, arbitrary: fc.tuple(parameter, fc.option(fields)).map(joined) },
  { weight: 1, arbitrary: fieldsQuery },
  { weight: 1, arbitrary: fc.array(fc.oneof(parameter, fields), { maxLength: 3 }).map(joined) },
  { weight: 1, arbitrary: fc.tuple(oddParameter, fc.option(parameter)).map(joined) },
);

export const plantPath = rarely(
  id,
  fc.oneof(
    oneOf(`0 -1 01 1.0 1e2 x %20 %31 1%20 +1 9007199254740992 90071992547409910 %ff %zz % 1%2F2 1;x=1 .. .
      %2e%2e %00 1%00 %F0%9F%8C%B5 1,2 *`),
    constantFrom('a'.repeat(4_000)),
  ),
).map((one) => `/plants/${one}`);

export const restorePath = plantPath.map((one) => `${one}/restore`);
export const historyPath = plantPath.map((one) => `${one}/history`);
export const historyQuery = rarely(
  oneOf('limit=1 limit=2 limit=100').map((one) => `?${one}`),
  oneOf('limit=0 limit=101 limit=1000 fields=id after=1').map((one) => `?${one}`),
);

export const binQuery = rarely(
  fc
    .tuple(
      oneOf('limit=1 limit=2 limit=5 limit=1000 &'),
      oneOf(
        '& & after=0-0 after=0-999999999 after=999999999999999-0 after=999999999999999-999999999',
      ),
    )
    .map((both) => `?${both.join('&')}`),
  oneOf(`after= after=- after=1 after=1- after=-1 after=01-1 after=1-01 after=1-+1 after=+1-1 after=1-1- after=1-1-1
    after=1%2D after=1000000000000000-1 after=1-1000000000 after=9007199254740993-1 after=1.0-1 after=1e3-1 after=x-y
    after=%D9%A3-1 after=1-1%00 after=1-1&after=1-1 after=NaN-1 fields=id tag=a q=a limit=0 limit=1001`).map(
    (one) => `?${one}`,
  ),
  3,
);

/** Users who exist and who do not, and names that nobody can have. */
export const sharePath = rarely(
  oneOf('alice alice bob bob maria nobody %61lice'),
  fc.oneof(
    oneOf(`ALICE alice%20 %20 %00 alice%00 %C2%85 %EF%BB%BF %E3%80%80 %ED%A0%80 %ff %zz % a%2Fb a%252Fb a+b . ..
      %2e%2e __proto__ constructor %F0%9D%92%B3 %EF%AC%80 * alice;x=1 '%20OR%201=1 %22 <alice>`),
    constantFrom('x'.repeat(200), 'x'.repeat(201), '%F0%9D%92%B3'.repeat(200), 'x'.repeat(4_000)),
  ),
  5,
).map((one) => `/shares/${one}`);

/** Ids of tokens of several users, which only tokens of the right one revoke. */
export const tokenPath = rarely(
  oneOf('{spare} {spare} {other} {expired} {revoked} {unknown}'),
  fc.oneof(
    oneOf('x 0 %20 %00 {spare}0 %7Bspare%7D AAAAAAAAAAAAAAAA .. . %ff %zz {spare}/{spare}'),
    constantFrom('a'.repeat(4_000)),
  ),
).map((one) => `/tokens/${one}`);

export const oddPath = fc.oneof(
  oneOf(`/ // /plants/ /plants// //plants /plants/1/ /plants/1/leaves /plants/1/restore/ /plants/1/restore/1 /plants//restore /plants/1/HISTORY /plants/restore /shares/1/history /plants/1/%68istory /PLANTS /plant /plantss /%70lants
    /bin/ /bin// /bin/1 /BIN /bi%6E /bin%2F1 /plants/bin /plants/1/bin
    /shares/ /shares// /shares/alice/ /shares/alice/bob /SHARES /share /%73hares /shares%2Falice
    /plants%2F1 /plants%2f /plants;x=1 /./plants /plants/../plants /%2e/plants /plants%20 /livez /readyz /docs /token /token/ /tokens/ /TOKENS
    /%74oken / /?a /web/styles/theme.css /web/ /web/styles/theme.css/ /web/..%2findex.html /web/index.html /client/ /client/..
    /problems /problems/ /problems/id-taken /problems/id-taken/ /problems/nothing /problems/..%2f..%2findex
    /docs/ /docs/start.js /docs/../../package.json /docs/%2e%2e%2fapp.ts /livez/ /%6civez /Livez
    /openapi.json%00 /docs/swagger-ui.css.map /favicon.ico /.env * *plants http://x/plants HTTP://x:80/plants
    https://x/plants/1 http://x http://x/%70lants ftp://x/plants /plants#x /plants/1# plants /plants\\1 /% /%ff
    /plants% /a%zz`),
  constantFrom('/pl\xe4nts', '/plants\x00'),
);

export const path = fc.oneof(
  { weight: 6, arbitrary: constantFrom('/plants') },
  { weight: 5, arbitrary: plantPath },
  { weight: 1, arbitrary: historyPath },
  { weight: 1, arbitrary: constantFrom('/bin') },
  { weight: 2, arbitrary: constantFrom('/shares') },
  { weight: 2, arbitrary: constantFrom('/tokens', '/token') },
  { weight: 1, arbitrary: oddPath },
);
