/**
 * Who uses the page: signs in by a link or a pasted token, and asks for another one when it stops working. The token is in
 * the session storage of this tab, or in the local storage if this browser stays signed in, and nowhere else.
 */
import { PlantStoreError, type Invitation, type Scope, type Token } from '../../client/client.ts';
import { setNotice } from '../shared/banner.ts';
import { confirm, type Question } from '../shared/confirm.ts';
import { byId, hashParameter, onPress, setText, show, withoutParameter } from '../shared/dom.ts';
import { Form, newKey } from '../shared/form.ts';
import { recall, remember, type Keeper } from '../shared/remember.ts';
import { toast } from '../shared/toast.ts';
import { connect, leaving, serviceUrl, waiting } from './connection.ts';
import { deviceTerms, keepToken, keptToken, successorOf, tokenKey } from './device.ts';
import { showIdentity } from './identity.ts';
import { hasBegun, redeem, showJoin } from './join.ts';
import {
  explainLink,
  faultOf,
  findToken,
  isOfService,
  isOther,
  questionAbout,
  Unusable,
} from './pasted-token.ts';
import { forgetSignOn, SignOn, SignOnFailed } from './sign-on.ts';

const stayBox = byId('sign-in-stay', HTMLInputElement);
const renewDialog = byId('renew', HTMLDialogElement);
const provider = SignOn.ofPage();

/** Calls the service with the token of the page. If it refuses the token, calls wait for another one. */
export const store = connect(tokenAfter);
/** Follows the changes of the store. It opens no dialog, because the user has not begun the call. */
export const follower = connect((refused) => tokenAfter(refused, { isUrgent: false }));
/** What the token in use grants; undefined until somebody has signed in. */
export let info: Token | undefined;
let token = '';
let renewing: Promise<void> | undefined;
let renewed = () => {};
/** Opens the dialog for another token, once there is no other way. Calls of the user need it at once. */
let ask = () => {};
let isAsked = false;
/** Ends the check of a token when another one is entered. */
let check = new AbortController();
let onOpen = async () => {};
let shownStart: 'opening' | 'sign-in' | 'join' = 'opening';

/** Whether the token of the page grants this. */
export function can(scope: Scope): boolean {
  return info?.scopes.includes(scope) === true;
}

const signedOut =
  'You are not signed in on this device any more: you were away for too long, or its token was revoked. Ask a manager of the store for a new link, or paste a token.';

type Place = 'sign-in' | 'renew';
const forms: Record<Place, Form> = { 'sign-in': acceptAt('sign-in'), renew: acceptAt('renew') };
if (provider !== undefined) {
  setText('sign-in-start', `Sign in with ${provider.host}`);
  setText('renew-start', `Sign in again with ${provider.host}`);
  setText('sign-in-lead', 'Or paste an access token, or a link that has one.');
  for (const place of ['sign-in', 'renew']) show(`${place}-on`);
}
onPress('sign-out', signOut);
onPress('stay', stay);
// The table follows the address too, and comes later.
addEventListener('hashchange', ({ oldURL }) => {
  const link = hashParameter('token');
  if (link === undefined) return;
  if (info !== undefined) history.replaceState(null, '', oldURL); // the table shows what it did before
  void open(link);
});
// Another tab has signed out, or has got the next token.
addEventListener('storage', ({ key, oldValue, newValue }) => {
  if (key !== tokenKey || oldValue !== token) return;
  void (newValue === null ? leave(undefined) : tokenAfter(token, { isUrgent: false }));
});
document.addEventListener('visibilitychange', () => void renewKept());

/** Opens a store. `opened` is called when one opens, or the scopes change. */
export async function start(opened: () => Promise<void>): Promise<void> {
  onOpen = opened;
  await open(hashParameter('token'));
  await renewKept();
}

