/**
 * Who uses the page: signs in by a link or a pasted token, shows what the token grants, and asks for another one when
 * it stops working. The token is in the session storage of this tab, and nowhere else.
 */
import { PlantStoreError, type Token } from '../../client/client.ts';
import { printable } from '../../client/printable.ts';
import { confirm, type Question } from '../shared/confirm.ts';
import { byId, hashParameter, onPress, sentence, setFacts, setText, show } from '../shared/dom.ts';
import { Form } from '../shared/form.ts';
import { formatTime, rightsText } from '../shared/format.ts';
import { recall, remember } from '../shared/remember.ts';
import { toast } from '../shared/toast.ts';
import { Connection, serviceUrl, showTokenBanner } from './connection.ts';
import { forgetSignOn, SignOn, SignOnFailed } from './sign-on.ts';
import { findToken, isOfService, Malformed } from './token.ts';

/** Other services can have another path of the same origin. */
const key = `plant-store.token ${serviceUrl.pathname}`;

export class Session {
  readonly connection = new Connection(() => this.#renew());
  readonly #onOpen: (info: Token) => void;
  readonly #onLeave: () => void;
  readonly #signOn = SignOn.ofPage();
  readonly #signIn = this.#acceptToken('sign-in');
  #renewed = () => {};
  /** Ends the check of a token when another one is entered. */
  #check = new AbortController();

  /** `onOpen` is called when a store opens, or the scopes change; `onLeave` before the page is loaded again. */
  constructor(onOpen: (info: Token) => void, onLeave: () => void) {
    this.#onOpen = onOpen;
    this.#onLeave = onLeave;
    this.#acceptToken('renew');
    onPress('renew-later', () => byId('renew', HTMLDialogElement).close());
    onPress('sign-out', async () => this.signOut());
    addEventListener('hashchange', () => void this.start());
    if (this.#signOn !== undefined) this.#offer(this.#signOn);
  }

  /** Handles a form with a token. Faults appear beside the field, and the field keeps what was typed. */
  #acceptToken(name: string): Form {
    const field = byId(`${name}-token`, HTMLInputElement);
    const form = new Form(name, async () => {
      try {
        await this.#enter(findToken(field.value));
        field.value = '';
      } catch (error) {
        form.fault('token', faultOf(error));
      }
    });
    return form;
  }

  /** Shows the buttons that lead to the identity provider. */
  #offer(signOn: SignOn): void {
    setText('sign-in-start', `Sign in with ${signOn.host}`);
    setText('renew-start', `Sign in again with ${signOn.host}`);
    setText('sign-in-lead', 'Or paste an access token, or the link that the service printed.');
    for (const place of ['sign-in', 'renew']) {
      show(`${place}-on`);
      onPress(`${place}-start`, async () => {
        setText(`${place}-on-fault`, '');
        await signOn.start().catch((error: unknown) => showSignOnFault(place, error));
      });
    }
  }

