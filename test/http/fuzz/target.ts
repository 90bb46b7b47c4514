/**
 * The rules of docs/reference/api.md, RFC 9112 (section 3.2) and RFC 3986 for a target and its query, checked
 * on their bytes.
 */
import { exactInteger, isSearch, isTag, maxId } from './json.ts';
import type { Bytes } from './request.ts';

export type Route =
  | 'list'
  | 'one'
  | 'restore'
  | 'history'
  | 'bin'
  | 'shares'
  | 'share'
  | 'health'
  | 'document'
  | 'file'
  | 'moved'
  | 'token'
  | 'tokens'
  | 'ownToken'
  | 'whole'
  | 'none';

export interface Target {
  route: Route;
  /** The segment that names the plant, the user or the token, decoded. */
  id: string;
  query: Bytes;
  /** Not a target at all. */
  isBroken: boolean;
  /** Segments that some servers resolve (RFC 3986, section 6.2.2.3) and others keep. */
  hasDots: boolean;
}

export const fieldNames = ['id', 'name', 'tag', 'owner', 'access'] as const;
export type Field = (typeof fieldNames)[number];

const healthPaths = ['/livez', '/readyz'];
const documentPaths = ['/', '/web/styles/theme.css', '/openapi.json', '/docs'];
const movedPaths = ['/problems', '/problems/id-taken'];
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export function judgeTarget(target: Bytes): Target {
  const none = { route: 'none', id: '', query: '', hasDots: false } as const;
  if (/^\*(?:\?|$)/.test(target)) return { ...none, route: 'whole', isBroken: false };
  const [, path, query = ''] =
    /^(?:https?:\/\/[^/?#]*)?(\/[^?#]*)?(?:\?([^#]*))?$/i.exec(target) ?? [];
  // eslint-disable-next-line no-control-regex
  if (
    /[^\x21-\x7e]|#/.test(target) ||
    target === '' ||
    (path === undefined && !/^https?:/i.test(target))
  ) {
    return { ...none, isBroken: true };
  }
  const segments = (path ?? '/').slice(1).split('/').map(decode);
  if (!segments.every((one) => one !== undefined)) return { ...none, query, isBroken: true };
  const hasDots = segments.some((one) => one === '.' || one === '..');
  const found = { query, hasDots, isBroken: false, id: segments[1] ?? '' };
  const whole = `/${segments.join('/')}`;
  if (healthPaths.includes(whole)) return { ...found, route: 'health' };
  if (documentPaths.includes(whole)) return { ...found, route: 'document' };
  if (movedPaths.includes(whole)) return { ...found, route: 'moved' };
  if (isFile(segments)) return { ...found, route: 'file' };
  if (whole === '/token') return { ...found, route: 'token' };
  if (whole === '/bin') return { ...found, route: 'bin' };
  const [folder = '', ...names] = segments;
  const routes = new Map<string, readonly [Route, Route]>([
    ['plants', ['list', 'one']],
    ['shares', ['shares', 'share']],
    ['tokens', ['tokens', 'ownToken']],
  ]).get(folder);
  const [name, action] = names;
  if (folder === 'plants' && name !== '' && names.length === 2) {
    if (action === 'restore' || action === 'history') return { ...found, route: action };
  }
  if (routes === undefined || names.length > 1 || name === '') return { ...found, route: 'none' };
  return { ...found, route: routes[names.length === 0 ? 0 : 1] };
}

/** A name that no file has, in a folder that has files: documents are judged before. */
function isFile([folder = '', name, ...more]: readonly (string | undefined)[]): boolean {
  if (folder === 'problems') return name !== undefined && name !== '' && more.length === 0;
  return ['web', 'client'].includes(folder) && [name, ...more].join('') !== ''; // in any folder below
}

/** Undefined if it is not percent-encoded UTF-8. */
function decode(text: Bytes): string | undefined {
  if (/%(?![\da-fA-F]{2})/.test(text)) return undefined;
  const bytes = text.replace(/%(..)/g, (_all, hex: string) =>
    String.fromCharCode(parseInt(hex, 16)),
  );
  try {
    return utf8.decode(Buffer.from(bytes, 'latin1'));
  } catch {
    return undefined;
  }
}

/** An id from `least` up, only in digits as in JSON; undefined for anything else. */
export function judgeId(text: string, least: bigint): number | undefined {
  return integer(text, least, maxId);
}

function integer(text: string, least: bigint, most: bigint): number | undefined {
  if (!/^(?:0|[1-9]\d*)$/.test(text)) return undefined;
  const value = exactInteger(text);
  return value !== undefined && value >= least && value <= most ? Number(value) : undefined;
}

export interface Query {
  limit?: number;
  after?: number;
  /** `after` of a list of tokens, shares or deleted plants. */
  cursor?: string;
  tag?: string;
  q?: string;
  fields?: Field[];
  /** Names of the parameters with a fault; `*` for a name that cannot be decoded. */
  places: string[];
  /** The documentation leaves open whether this is accepted: fields with commas that come twice. */
  isOdd: boolean;
}

export function judgeQuery(
  query: Bytes,
  known: readonly string[],
  isCursor?: (text: string) => boolean,
  maxLimit = 1_000n,
): Query {
  const faulty = new Set<string>();
  const values = new Map<string, string[]>();
  const undecodable = new Set<string>();
  for (const pair of query.split('&')) {
    if (pair === '') continue;
    const at = pair.indexOf('=');
    const encoded = at === -1 ? pair : pair.slice(0, at);
    const name = formDecode(encoded);
    const value = formDecode(at === -1 ? '' : pair.slice(at + 1));
    if (name === undefined) undecodable.add(encoded);
    else if (value === undefined) faulty.add(name);
    if (name === undefined) continue;
    if (!known.includes(name) || (values.has(name) && name !== 'fields')) faulty.add(name);
    values.set(name, [...(values.get(name) ?? []), value ?? '']);
  }
  const judged: Query = { places: [], isOdd: false };
  const take = <T>(
    name: string,
    read: (text: string) => T | undefined,
    keep: (value: T) => void,
  ) => {
    const [text] = values.get(name) ?? [];
    if (text === undefined || !known.includes(name)) return;
    const value = read(text);
    if (value === undefined) faulty.add(name);
    else keep(value);
  };
  take(
    'limit',
    (text) => integer(text, 1n, maxLimit),
    (value) => (judged.limit = value),
  );
  if (isCursor === undefined) {
    take(
      'after',
      (text) => integer(text, 0n, maxId),
      (value) => (judged.after = value),
    );
  } else {
    take(
      'after',
      (text) => (isCursor(text) ? text : undefined),
      (value) => (judged.cursor = value),
    );
  }
  take(
    'tag',
    (text) => (isTag(text) ? text : undefined),
    (value) => (judged.tag = value),
  );
  take(
    'q',
    (text) => (isSearch(text) ? text : undefined),
    (value) => (judged.q = value),
  );
  const fields = values.get('fields') ?? [];
  judged.isOdd = fields.length > 1 && fields.some((text) => text.includes(','));
  take(
    'fields',
    () => judgeFields(fields),
    (value) => (judged.fields = value),
  );
  judged.places = [...faulty, ...[...undecodable].map(() => '*')];
  return judged;
}

/** As a list with commas, or one after the other (docs/reference/api.md). */
function judgeFields(texts: readonly string[]): Field[] | undefined {
  const fields = texts.flatMap((text) => text.split(','));
  const isField = (one: string): one is Field => fieldNames.some((name) => name === one);
  return fields.every(isField) && new Set(fields).size === fields.length ? fields : undefined;
}

function formDecode(text: Bytes): string | undefined {
  return decode(text.replaceAll('+', ' '));
}
