import type { Storage } from '../storage.ts';
import {
  everyone,
  operatorOf,
  ruleFor,
  type Question,
  type Rule,
  type ShareAccess,
} from './access.ts';
import type { FoundUser } from './user-storage.ts';

/** Whether a user can read or write a plant, and why. */
export interface Decision {
  allowed: boolean;
  rule: Rule;
}

const granting: readonly Rule[] = ['owner', 'manager', 'share'];

export function decide(question: Question): Record<ShareAccess, Decision> {
  const decideFor = (operation: ShareAccess): Decision => {
    const rule = ruleFor(question, operation);
    return { allowed: granting.includes(rule), rule };
  };
  return { read: decideFor('read'), write: decideFor('write') };
}

/** What decides about a plant and a user who exists. */
export async function questionAbout(
  { plants, shares, users }: Storage,
  { store, role }: FoundUser,
  user: string,
  plant: number,
): Promise<Question> {
  const found = await plants.find(operatorOf(store, 'all'), plant);
  const owner = found && (await users.namesOf(store, [found.owner])).get(found.owner);
  const { received } = await shares.of(store, user);
  const share = received.find((each) => each.owner === owner)?.access;
  const isShared = async (receiver: string) =>
    owner !== undefined && (await shares.find(store, { owner, user: receiver })) !== undefined;
  const isOverLimit = share === undefined && ((await isShared(user)) || (await isShared(everyone)));
  return { user, role: role ?? 'member', owner, share, isOverLimit };
}
