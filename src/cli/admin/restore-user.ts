/**
 * Puts the plants of a user back as they were at a time, while the service runs.
 */
import type { Command } from '@commander-js/extra-typings';
import { operatorOf } from '../../access/access.ts';
import { isPossible, putBackAll, shownOf, type PutBack } from '../../access/put-back.ts';
import { differencesSince, positionBefore } from '../../log/differences.ts';
import { textValues, type Texts } from '../../plants/fields.ts';
import type { Storage } from '../../storage.ts';
import { inStore, localTime, parseName, parsePastMs } from '../options.ts';
import { agree, failWith, printError, type Result } from '../output.ts';
import { tableOf } from '../terminal.ts';
import { databaseCommand, findUser, inDatabase } from './command.ts';

/** Plants that are shown before the question. --json prints all of them. */
const maxShown = 20;

export function addRestoreCommand(user: Command): void {
  databaseCommand(user, 'restore', [
    'plant-store user restore alice --since 2h',
    'plant-store user restore alice --since 2026-11-20T10:00 --yes',
    'plant-store user restore alice --since 2026-11-20T10:00+01:00 --json',
  ])
    .description("put a user's plants back as they were at a time; the service can run meanwhile")
    .argument('<user>', 'name of the user', parseName)
    .addOption(inStore('store of the user'))
    .requiredOption(
      '--since <time>',
      'time to return to, such as 2h (ago) or 2026-11-20T10:00, which is local without an offset',
      parsePastMs,
    )
    .option(
      '--yes',
      'put the plants back without asking; without it, --json only prints what would change',
      false,
    )
    .action(inDatabase(restore));
}

async function restore(
  storage: Storage,
  name: string,
  { store, since, yes, json }: { store: string; since: number; yes: boolean; json?: true },
): Promise<Result> {
  const user = await findUser(storage, store, name);
  const from = await positionBefore(storage.log, store, since);
  const differences = await differencesSince(storage.log, user, since, from);
  const time = localTime(since);
  const goal = `the plants of ${name} in store ${store} as they were at ${time}`;
  const summaryOf = (plants: PutBack[]) => {
    const [possible = [], failed = []] = [true, false].map((wanted) =>
      plants.filter((plant) => isPossible(plant) === wanted),
    );
    if (yes && failed.length > 0) failWith(1);
    const failures = failed.length === 0 ? '' : `\nNot put back:\n${tableFor(failed)}`;
    const value = { store, user: name, since: time, plants };
    const count = possible.length;
    const groups = [...Map.groupBy(possible, ({ outcome }) => outcome)];
    const counts = groups.map(([outcome, { length }]) => `${length} ${outcome}`).join(', ');
    return { value, failures, count, counts, changed: count === 1 ? '1 plant' : `${count} plants` };
  };

  const plan = summaryOf(differences.map(shownOf));
  if (plan.count === 0 || (json && !yes)) {
    return { value: plan.value, text: `Nothing to change for ${goal}.${plan.failures}` };
  }
  if (!yes) printError(`To put back ${goal}:\n${tableFor(plan.value.plants)}\n${plan.counts}.`);
  await agree(yes, `Change ${plan.changed}?`, `change ${plan.changed}`);
  const undoSince = localTime(Date.now());
  const operator = { ...operatorOf(user.store, 'all'), write: 'all' as const };
  const done = await putBackAll(storage, operator, differences);
  const { value, failures, changed } = summaryOf(done);
  const text =
    `Put back ${goal}: changed ${changed}.${failures}\n` +
    `To undo this, run the command again with --since ${undoSince}`;
  return { value: { ...value, undoSince }, text };
}

/** Deletions come first, so that nobody overlooks one. */
function tableFor(plants: readonly PutBack[]): string {
  const shown = (texts?: Texts) => (texts === undefined ? '' : textValues(texts).join(' · '));
  const isOther = ({ outcome }: PutBack) => Number(outcome !== 'deleted');
  const sorted = plants.toSorted((one, other) => isOther(one) - isOther(other));
  const rows = sorted.slice(0, maxShown).map(({ id, outcome, now, before }) => {
    return { id, outcome: outcome.replaceAll('-', ' '), now: shown(now), before: shown(before) };
  });
  const more = plants.length - rows.length;
  const rest = more === 0 ? '' : `\nand ${more} more, which --json shows`;
  return tableOf(['id', 'outcome', 'now', 'before'], rows) + rest;
}
