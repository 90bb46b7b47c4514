/**
 * The oracle behind the token: whether a body may be there, what the request says, and what the model of the
 * stores answers.
 */
import { fold } from '../../../src/plants/folding.ts';
import { judgeTags, matches } from './entity-tags.ts';
import { isName, judgeBody, judgePatch, judgeShare, type Access, type PlantPatch } from './json.ts';
import { anyCursor, invalid, optional, stage, type Add } from './outcomes.ts';
import { isChunked, sent, type Request } from './request.ts';
import {
  judgeId,
  judgeQuery,
  type Field,
  type judgeTarget,
  type Query,
  type Route,
} from './target.ts';
import { judgeCreate, judgeList, judgeRevoke } from './tokens.ts';
import { stateOf, type Grant, type Person, type Plant, type World } from './world.ts';

export const maxBodyBytes = 16_384;

/** RFC 9112, section 6: the headers that announce a body. */
export function mayHaveBody(request: Request): boolean {
  return isChunked(request) || request.body !== '';
}

export function judgeUnwantedBody(request: Request, add: Add, to: number): void {
  add(
    stage.body,
    request.body === '' ? optional : to,
    invalid,
    request.body.length > maxBodyBytes ? 'may' : undefined,
  );
  if (isForeign(request) !== false)
    add(stage.body, optional, { status: 415, kind: 'unsupported-media-type' });
  judgeSize(request, add, optional);
}

function judgeSize({ body }: Request, add: Add, to: number): void {
  if (body.length <= maxBodyBytes) return;
  add(stage.body, to, { status: 413, kind: 'body-too-large' }, 'may');
}

/** Whether the body is something other than plain JSON; undefined if the RFCs leave it open. */
function isForeign(request: Request): boolean | undefined {
  const [value = ''] = sent(request, 'content-type');
  const [type = '', ...parameters] = value
    .toLowerCase()
    .split(';')
    .map((part) => part.trim());
  const isJson =
    type === 'application/json' ||
    (request.method === 'PATCH' && type === 'application/merge-patch+json');
  if (sent(request, 'content-encoding').length > 0 || !isJson) return true;
  const odd = parameters.filter((part) => !/^[\w-]+=(?:[\w.-]+|"[^"\\]*")$/.test(part));
  const charsets = parameters.flatMap((part) => /^charset="?([^"]*)"?$/.exec(part)?.[1] ?? []);
  if (charsets.some((charset) => !/^utf-?8$/.test(charset))) return true;
  return odd.length > 0 || charsets.length > 1 || charsets.includes('utf8') ? undefined : false;
}