  get #isOpen(): boolean {
    return this.connection.info !== undefined;
  }

  /** Opens the store of the link, of the identity provider or of this tab, or asks for a token. */
  async start(): Promise<void> {
    const link = hashParameter('token');
    if (link === undefined && this.#isOpen) return;
    show('sign-in', false);
    show('opening', !this.#isOpen);
    try {
      if (!this.#isOpen) await this.#openAgain(link);
      show('opening', !this.#isOpen);
      if (link !== undefined) await this.#enter(findToken(link), { isLink: true });
    } catch (error) {
      if (error instanceof SignOnFailed) showSignOnFault('sign-in', error);
      else if (!this.#isOpen) this.#signIn.fault('token', faultOf(error));
      else toast(`The link did not open a store. ${faultOf(error)}`);
    } finally {
      // Until the token of a link is stored or refused, a reload needs it. Another link may have come meanwhile.
      if (link !== undefined && link === hashParameter('token')) {
        history.replaceState(null, '', location.pathname + location.search);
      }
      show('opening', false);
      show('sign-in', !this.#isOpen);
    }
  }

  /** Opens the store of a sign-in that was just completed, or of this tab. If it fails, the link counts. */
  async #openAgain(link: string | undefined): Promise<void> {
    const stored = recall(key);
    const signedOn = await this.#signOn?.finish().catch((error: unknown) => {
      if (!(error instanceof SignOnFailed) || (stored ?? link) === undefined) throw error;
      toast(error.message); // an address that anybody can make up must not sign the user out
      return undefined;
    });
    const token = signedOn ?? stored;
    if (token === undefined || token === link) return;
    await this.#enter(token).catch(async (error: unknown) => {
      if (!(error instanceof PlantStoreError)) throw error;
      if (error.status === 401 && (await this.#refresh())) return;
      if (link === undefined) throw error;
    });
  }

  /** Gets another token without the user. Resolves to false if that is not possible. */
  async #refresh(): Promise<boolean> {
    const token = await this.#signOn?.refresh();
    if (token === undefined) return false;
    try {
      await this.#enter(token);
      return true;
    } catch (error) {
      if (error instanceof PlantStoreError) return false;
      throw error;
    }
  }

  /** Asks for another token while the page stays as it is, unless it can get one without the user. */
  async #renew(): Promise<void> {
    if (await this.#refresh()) return;
    showTokenBanner();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#renewed = resolve;
    byId('renew', HTMLDialogElement).showModal();
    await promise;
  }

  /** Checks a token, and uses it from now on. */
  async #enter(token: string, { isLink = false } = {}): Promise<void> {
    this.#check.abort();
    const { signal } = (this.#check = new AbortController());
    const info = await this.connection.connect(token).token({ signal });
    const before = this.connection.info;
    if (before && (before.store !== info.store || before.user !== info.user)) {
      if (isLink && !(await confirm(questionAbout(before, info)))) return;
      return this.#leave(token);
    }
    this.connection.use(token, info);
    remember(key, token);
    if (isOfService(token)) forgetSignOn(); // the user has changed to a token of the service
    showIdentity(info);
    show('sign-in', false);
    byId('renew', HTMLDialogElement).close(); // a link can come while the page asks for another token
    this.#renewed();
    if (before?.scopes.join() !== info.scopes.join()) this.#onOpen(info);
  }

  async signOut(): Promise<never> {
    history.replaceState(null, '', serviceUrl);
    return this.#leave(undefined);
  }

  /**
   * Loads the page again, with the token of another user or without one. So nothing of this user stays in memory, and
   * nothing that they have begun happens in the name of the next one.
   */
  async #leave(next: string | undefined): Promise<never> {
    this.#onLeave();
    this.#check.abort();
    this.#signOn?.end();
    remember(key, next);
    forgetSignOn();
    location.reload();
    return new Promise(() => {}); // whoever waits for it ends with the page
  }
}

/** Whoever follows a link may not know that it is for another user. */
function questionAbout(before: Token, { store, user }: Token): Question {
  return {
    title: sentence`Open the store “${store}” as “${user}”?`,
    text: sentence`The link is for another user. You are signed in as “${before.user}” in the store “${before.store}”.`,
    action: 'Open',
  };
}

function showSignOnFault(place: string, error: unknown): void {
  if (!(error instanceof SignOnFailed)) throw error;
  setText(`${place}-on-fault`, error.message);
}

/** What is wrong with a token. Throws other errors. */
function faultOf(error: unknown): string {
  if (error instanceof Malformed) return error.message;
  if (error instanceof PlantStoreError) return error.detail;
  throw error;
}

function showIdentity({ user, store, role, scopes, expiresAt, id }: Token): void {
  document.title = printable(`${store} · Plant Store`);
  setText('store-name', store);
  setText('who-user', user);
  show('store-name');
  show('who');
  show('who-badge', !scopes.includes('plants:write'));
  setFacts('identity-facts', {
    User: user,
    Store: store,
    Role:
      role === 'manager'
        ? 'Manager: all plants of the store'
        : 'Member: your own plants, and those shared with you',
    Rights: `${rightsText(scopes)} (${scopes.join(', ')})`,
    'Valid until': expiresAt === undefined ? 'It does not expire' : formatTime(expiresAt),
    Token: id,
  });
}