/** Accepts a token in a form, and offers the way to the identity provider. The field keeps a token with a fault. */
function acceptAt(place: Place): Form {
  const field = byId(`${place}-token`, HTMLInputElement);
  onPress(`${place}-start`, async () => {
    setText(`${place}-on-fault`, '');
    await provider?.start().catch((error: unknown) => showFault(place, error));
  });
  return new Form(place, async () => {
    const stays = place === 'sign-in' ? stayBox.checked : isKept();
    try {
      await enter(findToken(field.value));
    } catch (error) {
      return showFault(place, error);
    }
    field.value = '';
    if (stays && !isKept()) await stay();
  });
}

/** Shows what is wrong with a token beside its field, and why the provider signs nobody in beside its button. */
function showFault(place: Place, error: unknown): void {
  if (error instanceof SignOnFailed) setText(`${place}-on-fault`, error.message);
  else forms[place].fault('token', faultOf(error));
}

/** What the page shows while no store is open. */
function showStart(shown: typeof shownStart): void {
  shownStart = shown;
  for (const each of ['opening', 'sign-in', 'join']) {
    show(each, info === undefined && each === shown);
  }
}

/** Opens the store of the link, of the identity provider, of this tab or of this browser, or asks for a token. */
async function open(link: string | undefined): Promise<void> {
  showStart('opening');
  try {
    if (info === undefined) await openAgain(link);
    showStart('opening');
    if (link !== undefined) await enter(findToken(link), confirm).catch(explainLink);
  } catch (error) {
    if (info === undefined || error instanceof SignOnFailed) showFault('sign-in', error);
    else toast(`The link did not open a store. ${faultOf(error)}`);
  }
  if (shownStart === 'join') return; // the user has not agreed yet
  // Until the token of a link is stored or refused, a reload needs it. Another link may have come meanwhile.
  if (link !== undefined && link === hashParameter('token')) withoutParameter('token');
  showStart('sign-in');
}

/** Opens the store of a sign-in that was just completed, of this tab or of this browser. If it fails, the link counts. */
async function openAgain(link: string | undefined): Promise<void> {
  const stored = recall(tokenKey) ?? keptToken();
  const signedOn = await provider?.finish().catch((error: unknown) => {
    if (!(error instanceof SignOnFailed) || (stored ?? link) === undefined) throw error;
    toast(error.message); // an address that anybody can make up must not sign the user out
    return undefined;
  });
  const known = signedOn ?? stored;
  if (known === undefined || known === link) return;
  await enter(known).catch(async (error: unknown) => {
    if (!(error instanceof PlantStoreError)) throw error;
    if (error.status === 401 && (await refresh(known))) return;
    if (link !== undefined) return;
    throw known === keptToken() ? new Unusable(signedOut) : error;
  });
}

/** Gets another token without the user. Resolves to false if that is not possible. */
async function refresh(refused: string): Promise<boolean> {
  try {
    // Another tab may have replaced the token. But a tab that opens with one of its own is not that of this browser.
    const kept = info === undefined && recall(tokenKey) !== undefined ? undefined : keptToken();
    const another = kept === refused ? undefined : (kept ?? (await provider?.refresh()));
    // The page must not change to another user by itself.
    return another !== undefined && (await enter(another, async () => false));
  } catch (error) {
    if (error instanceof PlantStoreError || error instanceof SignOnFailed) return false;
    throw error;
  }
}

/** The token for a call. If the service has refused the one in use, all calls wait for the next one. */
async function tokenAfter(refused?: string, { isUrgent = true } = {}): Promise<string> {
  await waiting; // a new call would fail too
  // Another call may have got a new token meanwhile.
  if (refused !== token) return token;
  renewing ??= renew().finally(() => {
    renewing = undefined; // after an error too, so that the next call asks again
    ask = () => {};
    isAsked = false;
    setNotice('token', undefined);
  });
  if (isUrgent && !isAsked) {
    isAsked = true;
    ask();
  }
  await renewing;
  return token;
}

