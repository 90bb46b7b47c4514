/**
 * The oracle: which responses docs/reference/api.md and the RFCs allow for a request, from the request
 * as it is sent and a model of the stores. It shares no code with the service.
 *
 * A request may have several faults. They are looked for in stages: the bytes and the target, the
 * token, the scope, whether a body may be there, the input, the store. A fault of an earlier stage
 * hides those of a later one; of faults of the same stage any can be reported.
 */
import { judgeOperation, judgeUnwantedBody, mayHaveBody } from './operations.ts';
import { invalid, optional, stage, type Add, type Outcome } from './outcomes.ts';
import { headOf, sent, type Request } from './request.ts';
import { judgeTarget, type Route } from './target.ts';
import type { Grant, World } from './world.ts';

export interface Prediction {
  outcomes: Outcome[];
  /** Not a request at all, or perhaps none. */
  isBroken: boolean;
}

interface Candidate {
  from: number;
  to: number;
  outcome: Outcome;
}

const allowed: Record<Route, string> = {
  list: 'GET, HEAD, OPTIONS, POST',
  one: 'DELETE, GET, HEAD, OPTIONS, PATCH',
  restore: 'OPTIONS, POST',
  history: 'GET, HEAD, OPTIONS',
  bin: 'GET, HEAD, OPTIONS',
  shares: 'GET, HEAD, OPTIONS',
  share: 'DELETE, OPTIONS, PUT',
  health: 'GET, HEAD, OPTIONS',
  document: 'GET, HEAD, OPTIONS',
  file: 'GET, HEAD, OPTIONS',
  moved: 'GET, HEAD, OPTIONS',
  token: 'DELETE, GET, HEAD, OPTIONS',
  tokens: 'GET, HEAD, OPTIONS, POST',
  ownToken: 'DELETE, OPTIONS',
  whole: 'DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT',
  none: '',
};
/** Methods that Node's parser has a name for. Any other is a broken request or a wrong method. */
const registered = new Set(
  'GET HEAD POST PUT DELETE OPTIONS TRACE PATCH COPY LOCK MKCOL MOVE PROPFIND SEARCH REPORT PURGE QUERY'.split(
    ' ',
  ),
);

const maxHeaders = 100;
const headBytes = { surelyFits: 15_000, surelyTooLarge: 17_500 };

export function predict(request: Request, world: World): Prediction {
  const candidates: Candidate[] = [];
  const add = (
    from: number,
    to: number,
    outcome: Omit<Outcome, 'closes'>,
    closes?: Outcome['closes'],
  ) =>
    void candidates.push({
      from,
      to,
      outcome: { ...outcome, closes: closes ?? closesOf(request) },
    });

  judgeHead(request, add);
  const target = judgeTarget(request.target);
  const grant = judgeRoute(request, target, world, add);
  if (grant !== undefined) judgeOperation(request, target, grant, world, add);
  return {
    outcomes: candidates
      .filter(({ from }) => candidates.every(({ to }) => to >= from))
      .map(({ outcome }) => outcome),
    isBroken: candidates.some(({ from }) => from === stage.bytes),
  };
}

/** RFC 9112, section 9.3. */
function closesOf(request: Request): Outcome['closes'] {
  const wishes = sent(request, 'connection').map((value) => value.toLowerCase());
  if (wishes.includes('close')) return 'must';
  if (request.version === '1.1') {
    // After a final status, the client need not send the body that it had announced (RFC 9110, section 10.1.1).
    const isAsking = sent(request, 'expect').some((value) => /100-continue/i.test(value));
    return isAsking ? 'may' : 'no';
  }
  return wishes.includes('keep-alive') ? 'may' : 'must';
}

function judgeHead(request: Request, add: Add): void {
  const bytes = headOf(request).length;
  const tooLarge = { status: 431, kind: 'headers-too-large' };
  if (bytes > headBytes.surelyTooLarge) add(stage.bytes, stage.bytes, tooLarge, 'must');
  else if (request.headers.length > maxHeaders) add(stage.bytes, stage.bytes, tooLarge, 'must');
  else if (bytes > headBytes.surelyFits) add(stage.bytes, optional, tooLarge, 'must');

  const lengths = sent(request, 'content-length');
  const codings = sent(request, 'transfer-encoding');
  const isLengthOdd = lengths.some((value) => !/^\d+$/.test(value));
  const isCodingOdd =
    codings.length > 1 || codings.some((value) => value.toLowerCase() !== 'chunked');
  if (isLengthOdd || lengths.length > 1 || (lengths.length > 0 && codings.length > 0)) {
    add(stage.bytes, stage.target, invalid, 'must');
  }
  if (isCodingOdd || (codings.length > 0 && request.version === '1.0')) {
    add(stage.bytes, stage.target, invalid, 'may');
  }

  // RFC 9110, section 6.5.1: the header is no trailer, and a server need not pass over it.
  if (/content-length/i.test(request.trailer ?? '')) add(stage.bytes, optional, invalid, 'must');

  const hosts = sent(request, 'host');
  if (hosts.length > 1 || (hosts.length === 0 && request.version === '1.1')) {
    add(stage.head, stage.target, invalid, 'may');
  } else if (hosts.some((host) => !isHost(host))) add(stage.head, stage.target, invalid, 'may');
  else if (hosts.includes('')) add(stage.head, optional, invalid, 'may');

  const types = sent(request, 'content-type');
  if (types.length > 1) add(stage.head, stage.body, invalid, 'may');

  const expectations = sent(request, 'expect').map((value) => value.toLowerCase());
  const isOpen =
    request.version === '1.0' || expectations.some((value) => /^$|100-continue/.test(value));
  if (expectations.some((value) => value !== '100-continue')) {
    add(
      stage.head,
      isOpen ? optional : stage.target,
      { status: 417, kind: 'expectation-failed' },
      'may',
    );
  }
}

