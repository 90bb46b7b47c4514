import type { Command } from '@commander-js/extra-typings';
import {
  everyone,
  operatorOf,
  ruleFor,
  stateOf,
  type GrantState,
  type Question,
  type Rule,
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
        const isShared = async (receiver: string) =>
          owner !== undefined &&
          (await storage.shares.find(store, { owner, user: receiver })) !== undefined;
        const isOverLimit =
          share === undefined && ((await isShared(user)) || (await isShared(everyone)));
        const question: Question = { user, role, owner, share, isOverLimit };
        const nowMs = Date.now();
        const records = await allTokens(storage, { owner: { store, user: number } });
        const tokens = records.map((token) => {
          const shown = { id: token.id, state: stateOf(token, nowMs), scopes: token.scopes };
          return { ...shown, ...decide(question, shown) };
        });
        const value = { store: options.store, user, plant: id, owner, ...decide(question), tokens };
        const sentences = (['read', 'write'] as const).map((operation) => {
          const { allowed } = value[operation];
          const reason = reasonFor(ruleFor(question, operation), question);
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

/** For `scope` and `ended`, the user has access, but not the token. */
interface Decision {
  allowed: boolean;
  rule: Rule | 'scope' | 'ended';
}

/** What the user can do, at all or with one of their tokens. */
function decide(
  question: Question,
  token?: { state: GrantState; scopes: readonly Scope[] },
): Record<ShareAccess, Decision> {
  const decideFor = (operation: ShareAccess): Decision => {
    const rule = ruleFor(question, operation);
    if (!['owner', 'manager', 'share'].includes(rule)) return { allowed: false, rule };
    if (token === undefined) return { allowed: true, rule };
    if (token.state !== 'active') return { allowed: false, rule: 'ended' };
    if (!token.scopes.includes(`plants:${operation}`)) return { allowed: false, rule: 'scope' };
    return { allowed: true, rule };
  };
  return { read: decideFor('read'), write: decideFor('write') };
}

function reasonFor(rule: Rule, { user, owner = '', share = 'read' }: Question): string {
  const reasons: Record<Rule, string> = {
    owner: `${user} owns it`,
    manager: `${user} is a manager of the store`,
    share: `${owner} shares with ${user} (${share})`,
    'share-for-reading': `${owner} shares with ${user} only for reading`,
    'share-not-in-effect': `${owner} shares with ${user}, but ${user} already has the maximum number of shares`,
    'no-access': `${owner} owns it and does not share with ${user}`,
    'no-plant': 'the store has no such plant',
  };
  return reasons[rule];
}

/** Names the rule if the token is the reason. If the user is, the sentences above have the rule. */
function yesOrNo({ allowed, rule }: Decision): string {
  if (allowed) return 'yes';
  return rule === 'scope' || rule === 'ended' ? `no: ${rule}` : 'no';
}
