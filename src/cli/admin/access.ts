import type { Command } from '@commander-js/extra-typings';
import {
  operatorOf,
  stateOf,
  type GrantState,
  type Role,
  type Scope,
  type ShareAccess,
} from '../../access/access.ts';
import { inStore, parseId, parseName } from '../options.ts';
import { tableOf } from '../terminal.ts';
import { databaseCommand, findUser, inDatabase } from './command.ts';
import { allTokens } from './tokens.ts';

export function addAccessCommand(plantStore: Command): void {
  databaseCommand(plantStore, 'access', ['plant-store access bob 42'])
    .description('explain whether a user can read and write a plant, and with which tokens')
    .argument('<user>', 'name of the user', parseName)
    .argument('<id>', 'id of the plant', parseId)
    .addOption(inStore())
    .action(
      inDatabase(async (storage, user, id, options) => {
        const { store, user: number, role } = await findUser(storage, options.store, user);
        const plant = await storage.plants.find(operatorOf(store, 'all'), id);
        const owner = plant && (await storage.users.namesOf(store, [plant.owner])).get(plant.owner);
        const { received } = await storage.shares.of(store, user);
        const share = received.find((each) => each.owner === owner)?.access;
        const given = owner === undefined ? [] : (await storage.shares.of(store, owner)).given;
        const isOverLimit = share === undefined && given.some((each) => each.user === user);
        const question: Question = { user, role, owner, share, isOverLimit };
        const nowMs = Date.now();
        const records = await allTokens(storage, store, number);
        const tokens = records.map((token) => {
          const shown = { id: token.id, state: stateOf(token, nowMs), scopes: token.scopes };
          return { ...shown, ...decide(question, shown) };
        });
        const value = { store: options.store, user, plant: id, owner, ...decide(question), tokens };
        const sentences = (['read', 'write'] as const).map((operation) => {
          const { allowed, reason } = ruleFor(question, operation);
          return `${user} ${allowed ? 'can' : 'cannot'} ${operation} plant ${id}: ${reason}.`;
        });
        const rows = tokens.map(({ id: token, read, write, ...others }) => {
          return { token, read: yesOrNo(read), write: yesOrNo(write), ...others };
        });
        const table = tableOf(['token', 'read', 'write', 'state', 'scopes'], rows);
        const none = `${user} has no tokens.`;
        return { value, text: [...sentences, rows.length === 0 ? none : table].join('\n') };
      }),
    );
}

/** A user and a plant. Users are given by name. */
interface Question {
  user: string;
  role: Role;
  /** Undefined if there is no such plant. */
  owner: string | undefined;
  /** What the owner shares with the user; undefined if no share is in effect. */
  share: ShareAccess | undefined;
  /** Whether the owner shares, but without effect, because the user receives too many older shares. */
  isOverLimit: boolean;
}

interface Decision {
  allowed: boolean;
  rule: string;
}

/** What `callerOf` (access.ts) decides about a plant, with the reason: the first rule that applies. */
function ruleFor(
  { user, role, owner, share, isOverLimit }: Question,
  operation: ShareAccess,
): Decision & { reason: string } {
  const can = (rule: string, reason: string) => ({ allowed: true, rule, reason });
  const cannot = (rule: string, reason: string) => ({ allowed: false, rule, reason });
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

/** What the user can do, at all or with one of their tokens. */
function decide(
  question: Question,
  token?: { state: GrantState; scopes: readonly Scope[] },
): Record<ShareAccess, Decision> {
  const decideFor = (operation: ShareAccess): Decision => {
    const { allowed, rule } = ruleFor(question, operation);
    if (!allowed || token === undefined) return { allowed, rule };
    if (token.state !== 'active') return { allowed: false, rule: 'ended' };
    if (!token.scopes.includes(`plants:${operation}`)) return { allowed: false, rule: 'scope' };
    return { allowed, rule };
  };
  return { read: decideFor('read'), write: decideFor('write') };
}

/** Names the rule if the token is the reason. If the user is, the sentences above have the rule. */
function yesOrNo({ allowed, rule }: Decision): string {
  if (allowed) return 'yes';
  return rule === 'scope' || rule === 'ended' ? `no: ${rule}` : 'no';
}
