/**
 * Who uses the page: signs in by a link or a pasted token, shows what the token grants, and asks for another one when
 * it stops working. The token is in the session storage of this tab, and nowhere else.
 */
import { PlantStoreError, type Token } from '../../client/client.ts';
import { confirm } from '../shared/confirm.ts';
import { ownerOf, serviceUrl, type Connection } from './connection.ts';
import { byId, onPress, setFacts, setFault, setText, show } from '../shared/dom.ts';
import { formatTime, rightsText } from '../shared/format.ts';
import { recall, remember } from '../shared/remember.ts';
import { forgetSignOn, SignOn, SignOnFailed } from './sign-on.ts';
import { toast } from '../shared/toast.ts';
import { findToken, isOfService, Malformed } from './token.ts';

/** Other services can have another path of the same origin. */
const key = `plant-store.token ${serviceUrl.pathname}`;

export class Session {
  readonly #connection: Connection;
  readonly #onOpen: (info: Token) => void;
  readonly #onClose: () => void;
  readonly #signOn = SignOn.ofPage();
  #info: Token | undefined;
  #renewed = () => {};
  /** The number of tokens that were checked. Only the last one counts. */
  #checks = 0;

  /**
   * `onOpen` is called when a store opens, but not when another token continues with the same access. `onClose` is
   * called when the user signs out.
   */
  constructor(
    connection: Connection,
    { onOpen, onClose }: { onOpen: (info: Token) => void; onClose: () => void },
  ) {
    this.#connection = connection;
    this.#onOpen = onOpen;
    this.#onClose = onClose;
    onToken('sign-in', (token) => this.#open(token));
    onToken('renew', (token) => this.#continue(token));
    onPress('renew-later', () => byId('renew', HTMLDialogElement).close());
    onPress('sign-out', () => this.signOut());
    addEventListener('hashchange', () => void this.start());
    if (this.#signOn !== undefined) this.#offer(this.#signOn);
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

  /** Opens the store of the link, of the identity provider or of this tab, or asks for a token. */
  async start(): Promise<void> {
    const link = tokenOfAddress();
    if (link === undefined && this.#info !== undefined) return;
    show('sign-in', false);
    show('opening', this.#info === undefined);
    try {
      if (this.#info === undefined) await this.#openAgain(link);
      show('opening', this.#info === undefined);
      if (link !== undefined) await this.#open(findToken(link), { isLink: true });
    } catch (error) {
      if (error instanceof SignOnFailed) showSignOnFault('sign-in', error);
      else if (this.#info === undefined) showFault('sign-in', error);
      else toast(`The store of the link was not opened. ${faultOf(error)}`);
    } finally {
      if (link !== undefined) removeFromAddress(link);
      show('opening', false);
      show('sign-in', this.#info === undefined);
    }
  }

  /** Opens the store of a sign-in that was just completed, or of this tab. If it fails, the link counts. */
  async #openAgain(link: string | undefined): Promise<void> {
    try {
      const token = await this.#tokenOfTab();
      if (token === undefined || token === link) return;
      await this.#open(token).catch(async (error: unknown) => {
        const isRefused = error instanceof PlantStoreError && error.status === 401;
        const another = isRefused ? await this.#signOn?.refresh() : undefined;
        if (another === undefined) throw error;
        await this.#open(another);
      });
    } catch (error) {
      const isExpected = error instanceof PlantStoreError || error instanceof SignOnFailed;
      if (link === undefined || !isExpected) throw error;
    }
  }

  async #tokenOfTab(): Promise<string | undefined> {
    const stored = recall('sessionStorage', key);
    try {
      return (await this.#signOn?.finish()) ?? stored;
    } catch (error) {
      if (stored === undefined || !(error instanceof SignOnFailed)) throw error;
      toast(error.message); // an address that anybody can make up must not sign the user out
      return stored;
    }
  }

  /** Gets another token without the user. Resolves to false if that is not possible. */
  async refresh(): Promise<boolean> {
    const token = await this.#signOn?.refresh();
    if (token === undefined) return false;
    try {
      await this.#continue(token);
      return true;
    } catch (error) {
      if (error instanceof PlantStoreError) return false;
      throw error;
    }
  }

  /** Asks for another token while the page stays as it is. Resolves when there is one. */
  async renew(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#renewed = resolve;
    byId('renew', HTMLDialogElement).showModal();
    await promise;
  }

  async #open(token: string, { isLink = false } = {}): Promise<void> {
    const info = await this.#check(token);
    if (info === undefined || (isLink && !(await this.#agreesTo(info)))) return;
    this.#use(token, info);
    show('sign-in', false);
    this.#onOpen(info);
  }

  /** Whoever follows a link may not know that it is for another user. */
  async #agreesTo(info: Token): Promise<boolean> {
    const before = this.#info;
    if (before === undefined || ownerOf(before) === ownerOf(info)) return true;
    return confirm({
      title: `Open the store “${info.store}” as “${info.user}”?`,
      text: `The link is for another user. You are “${before.user}” in the store “${before.store}”.`,
      action: 'Open',
    });
  }

  async #continue(token: string): Promise<void> {
    const before = this.#info;
    const info = await this.#check(token);
    if (info === undefined) return;
    this.#use(token, info);
    if (before === undefined || accessOf(info) !== accessOf(before)) this.#onOpen(info);
  }

  /** Undefined if another token was entered meanwhile. */
  async #check(token: string): Promise<Token | undefined> {
    const check = ++this.#checks;
    const isLast = () => check === this.#checks;
    try {
      const info = await this.#connection.check(token);
      return isLast() ? info : undefined;
    } catch (error) {
      if (isLast()) throw error;
      return undefined;
    }
  }

  #use(token: string, info: Token): void {
    this.#info = info;
    this.#connection.use(token, info);
    remember('sessionStorage', key, token);
    if (isOfService(token)) forgetSignOn(); // the user has changed to a token of the service
    showIdentity(info);
    // A link can come while the page asks for another token.
    byId('renew', HTMLDialogElement).close();
    this.#renewed();
  }

  /** Leaves nothing of the user in this tab. */
  signOut(): void {
    this.#onClose();
    this.#checks++; // a token that is being checked is not used any more
    this.#signOn?.end();
    remember('sessionStorage', key, undefined);
    forgetSignOn();
    location.replace(serviceUrl); // loads the page again, so that nothing of the store stays in memory
  }
}

/** Tokens with the same access are the same for the page. */
function accessOf({ store, user, scopes }: Token): string {
  return JSON.stringify([store, user, scopes]);
}

/** The token of a link. */
function tokenOfAddress(): string | undefined {
  return new URLSearchParams(location.hash.slice(1)).get('token') ?? undefined;
}

/** Until the token of a link is stored or refused, a reload needs it. Another link may have come meanwhile. */
function removeFromAddress(link: string): void {
  if (tokenOfAddress() !== link) return;
  history.replaceState(null, '', location.pathname + location.search);
}

/** Handles a form with a token. Faults appear beside the field, and the field keeps what was typed. */
function onToken(form: 'sign-in' | 'renew', handle: (token: string) => Promise<void>): void {
  const field = byId(`${form}-token`, HTMLInputElement);
  const submitted = async () => {
    setFault(field, '');
    try {
      await handle(findToken(field.value));
      field.value = '';
    } catch (error) {
      showFault(form, error);
      field.focus();
    }
  };
  byId(`${form}-form`, HTMLFormElement).addEventListener('submit', (event) => {
    event.preventDefault();
    void submitted();
  });
}

function showFault(form: 'sign-in' | 'renew', error: unknown): void {
  setFault(byId(`${form}-token`, HTMLInputElement), faultOf(error));
}

function showSignOnFault(place: string, error: unknown): void {
  if (!(error instanceof SignOnFailed)) throw error;
  setText(`${place}-on-fault`, error.message);
}

function faultOf(error: unknown): string {
  if (error instanceof Malformed) return error.message;
  if (!(error instanceof PlantStoreError)) throw error;
  if (error.status !== 401) return error.detail;
  return 'The service does not accept this token: it has expired, was revoked, or is for another service.';
}

function showIdentity({ user, store, role, scopes, expiresAt, id }: Token): void {
  const canWrite = scopes.includes('plants:write');
  document.title = `${store} · Plant Store`;
  setText('store-name', store);
  setText('who-user', user);
  show('store-name');
  show('who');
  show('who-badge', !canWrite);
  setFacts('identity-facts', {
    User: user,
    Store: store,
    Role:
      role === 'manager'
        ? 'Manager: all plants of the store'
        : 'Member: your own plants, and those shared with you',
    Rights: `${rightsText(scopes)} (${scopes.join(', ')})`,
    'Valid until': expiresAt === undefined ? 'It does not expire' : formatTime(new Date(expiresAt)),
    Token: id,
  });
}
