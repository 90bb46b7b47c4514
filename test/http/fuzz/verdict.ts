/**
 * Whether an answer is one of those that the oracle allows.
 */
import { isNotFoundPage, problemOf } from './answers.ts';
import { anyCursor, type Outcome } from './outcomes.ts';
import { valuesOf, type Answer } from './wire.ts';

/** The outcome that the response matches; if it matches none, the differences from each. */
export function outcomeOf(
  answer: Answer,
  method: string,
  outcomes: readonly Outcome[],
  /** If the client sends no more, or no sound request behind it: when the server sees that is chance. */
  mayEnd = false,
): { outcome: Outcome } | { wrongs: string[] } {
  const wrongs: string[] = [];
  for (const outcome of outcomes) {
    const against = differencesOf(answer, method, mayEnd ? { ...outcome, closes: 'may' } : outcome);
    if (against.length === 0) return { outcome };
    wrongs.push(`not ${outcome.status} ${outcome.kind ?? ''}: ${against.join('; ')}`);
  }
  return { wrongs };
}

function differencesOf(answer: Answer, method: string, outcome: Outcome): string[] {
  if (answer.status !== outcome.status) return [`status ${answer.status}`];
  const against: string[] = [];
  const same = (what: string, actual: unknown, expected: unknown) => {
    if (actual === expected) return;
    against.push(`${what} ${JSON.stringify(actual)} and not ${JSON.stringify(expected)}`);
  };
  const header = (name: string) => valuesOf(answer, name).join(' and ') || undefined;

  if (outcome.closes !== 'may') same('connection: close', answer.isLast, outcome.closes === 'must');
  if (outcome.challenge !== undefined)
    same('challenge', header('www-authenticate'), outcome.challenge);
  if (outcome.allow !== undefined) {
    same('allow', header('allow')?.split(', ').toSorted().join(', '), outcome.allow);
  }
  if (outcome.status >= 400) {
    if (method !== 'HEAD') against.push(...differencesOfProblem(answer, outcome));
    return against;
  }
  if (outcome.state !== undefined) same('a strong ETag', isTag(header('etag')), true);
  if (outcome.text !== undefined && outcome.state === undefined) {
    same('etag', header('etag'), undefined);
  }
  if (outcome.next !== undefined) same('next', paramsOf(header('link')), sorted(outcome.next));
  if (outcome.view !== undefined) {
    same('content-type', header('content-type'), 'application/json');
    if (method === 'HEAD') return against;
    const json: unknown = JSON.parse(Buffer.from(answer.body, 'latin1').toString('utf8'));
    const view = outcome.view({ json, location: header('location') });
    same('body', JSON.stringify(view), outcome.text);
    return against;
  }
  same('location', header('location'), outcome.location);
  if (outcome.text !== undefined) {
    same('content-type', header('content-type'), 'application/json');
    const length = header('content-length');
    if (method !== 'HEAD') same('body', compact(answer.body), outcome.text);
    else if (length !== undefined) same('length', Number(length), Buffer.byteLength(outcome.text));
  }
  return against;
}

/** RFC 9110, section 8.8.3. */
function isTag(value: string | undefined): boolean {
  return value !== undefined && /^"[!#-~\x80-\xff]+"$/.test(value);
}

function differencesOfProblem(answer: Answer, { kind, places }: Outcome): string[] {
  if (kind === 'path-not-found' && isNotFoundPage(answer)) return [];
  const problem = problemOf(answer.body) ?? {};
  const wrongs: string[] = [];
  const type = `/problems/${kind}`;
  if (problem['type'] !== type) wrongs.push(`type ${JSON.stringify(problem['type'])}`);
  if (places === undefined) return wrongs;
  const errors = (problem['errors'] ?? []) as { pointer?: string; parameter?: string }[]; // answers.ts has checked it
  const reported = errors.map(({ pointer, parameter }) =>
    pointer === undefined ? `parameter ${parameter}` : `pointer ${pointer}`,
  );
  const open = places.filter((place) => place === '*').length;
  const missing = places.filter((place) => place !== '*' && !reported.includes(place));
  const extra = reported.filter((place) => !places.includes(place));
  if (missing.length > 0 || extra.length !== open || reported.length !== places.length) {
    wrongs.push(`faults at ${JSON.stringify(reported)} and not ${JSON.stringify(places)}`);
  }
  return wrongs;
}

/** JSON as JSON.stringify writes it: escapes and white space are the service's own affair. */
function compact(body: string): string | undefined {
  try {
    return JSON.stringify(JSON.parse(Buffer.from(body, 'latin1').toString('utf8')));
  } catch {
    return undefined;
  }
}

/** The parameters of the next page out of a Link (RFC 8288), as text to compare. */
function paramsOf(link: string | undefined): string | null {
  if (link === undefined) return null;
  const [, path, query] = /^<\/(plants|shares|tokens|bin)\?([^>]*)>; rel="next"$/.exec(link) ?? [];
  if (query === undefined) return link;
  const params = new URLSearchParams(query);
  if (path === 'bin' && /^\d+-\d+$/.test(params.get('after') ?? '')) params.set('after', anyCursor);
  const pairs = [...params.keys()].map((name) => [name, params.getAll(name).join()]);
  return sorted(Object.fromEntries(pairs));
}

function sorted(params: Record<string, string> | null): string | null {
  return params && JSON.stringify(params, Object.keys(params).toSorted());
}
