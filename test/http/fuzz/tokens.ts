/**
 * The oracle behind the token for a user's own tokens: what the model answers, and what of an answer it can predict.
 */
import { judgeNewToken } from './json.ts';
import { invalid, stage, type Add, type Outcome } from './outcomes.ts';
import type { Query } from './target.ts';
import type { Grant, ModelToken, World } from './world.ts';

/** `current` is the token of the request. */
function shownOf({ label, scopes, state, id }: ModelToken, current: string): string {
  return JSON.stringify([label, scopes, state, id === current]);
}

type View = NonNullable<Outcome['view']>;

interface ShownToken extends ModelToken {
  current: boolean;
  token?: unknown;
}

const shownTokens: View = ({ json }) =>
  (json as ShownToken[]) // a wrong form throws, which fails the test
    .map(({ label, scopes, state, current, token }) => {
      if (token !== undefined) throw new Error('a list shows a token');
      return JSON.stringify([label, scopes, state, current]);
    })
    .toSorted();

const createdToken: View = ({ json, location }) => {
  const { id, label, scopes, state, current, token } = json as ShownToken; // as above
  const isShown = typeof token === 'string' && /^plant_[0-9A-Za-z]{58}$/.test(token);
  return [label, scopes, state, current, isShown, location === `/tokens/${id}`];
};

export function judgeList(
  { person, id }: Grant,
  { limit, cursor }: Query,
  world: World,
  add: Add,
): void {
  if (limit !== undefined || cursor !== undefined) {
    // Each service has given its tokens other ids.
    const isPage: View = ({ json }) => (json as unknown[]).length <= (limit ?? Infinity);
    return add(stage.store, stage.store, { status: 200, text: 'true', view: isPage });
  }
  const shown = world.tokensOf(person).map((token) => shownOf(token, id));
  const text = JSON.stringify(shown.toSorted());
  add(stage.store, stage.store, { status: 200, text, view: shownTokens });
}

/** Revokes the token with this id, or that of the request. */
export function judgeRevoke(
  { person, id: current, scopes: granted }: Grant,
  id: string | undefined,
  world: World,
  add: Add,
): void {
  const token = world.tokensOf(person).find((one) => one.id === (id ?? current));
  if (token === undefined) {
    add(stage.store, stage.store, { status: 404, kind: 'token-not-found' });
  } else if (!token.scopes.every((scope) => granted.includes(scope))) {
    const missing = token.scopes.filter((scope) => !granted.includes(scope)).join(' ');
    const challenge = `Bearer error="insufficient_scope", scope="${missing}"`;
    add(stage.store, stage.store, { status: 403, kind: 'insufficient-scope', challenge });
  } else {
    const effect = () => world.revoke(token);
    add(stage.store, stage.store, { status: 204, effect });
  }
}

export function judgeCreate(
  bytes: Uint8Array,
  places: readonly string[],
  { person, scopes: granted }: Grant,
  world: World,
  add: Add,
): void {
  const judged = judgeNewToken(bytes);
  const all = [
    ...places,
    ...('places' in judged ? judged.places.map((place) => `pointer ${place}`) : []),
  ];
  if (all.length > 0 || 'places' in judged)
    return add(stage.input, stage.input, { ...invalid, places: all });
  const { scopes: wanted = granted, label, isPast } = judged;
  const missing = wanted.filter((scope) => !granted.includes(scope)).join(' ');
  if (missing !== '') {
    const challenge = `Bearer error="insufficient_scope", scope="${missing}"`;
    return add(stage.store, stage.store, { status: 403, kind: 'insufficient-scope', challenge });
  }
  if (isPast) return add(stage.store, stage.store, { ...invalid, places: ['pointer /expiresAt'] });
  const scopes = ['plants:read', 'plants:write', 'shares:write'].filter((one) =>
    wanted.includes(one),
  );
  add(stage.store, stage.store, {
    status: 201,
    text: JSON.stringify([label, scopes, 'active', false, true, true]),
    view: createdToken,
    effect: () => world.addToken({ id: '', person, scopes, label, state: 'active' }),
  });
}