export function judgeOperation(
  request: Request,
  target: ReturnType<typeof judgeTarget>,
  grant: Grant,
  world: World,
  add: Add,
): void {
  const { person } = grant;
  const { method, body } = request;
  const { route } = target;
  const maxLimit = route === 'history' ? 100n : undefined;
  const known = knownParameters(method, route);
  const query = judgeQuery(target.query, known, cursors[route], maxLimit);
  const places = query.places.map((name) => (name === '*' ? '*' : `parameter ${name}`));
  const hasId = route === 'one' || route === 'restore' || route === 'history';
  const id = hasId ? judgeId(target.id, 1n) : undefined;
  if (hasId && id === undefined) places.push('parameter id');
  if (route === 'share' && !isName(target.id)) places.push('parameter user');
  if (query.isOdd) {
    add(stage.input, optional, {
      ...invalid,
      places: [...new Set([...places, 'parameter fields'])],
    });
  }

  const takesBody = ['POST', 'PUT', 'PATCH'].includes(method) && route !== 'restore';
  if (!takesBody) {
    if (mayHaveBody(request)) judgeUnwantedBody(request, add, stage.body);
    if (places.length > 0) return add(stage.input, stage.input, { ...invalid, places });
    if (method === 'DELETE' && (route === 'token' || route === 'ownToken'))
      return judgeRevoke(grant, route === 'token' ? undefined : target.id, world, add);
    if (route === 'token') return add(stage.store, stage.store, { status: 200 });
    if (route === 'tokens') return judgeList(grant, query, world, add);
    if (route === 'shares') return shares(query, person, world, add);
    if (route === 'bin') return bin(query, person, world, add);
    if (route === 'share') return unshare(target.id, person, world, add);
    if (id === undefined) return list(query, grant, world, add);
    if (route === 'restore') return restore(id, query, grant, world, add);
    if (route === 'history') return history(id, query, person, world, add);
    return one(request, id, query, grant, world, add);
  }
  judgeSize(request, add, stage.body);
  const foreign = isForeign(request);
  if (foreign !== false) {
    const to = foreign === true && body !== '' ? stage.body : optional;
    add(stage.body, to, { status: 415, kind: 'unsupported-media-type' });
  }
  const bytes = Buffer.from(body, 'latin1');
  if (route === 'tokens') return judgeCreate(bytes, places, grant, world, add);
  const judgement = judges[method]?.(bytes) ?? { places: [] };
  if ('places' in judgement) places.push(...judgement.places.map((place) => `pointer ${place}`));
  else if (places.length === 0 && 'access' in judgement && target.id === person.user)
    places.push('parameter user'); // oneself
  if (places.length > 0) return add(stage.input, stage.input, { ...invalid, places });
  if ('plant' in judgement) create(judgement.plant, query, grant, world, add);
  if ('access' in judgement) share(target.id, judgement.access, person, world, add);
  if ('patch' in judgement && id !== undefined)
    update(request, id, judgement.patch, query, grant, world, add);
}

/** What a body says, by method. */
const judges: Partial<Record<string, typeof judgeBody | typeof judgePatch | typeof judgeShare>> = {
  POST: judgeBody,
  PATCH: judgePatch,
  PUT: judgeShare,
};

/** What `after` is, where it is no number. */
const cursors: Partial<Record<Route, (text: string) => boolean>> = {
  shares: isName,
  bin: (text) => /^(?:0|[1-9]\d{0,14})-(?:0|[1-9]\d{0,8})$/.test(text),
  tokens: (text) => /^[0-9A-Za-z]{9}-[0-9a-f]{16}$/.test(text),
};

function knownParameters(method: string, route: Route): string[] {
  if (method === 'DELETE' || route === 'token') return [];
  if (route === 'tokens' || route === 'shares' || route === 'bin')
    return method === 'GET' || method === 'HEAD' ? ['limit', 'after'] : [];
  if (route === 'history') return ['limit'];
  if (route === 'one' || method === 'POST') return ['fields'];
  return route === 'list' ? ['limit', 'after', 'tag', 'q', 'fields'] : [];
}

function share(user: string, access: Access, person: Person, world: World, add: Add): void {
  add(stage.store, stage.store, {
    status: world.sharesWith(person, user) ? 200 : 201,
    text: JSON.stringify({ user, access }),
    effect: () => world.share(person, user, access),
  });
}

function unshare(user: string, person: Person, world: World, add: Add): void {
  if (world.sharesWith(person, user) || world.receivesFrom(person, user))
    add(stage.store, stage.store, { status: 204, effect: () => world.unshare(person, user) });
  else add(stage.store, stage.store, { status: 404, kind: 'share-not-found' });
}

function shares({ limit, cursor = '' }: Query, person: Person, world: World, add: Add): void {
  const { given, received } = world.sharesOf(person);
  const follows = (user: string, other: string) =>
    Buffer.compare(Buffer.from(user), Buffer.from(other)) > 0;
  const names = [...new Set([...given, ...received].map(({ user }) => user))]
    .filter((user) => follows(user, cursor))
    .toSorted((user, other) => (follows(user, other) ? 1 : -1));
  const page = names.slice(0, limit);
  const onPage = ({ user }: { user: string }) => page.includes(user);
  add(stage.store, stage.store, {
    status: 200,
    text: JSON.stringify({ given: given.filter(onPage), received: received.filter(onPage) }),
    next: page.length < names.length ? { limit: String(limit), after: String(page.at(-1)) } : null,
  });
}

