/**
 * Who uses the page: signs in by a link or a pasted token, shows what the token grants, and asks for another one when
 * it stops working. The token is in the session storage of this tab, and nowhere else.
 */
import { PlantStoreError, type Scope, type Token } from '../../client/client.ts';
import { printable } from '../../client/printable.ts';
import { setNotice } from '../shared/banner.ts';
import { confirm, type Question } from '../shared/confirm.ts';
import { byId, hashParameter, onPress, sentence, setFacts, setText, show } from '../shared/dom.ts';
import { Form } from '../shared/form.ts';
import { formatTime, rightsText } from '../shared/format.ts';
import { recall, remember } from '../shared/remember.ts';
import { toast } from '../shared/toast.ts';
import { connect, leaving, serviceUrl, waiting } from './connection.ts';
import { forgetSignOn, SignOn, SignOnFailed } from './sign-on.ts';

/** Other services can have another path of the same origin. */
const key = `plant-store.token ${serviceUrl.pathname}`;
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

/** Whether the token of the page grants this. */
export function can(scope: Scope): boolean {
  return info?.scopes.includes(scope) === true;
}

type Place = 'sign-in' | 'renew';
const forms: Record<Place, Form> = { 'sign-in': acceptAt('sign-in'), renew: acceptAt('renew') };
if (provider !== undefined) {
  setText('sign-in-start', `Sign in with ${provider.host}`);
  setText('renew-start', `Sign in again with ${provider.host}`);
  setText('sign-in-lead', 'Or paste an access token, or the link that the service printed.');
  for (const place of ['sign-in', 'renew']) show(`${place}-on`);
}
onPress('sign-out', signOut);

/** Opens a store. `opened` is called when one opens, or the scopes change. */
export async function start(opened: () => Promise<void>): Promise<void> {
  onOpen = opened;
  addEventListener('hashchange', () => void open());
  await open();
}

/** Accepts a token in a form, and offers the way to the identity provider. The field keeps a token with a fault. */
function acceptAt(place: Place): Form {
  const field = byId(`${place}-token`, HTMLInputElement);
  onPress(`${place}-start`, async () => {
    setText(`${place}-on-fault`, '');
    await provider?.start().catch((error: unknown) => showFault(place, error));
  });
  return new Form(place, async () => {
    try {
      await enter(findToken(field.value));
      field.value = '';
    } catch (error) {
      showFault(place, error);
    }
  });
}

/** Shows what is wrong with a token beside its field, and why the provider signs nobody in beside its button. */
function showFault(place: Place, error: unknown): void {
  if (error instanceof SignOnFailed) setText(`${place}-on-fault`, error.message);
  else forms[place].fault('token', faultOf(error));
}

/** Opens the store of the link, of the identity provider or of this tab, or asks for a token. */
async function open(): Promise<void> {
  const link = hashParameter('token');
  if (link === undefined && info !== undefined) return;
  show('sign-in', false);
  show('opening', info === undefined);
  try {
    if (info === undefined) await openAgain(link);
    show('opening', info === undefined);
    if (link !== undefined) await enter(findToken(link), { isLink: true });
  } catch (error) {
    if (info === undefined || error instanceof SignOnFailed) showFault('sign-in', error);
    else toast(`The link did not open a store. ${faultOf(error)}`);
  } finally {
    // Until the token of a link is stored or refused, a reload needs it. Another link may have come meanwhile.
    if (link !== undefined && link === hashParameter('token')) {
      history.replaceState(null, '', location.pathname + location.search);
    }
    show('opening', false);
    show('sign-in', info === undefined);
  }
}

/** Opens the store of a sign-in that was just completed, or of this tab. If it fails, the link counts. */
async function openAgain(link: string | undefined): Promise<void> {
  const stored = recall(key);
  const signedOn = await provider?.finish().catch((error: unknown) => {
    if (!(error instanceof SignOnFailed) || (stored ?? link) === undefined) throw error;
    toast(error.message); // an address that anybody can make up must not sign the user out
    return undefined;
  });
  const known = signedOn ?? stored;
  if (known === undefined || known === link) return;
  await enter(known).catch(async (error: unknown) => {
    if (!(error instanceof PlantStoreError)) throw error;
    if (error.status === 401 && (await refresh())) return;
    if (link === undefined) throw error;
  });
}