/** Asks for another token while the page stays as it is, unless it can get one without the user. */
async function renew(): Promise<void> {
  if (await refresh(token)) return;
  setNotice('token', {
    title: 'Your token no longer works.',
    text: 'The page keeps what it shows.',
    action: 'Paste another token',
    onAction: () => renewDialog.showModal(),
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  renewed = resolve;
  ask = () => renewDialog.showModal();
  if (isAsked) ask();
  await promise;
}

/**
 * Checks a token, and uses it from now on. Resolves to false if the user has to agree first, or does not. `agree` asks
 * before the page changes to another user.
 */
async function enter(
  entered: string,
  agree: (question: Question) => Promise<boolean> = async () => true,
): Promise<boolean> {
  check.abort();
  const { signal } = (check = new AbortController());
  const wasKept = entered === keptToken();
  const granted = await connect(entered).token({ signal });
  if (granted.invitation !== undefined) return enterInvited(entered, granted, granted.invitation);
  const before = info;
  if (before !== undefined && isOther(before, granted)) {
    return (await agree(questionAbout(before, granted))) && leave(entered);
  }
  [token, info] = [entered, granted];
  remember(tokenKey, wasKept ? undefined : token);
  if (isOfService(token)) forgetSignOn(); // the user has changed to a token of the service
  showIdentity(granted, { isOfService: isOfService(token), isKept: wasKept });
  showStart('opening');
  renewDialog.close(); // a link can come while the page asks for another token
  renewed();
  if (before?.scopes.join() !== granted.scopes.join()) void onOpen();
  // Meanwhile, another tab may have replaced the token.
  if (wasKept && !isKept()) void tokenAfter(token, { isUrgent: false });
  return true;
}

/** Joins a store, once the person agrees. */
async function enterInvited(link: string, granted: Token, { uses }: Invitation): Promise<boolean> {
  const join = async (keeper: Keeper) => enter(await redeem(link, granted, keeper));
  if (hasBegun(granted)) return join('tab');
  if (uses === 0)
    throw new Unusable('This invitation was used. Ask whoever sent it for a new one.');
  if (info !== undefined) {
    const keeper = isKept() && !isOther(info, granted) ? 'device' : 'tab';
    return (await confirm(questionAbout(info, granted))) && join(keeper);
  }
  showJoin(granted, async (keeper) => {
    await join(keeper);
    withoutParameter('token');
  });
  showStart('join');
  return false;
}

/** Creates a token with which this browser stays signed in, in place of the one of this tab. */
async function stay(): Promise<void> {
  if (info === undefined) return; // the person has not joined yet
  const { expiresAt, renewableUntil = expiresAt } = info;
  const terms = deviceTerms(renewableUntil);
  const { token: created } = await store.createToken(terms, { idempotencyKey: newKey() });
  await Promise.all([keepToken(created), enter(created)]);
  toast(
    isKept() ? 'You stay signed in on this device.' : 'The browser lets the page keep no token.',
  );
}

/** Whether the token of the page is that of this browser. */
function isKept(): boolean {
  return token !== '' && token === keptToken();
}

/** Gets the next token of this browser, once a day. */
async function renewKept(): Promise<void> {
  if (!isKept() || info === undefined || document.visibilityState === 'hidden') return;
  const next = await successorOf(token, info);
  if (next !== undefined) await Promise.all([keepToken(next), enter(next)]);
}

export async function signOut(): Promise<never> {
  history.replaceState(null, '', serviceUrl);
  byId('sign-out', HTMLButtonElement).ariaBusy = 'true';
  leaving.abort(); // what waits for the service must not ask for another token
  await keepToken(undefined); // also if the tab has another one: the store must not open again
  return leave(undefined);
}

/**
 * Loads the page again, with the token of another user or without one. So nothing of this user stays in memory, and
 * nothing that they have begun happens in the name of the next one.
 */
async function leave(next: string | undefined): Promise<never> {
  leaving.abort();
  check.abort();
  remember(tokenKey, next);
  // Where the browser blocks that, the address takes the token over the reload.
  if (next !== recall(tokenKey)) history.replaceState(null, '', `#token=${next}`);
  forgetSignOn();
  location.reload();
  return new Promise(() => {}); // whoever waits for it ends with the page
}
