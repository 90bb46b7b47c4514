import type { Command } from '@commander-js/extra-typings';
import { stateOf, type GrantState, type Scope, type ShareAccess } from '../../access/access.ts';
import { decide, questionAbout, ruleFor, type Decision, type Rule } from '../../access/explain.ts';
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
        const found = await findUser(storage, options.store, user);
        const question = await questionAbout(storage, found, user, id);
        const nowMs = Date.now();
        const records = await allTokens(storage, found.store, found.user);
        const tokens = records.map((token) => {
          const shown = { id: token.id, state: stateOf(token, nowMs), scopes: token.scopes };
          return { ...shown, ...withToken(decide(question), shown) };
        });
        const { owner } = question;
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

/** For `scope` and `ended`, the user has access, but not the token. */
type TokenDecision = Omit<Decision, 'rule'> & { rule: Rule | 'scope' | 'ended' };

/** What the user can do with one of their tokens. */
function withToken(
  { read, write }: Record<ShareAccess, Decision>,
  { state, scopes }: { state: GrantState; scopes: readonly Scope[] },
): Record<ShareAccess, TokenDecision> {
  const decideFor = (operation: ShareAccess, ofUser: Decision): TokenDecision => {
    if (!ofUser.allowed) return ofUser;
    if (state !== 'active') return { allowed: false, rule: 'ended' };
    return scopes.includes(`plants:${operation}`) ? ofUser : { allowed: false, rule: 'scope' };
  };
  return { read: decideFor('read', read), write: decideFor('write', write) };
}

/** Names the rule if the token is the reason. If the user is, the sentences above have the rule. */
function yesOrNo({ allowed, rule }: TokenDecision): string {
  if (allowed) return 'yes';
  return rule === 'scope' || rule === 'ended' ? `no: ${rule}` : 'no';
}