/** Gets another token without the user. Resolves to false if that is not possible. */
async function refresh(): Promise<boolean> {
  try {
    const another = await provider?.refresh();
    if (another !== undefined) await enter(another);
    return another !== undefined;
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
  if (await refresh()) return;
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

/** Checks a token, and uses it from now on. */
async function enter(entered: string, { isLink = false } = {}): Promise<void> {
  check.abort();
  const { signal } = (check = new AbortController());
  const granted = await connect(entered).token({ signal });
  const before = info;
  if (before && (before.store !== granted.store || before.user !== granted.user)) {
    if (isLink && !(await confirm(questionAbout(before, granted)))) return;
    return leave(entered);
  }
  [token, info] = [entered, granted];
  remember(key, token);
  if (isOfService(token)) forgetSignOn(); // the user has changed to a token of the service
  showIdentity(granted);
  show('sign-in', false);
  renewDialog.close(); // a link can come while the page asks for another token
  renewed();
  if (before?.scopes.join() !== granted.scopes.join()) void onOpen();
}

export async function signOut(): Promise<never> {
  history.replaceState(null, '', serviceUrl);
  return leave(undefined);
}

/**
 * Loads the page again, with the token of another user or without one. So nothing of this user stays in memory, and
 * nothing that they have begun happens in the name of the next one.
 */
async function leave(next: string | undefined): Promise<never> {
  leaving.abort();
  check.abort();
  remember(key, next);
  forgetSignOn();
  location.reload();
  return new Promise(() => {}); // whoever waits for it ends with the page
}

/** Whoever follows a link may not know that it is for another user. */
function questionAbout(before: Token, next: Token): Question {
  return {
    title: sentence`Open the store “${next.store}” as “${next.user}”?`,
    text: sentence`The link is for another user. You are signed in as “${before.user}” in the store “${before.store}”.`,
    action: 'Open',
    isSafe: true,
  };
}

/** What is wrong with a pasted token, for the person who pasted it. */
class Malformed extends Error {
  override readonly name = 'Malformed';
}

/**
 * The token in a text that a person pasted: a token, a link, or a whole header. Throws a Malformed: the page sends
 * nothing else, because it could be the password of something else.
 */
function findToken(text: string): string {
  const [found] = /plant_[0-9A-Za-z]{58}(?![0-9A-Za-z])/.exec(text) ?? [];
  if (found !== undefined) return found;
  throw new Malformed('Paste the whole token: it starts with "plant_" and has 64 characters.');
}

/** Whether the service has created this token, and not an identity provider. */
function isOfService(which: string): boolean {
  return which.startsWith('plant_');
}

/** What is wrong with a token. Throws other errors. */
function faultOf(error: unknown): string {
  if (error instanceof Malformed) return error.message;
  if (error instanceof PlantStoreError) return error.detail;
  throw error;
}

function showIdentity({ user, store: name, role, scopes, expiresAt, id }: Token): void {
  document.title = printable(`${name} · Plant Store`);
  setText('store-name', name);
  setText('who-user', user);
  show('store-name');
  show('who');
  // The service refuses to create tokens with those of an identity provider.
  const rights = [...scopes, ...(isOfService(token) ? ['tokens:create'] : [])];
  document.body.dataset['rights'] = rights.join(' '); // controls.css hides what needs others
  setFacts('identity-facts', {
    User: user,
    Store: name,
    Role:
      role === 'manager'
        ? 'Manager: all plants of the store'
        : 'Member: your own plants, and those shared with you',
    Rights: `${rightsText(scopes)} (${scopes.join(', ')})`,
    'Valid until': expiresAt === undefined ? 'It does not expire' : formatTime(expiresAt),
    Token: id,
  });
}
