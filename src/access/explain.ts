import type { Storage } from '../storage.ts';
import { everyone, operatorOf, type Role, type ShareAccess } from './access.ts';
import type { FoundUser } from './user-storage.ts';

/** Why a user can access a plant (the first three), or why not. */
export const rules = [
  'owner',
  'manager',
  'share',
  'share-for-reading',
  'share-not-in-effect',
  'no-access',
  'no-plant',
] as const;
export type Rule = (typeof rules)[number];

/** A user and a plant. Users are given by name. */
export interface Question {
  user: string;
  role: Role;
  /** Undefined if there is no such plant. */
  owner: string | undefined;
  /** What the owner shares with the user; undefined if no share is in effect. */
  share: ShareAccess | undefined;
  /** Whether the owner shares, but without effect, because the user receives too many older shares. */
  isOverLimit: boolean;
}

/** Whether a user can read or write a plant, and which rule decides that. */
export interface Decision {
  allowed: boolean;
  rule: Rule;
}

/** What `callerOf` (access.ts) decides about a plant, with the reason: the first rule that applies. */
export function ruleFor(
  { user, role, owner, share, isOverLimit }: Question,
  operation: ShareAccess,
): Decision & { reason: string } {
  const can = (rule: Rule, reason: string) => ({ allowed: true, rule, reason });
  const cannot = (rule: Rule, reason: string) => ({ allowed: false, rule, reason });
  if (owner === undefined) return cannot('no-plant', 'the store has no such plant');
  if (owner === user) return can('owner', `${user} owns it`);
  if (role === 'manager') return can('manager', `${user} is a manager of the store`);
  const shares = `${owner} shares with ${user}`;
  if (isOverLimit) {
    const reason = `${shares}, but ${user} already has the maximum number of shares`;
    return cannot('share-not-in-effect', reason);
  }
  if (share === undefined) {
    return cannot('no-access', `${owner} owns it and does not share with ${user}`);
  }
  if (share === 'write' || operation === 'read') return can('share', `${shares} (${share})`);
  return cannot('share-for-reading', `${shares} only for reading`);
}

/** What the user can do with the plant. */
export function decide(question: Question): Record<ShareAccess, Decision> {
  const decideFor = (operation: ShareAccess): Decision => {
    const { allowed, rule } = ruleFor(question, operation);
    return { allowed, rule };
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