/** RFC 3986, section 3.2.2, without the user that RFC 9110 leaves out. */
function isHost(host: string): boolean {
  return /^(?:\[[\da-fA-F:.]+\]|(?:[\w.~!$&'()*+,;=-]|%[\da-fA-F]{2})*)(?::\d*)?$/.test(host);
}

/** The user of the request, if it gets as far as an operation that needs a token. */
function judgeRoute(
  request: Request,
  { route, id, isBroken, hasDots }: ReturnType<typeof judgeTarget>,
  world: World,
  add: Add,
): Grant | undefined {
  const { method } = request;
  const notFound = { status: 404, kind: 'path-not-found' };
  if (method === 'CONNECT') {
    add(stage.bytes, stage.target, { status: 405, kind: 'method-not-allowed' }, 'must');
    if (isBroken) add(stage.bytes, optional, invalid, 'must');
    return undefined;
  }
  const isRegistered = registered.has(method);
  if (!isRegistered) {
    add(stage.bytes, optional, { status: 501, kind: 'method-not-implemented' }, 'must');
    add(stage.bytes, optional, invalid, 'must');
  }
  if (isBroken) {
    add(stage.bytes, stage.target, invalid, 'may');
    add(stage.head, optional, notFound);
    return undefined;
  }
  if (hasDots) {
    add(stage.head, optional, notFound);
    add(stage.head, optional, invalid);
  }
  const allow = allowed[route];
  const isAllowed = allow.split(', ').includes(method);
  if (route === 'none') add(stage.target, stage.target, notFound);
  else if (method === 'OPTIONS') add(stage.token, stage.token, { status: 204, allow });
  else if (route === 'whole') {
    add(stage.target, stage.target, invalid);
    add(stage.target, stage.target, notFound);
    add(stage.target, stage.target, { status: 405, kind: 'method-not-allowed', allow });
  } else if (!isAllowed) {
    add(stage.target, stage.target, { status: 405, kind: 'method-not-allowed', allow });
  } else if (['health', 'document', 'file', 'moved'].includes(route)) {
    // RFC 9110, section 13.1.2: the client has whatever there is.
    const isKnown = route === 'document' && sent(request, 'if-none-match').includes('*');
    const moved = { status: 302, location: id === '' ? 'docs#problems' : `../docs#${id}` };
    const found = route === 'moved' ? moved : { status: isKnown ? 304 : 200 };
    const outcome = route === 'file' ? notFound : found;
    add(stage.store, stage.store, outcome);
    if (mayHaveBody(request)) judgeUnwantedBody(request, add, optional);
    if (request.target.includes('?')) add(stage.input, optional, invalid);
  } else return judgeToken(request, route, world, add);
  return undefined;
}

function judgeToken(
  request: Request,
  route: Route,
  { grants }: World,
  add: Add,
): Grant | undefined {
  const values = sent(request, 'authorization');
  const [value = ''] = values;
  const refuse = (challenge: string) =>
    add(stage.token, stage.token, { status: 401, kind: 'invalid-token', challenge });
  if (value === '' && values.length <= 1) refuse('Bearer');
  const [, token = ''] = /^bearer +([!-~]+)$/i.exec(value) ?? [];
  const grant = values.length === 1 ? grants.get(token) : undefined;
  if (grant === undefined) {
    if (values.length > 0) refuse('Bearer error="invalid_token"');
    return undefined;
  }
  const isRead = ['GET', 'HEAD'].includes(request.method);
  const scope = isRead ? 'plants:read' : route === 'share' ? 'shares:write' : 'plants:write';
  const isShared = route === 'shares' && grant.scopes.includes('shares:write');
  const isOwn = route === 'token' || route === 'tokens' || route === 'ownToken';
  if (isOwn || isShared || grant.scopes.includes(scope)) return grant;
  const challenge = `Bearer error="insufficient_scope", scope="${scope}"`;
  add(stage.scope, stage.scope, { status: 403, kind: 'insufficient-scope', challenge });
  return undefined;
}
