/**
 * Follows an invitation. Opening its link changes nothing, because scanners of mail open links too. The person joins with a
 * press, which spends the invitation. If the response is lost, the page gets the same token again, also after a reload.
 */
import type { NewToken, Token } from '../../client/client.ts';
import { byId, sentence, setText, type Text } from '../shared/dom.ts';
import { Form, newKey } from '../shared/form.ts';
import { rightsText } from '../shared/format.ts';
import { recall, remember, type Keeper } from '../shared/remember.ts';
import { connect, serviceUrl } from './connection.ts';
import { deviceTerms, keepToken, tokenKey } from './device.ts';

/** What the person has agreed to in this tab. */
interface Pending {
  /** The id of the invitation. */
  invitation: string;
  keeper: Keeper;
  terms: NewToken;
  idempotencyKey: string;
}

const pendingKey = `plant-store.join ${serviceUrl.pathname}`;
const stayBox = byId('join-stay', HTMLInputElement);
let join: (keeper: Keeper) => Promise<void> = async () => {};
const form = new Form('join', () => join(stayBox.checked ? 'device' : 'tab'));

/** Asks on a card of the page. `agreed` is called with who keeps the token. */
export function showJoin(granted: Token, agreed: typeof join): void {
  form.clear();
  join = agreed;
  stayBox.checked = false;
  setText('join-title', titleOf(granted));
  setText(
    'join-lead',
    `You were invited as a ${granted.role}, who can ${rightsText(granted.scopes)}.`,
  );
  setText(
    'join-who',
    sentence`If you are not “${granted.user}”, close this page: it has not used the invitation.`,
  );
}

export function titleOf({ store, user }: Token): Text {
  return sentence`Join the store “${store}” as “${user}”`;
}

/** Whether the person has agreed in this tab, but the token has not arrived yet. */
export function hasBegun({ id }: Token): boolean {
  return pendingOf(id) !== undefined;
}

/** Spends an invitation. Resolves to the token that it creates, which is kept already. */
export async function redeem(
  invitation: string,
  { id, renewableUntil }: Token,
  keeper: Keeper,
): Promise<string> {
  const pending = pendingOf(id) ?? {
    invitation: id,
    keeper,
    terms: deviceTerms(renewableUntil),
    idempotencyKey: newKey(),
  };
  remember(pendingKey, JSON.stringify(pending));
  try {
    const { terms, idempotencyKey } = pending;
    const { token } = await connect(invitation).createToken(terms, { idempotencyKey });
    if (pending.keeper === 'device') void keepToken(token);
    else remember(tokenKey, token);
    return token;
  } finally {
    remember(pendingKey, undefined); // the call has been repeated for as long as it could succeed
  }
}

function pendingOf(id: string): Pending | undefined {
  const pending: Pending | null = JSON.parse(recall(pendingKey) ?? 'null');
  return pending?.invitation === id ? pending : undefined;
}
