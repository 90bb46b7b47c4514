/**
 * The users of the store, of whom only managers get a list. To others, the service does not reveal who is a user.
 */
import type { User } from '../../client/client.ts';
import { isUser as isUserOf } from '../../client/is-user.ts';
import { can, info, store } from '../session/session.ts';
import { byId, element, sentence } from '../shared/dom.ts';
import type { Form } from '../shared/form.ts';

/** The service counts the plants of each. More names are of no use in a field. */
const maxOffered = 200;

function managesUsers(): boolean {
  return info?.role === 'manager' && can('users:write');
}

/** Lists the first users of the store. */
export async function firstUsers(max: number): Promise<User[]> {
  const users: User[] = [];
  for await (const user of store.listUsers({ pageSize: max })) {
    users.push(user);
    if (users.length === max) break;
  }
  return users;
}

/** Offers the users in the fields for one. */
export async function offerUsers(): Promise<void> {
  if (!managesUsers()) return;
  const others = (await firstUsers(maxOffered)).filter(({ user }) => user !== info?.user);
  const options = others.map(({ user }) => element('option', { value: user }));
  byId('known-users', HTMLDataListElement).replaceChildren(...options);
}

/** Whether there is such a user; undefined if this user may not know. */
export async function isUser(name: string): Promise<boolean | undefined> {
  return managesUsers() ? isUserOf(store, name) : undefined;
}

/** Shows that the client has refused a name, because no URL can contain it. Throws other errors. */
export function refuseName(form: Form, user: string, error: unknown): void {
  if (!(error instanceof RangeError)) throw error;
  form.fault('user', sentence`The page cannot use the name “${user}”.`);
}
