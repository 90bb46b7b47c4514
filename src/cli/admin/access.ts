import {
  decideForToken,
  decideForUser,
  operations,
  operatorOf,
  stateOf,
  type Decision,
  type Operation,
  type Question,
  type Rule,
} from '../../access/access.ts';
import { openStorage } from '../database.ts';
import { findUser } from './names.ts';
import type { InStoreOptions } from '../options.ts';
import { printResult } from '../output.ts';
import { tableOf } from '../table.ts';
import { allTokens } from './token.ts';

/** Prints whether a user can read and write a plant, by which rule, and with which of their tokens. */
export async function explainAccess(
  user: string,
  id: number,
  options: InStoreOptions,
): Promise<void> {
  await using storage = await openStorage(options.database, { create: false });
  const { role, ...identity } = await findUser(storage, options.store, user);
  const { store } = identity;
  const plant = await storage.plants.find(operatorOf(store, 'all'), id);
  const owner = plant && (await storage.users.namesOf(store, [plant.owner])).get(plant.owner);
  const { received } = await storage.shares.of(store, user);
  const share = received.find((each) => each.owner === owner)?.access;
  const given = owner === undefined ? [] : (await storage.shares.of(store, owner)).given;
  const isOverLimit = share === undefined && given.some((each) => each.user === user);
  const question: Question = { user, role, owner, share, isOverLimit };
  const decisions = byOperation((operation) => decideForUser(question, operation));
  const nowMs = Date.now();
  const tokens = (await allTokens(storage, { owner: identity })).map((token) => ({
    id: token.id,
    state: stateOf(token, nowMs),
    scopes: token.scopes,
    ...byOperation((operation) => decideForToken(token, operation, decisions[operation], nowMs)),
  }));
  const value = { store: options.store, user, plant: id, owner, ...decisions, tokens };
  const sentences = operations.map((operation) => {
    const { allowed, rule } = decisions[operation];
    const can = allowed ? 'can' : 'cannot';
    return `${user} ${can} ${operation} plant ${id}: ${reasonFor(rule, question)}.`;
  });
  const rows = tokens.map(({ read, write, ...token }) => [
    token.id,
    yesOrNo(read),
    yesOrNo(write),
    token.state,
    token.scopes.join(),
  ]);
  const table = tableOf(['TOKEN', 'READ', 'WRITE', 'STATE', 'SCOPES'], rows);
  const none = `${user} has no tokens.`;
  printResult(options, value, [...sentences, rows.length === 0 ? none : table].join('\n'));
}

function byOperation(decide: (operation: Operation) => Decision): Record<Operation, Decision> {
  return { read: decide('read'), write: decide('write') };
}

function reasonFor(rule: Rule, { user, owner = '', share = 'read' }: Question): string {
  const reasons: Record<Exclude<Rule, 'scope' | 'ended'>, string> = {
    owner: `${user} owns it`,
    manager: `${user} is a manager of the store`,
    share: `${owner} shares with ${user} (${share})`,
    'share-for-reading': `${owner} shares with ${user} only for reading`,
    'share-not-in-effect': `${owner} shares with ${user}, but ${user} already has the maximum number of shares`,
    'no-access': `${owner} owns it and does not share with ${user}`,
    'no-plant': 'the store has no such plant',
  };
  return rule === 'scope' || rule === 'ended' ? '' : reasons[rule];
}

/** Names the rule if the token is the reason. If the user is, the sentences above have the rule. */
function yesOrNo({ allowed, rule }: Decision): string {
  if (allowed) return 'yes';
  return rule === 'scope' || rule === 'ended' ? `no: ${rule}` : 'no';
}