function create(
  plant: { name: string; tag: string; id: number | undefined },
  { fields }: Query,
  grant: Grant,
  world: World,
  add: Add,
): void {
  const { person } = grant;
  const created = { ...plant, id: plant.id ?? world.nextId(person), owner: person.user };
  const { id } = created;
  if (world.has(person, id))
    return add(stage.store, stage.store, { status: 409, kind: 'id-taken' });
  add(stage.store, stage.store, {
    status: 201,
    text: world.textOf(created, grant, shownTo(grant, fields, ['name', 'tag'])),
    location: `/plants/${id}`,
    ...(grant.scopes.includes('plants:read') && { state: stateOf(person, created) }),
    effect: () => world.create(person, id, plant),
  });
}

function list(
  { after = 0, tag, q, limit, fields }: Query,
  grant: Grant,
  world: World,
  add: Add,
): void {
  const all = world
    .reachable(grant.person, 'read')
    .filter((plant) => plant.id > after && (tag === undefined || plant.tag === tag))
    .filter((plant) => q === undefined || contains(plant.name, q) || contains(plant.tag, q));
  const page = all.slice(0, limit);
  const next = {
    limit: String(limit),
    after: String(page.at(-1)?.id),
    ...(tag !== undefined && { tag }),
    ...(q !== undefined && { q }),
    ...(fields !== undefined && { fields: fields.join() }),
  };
  add(stage.store, stage.store, {
    status: 200,
    text: `[${page.map((plant) => world.textOf(plant, grant, fields)).join()}]`,
    next: page.length < all.length ? next : null,
  });
}

function contains(text: string, q: string): boolean {
  return fold(text).includes(fold(q));
}

const notFound = { status: 404, kind: 'plant-not-found' };
const readOnly = { status: 403, kind: 'plant-read-only' };

/** Why a plant of this owner cannot be changed. */
function refusalOf({ person, scopes }: Grant, world: World, owner: string | undefined) {
  const isSeen = owner !== undefined && world.reaches(person, 'read', owner);
  return isSeen && scopes.includes('plants:read') ? readOnly : notFound;
}

/** What a token without plants:read sees of a change. */
function shownTo(
  { scopes }: Grant,
  fields: readonly Field[] = ['name', 'tag'],
  known: readonly string[] = [],
): readonly Field[] {
  if (scopes.includes('plants:read')) return fields;
  const visible = fields.filter((field) => field === 'id' || known.includes(field));
  return visible.length === 0 ? ['id'] : visible;
}
const changed = { status: 412, kind: 'precondition-failed' };

function one(
  request: Request,
  id: number,
  { fields }: Query,
  grant: Grant,
  world: World,
  add: Add,
): void {
  const { person } = grant;
  const isDelete = request.method === 'DELETE';
  const plant = world.reachable(person, isDelete ? 'write' : 'read').find((it) => it.id === id);
  if (judgeCondition(request, plant, person, world, add)) return;
  if (plant === undefined) {
    const owner = isDelete ? world.find(person, id)?.owner : undefined;
    return add(stage.store, stage.store, refusalOf(grant, world, owner));
  }
  if (isDelete) {
    const effect = () => world.delete(person, id);
    return add(stage.store, stage.store, { status: 204, effect });
  }
  const state = stateOf(person, plant);
  const known = judgeTags(sent(request, 'if-none-match'));
  const isFixed = fields?.includes('access') !== true; // the tag does not cover what the caller may do
  if (isFixed && matches(known, world.tagOf(state), 'weakly'))
    return add(stage.store, stage.store, { status: 304, state });
  const text = world.textOf(plant, grant, fields);
  add(stage.store, stage.store, { status: 200, text, state });
}

/** Adds the refusal of a condition, and returns whether there is one. A missing plant is reported before it. */
function judgeCondition(
  request: Request,
  plant: Plant | undefined,
  person: Person,
  world: World,
  add: Add,
): boolean {
  const wanted = judgeTags(sent(request, 'if-match'));
  const known = judgeTags(sent(request, 'if-none-match'));
  const isRead = request.method === 'GET' || request.method === 'HEAD';
  if ([wanted, known].includes('malformed') && !(isRead && plant === undefined)) {
    add(stage.store, stage.store, invalid);
    return true;
  }
  if (plant === undefined) return false;
  const state = stateOf(person, plant);
  const isMissed = wanted !== undefined && !matches(wanted, world.tagOf(state), 'strongly');
  const isKnown = !isRead && matches(known, world.tagOf(state), 'weakly');
  if (isMissed || isKnown) add(stage.store, stage.store, changed);
  return isMissed || isKnown;
}

function update(
  request: Request,
  id: number,
  patch: PlantPatch,
  { fields }: Query,
  grant: Grant,
  world: World,
  add: Add,
): void {
  const { person } = grant;
  const plant = world.reachable(person, 'write').find((it) => it.id === id);
  if (judgeCondition(request, plant, person, world, add)) return;
  if (plant === undefined) {
    const { owner } = world.find(person, id) ?? {};
    return add(stage.store, stage.store, refusalOf(grant, world, owner));
  }
  const updated = { ...plant, ...patch };
  add(stage.store, stage.store, {
    status: 200,
    text: world.textOf(updated, grant, shownTo(grant, fields, Object.keys(patch))),
    ...(grant.scopes.includes('plants:read') && { state: stateOf(person, updated) }),
    effect: () => world.update(person, plant, patch),
  });
}

function restore(id: number, { fields }: Query, grant: Grant, world: World, add: Add): void {
  const { person } = grant;
  const [held, deleted] = [world.find(person, id), world.findDeleted(person, id)];
  const last = held ?? deleted;
  if (last === undefined || !world.reaches(person, 'write', last.owner))
    return add(stage.store, stage.store, refusalOf(grant, world, last?.owner));
  if (held !== undefined || deleted === undefined)
    return add(stage.store, stage.store, { status: 409, kind: 'id-taken' });
  add(stage.store, stage.store, {
    status: 200,
    text: world.textOf(deleted, grant, shownTo(grant, fields)),
    ...(grant.scopes.includes('plants:read') && { state: stateOf(person, deleted) }),
    effect: () => world.restore(person, deleted),
  });
}

/** Requests have only cursors before and after all deletions: others are known to the service alone. */
function bin({ limit, cursor = '' }: Query, person: Person, world: World, add: Add): void {
  const all = cursor.startsWith('0-') ? [] : world.binOf(person);
  const page = all.slice(0, limit);
  add(stage.store, stage.store, {
    status: 200,
    text: JSON.stringify(page),
    view: ({ json }) => withoutTimes(json, 'deletedAt'),
    next: page.length < all.length ? { limit: String(limit), after: anyCursor } : null,
  });
}

function history(id: number, { limit }: Query, person: Person, world: World, add: Add): void {
  const plant = world.find(person, id) ?? world.findDeleted(person, id);
  if (plant === undefined || !world.reaches(person, 'read', plant.owner))
    return add(stage.store, stage.store, notFound);
  const changes = world
    .changesOf(person, id)
    .toReversed()
    .slice(0, limit ?? 100);
  add(stage.store, stage.store, {
    status: 200,
    text: JSON.stringify(changes),
    view: ({ json }) => withoutTimes(json),
  });
}

/** Throws if a time is none. */
function withoutTimes(json: unknown, name = 'at'): unknown {
  return (json as Record<string, string>[]).map(({ [name]: at = '', ...others }) => {
    if (new Date(at).toISOString() !== at) throw new Error(`${at} is no time`);
    return others;
  });
}
