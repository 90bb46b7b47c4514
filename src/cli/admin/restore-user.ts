/**
 * Puts the plants of a user back as they were at a time, while the service runs.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Command } from '@commander-js/extra-typings';
import { batchPauseMs, batchRows } from '../../access/remove-user.ts';
import { plantEvents } from '../../log/change-log.ts';
import {
  differencesSince,
  type Difference,
  type Differences,
  type PutBackOutcome,
} from '../../log/differences.ts';
import { textsOf, textValues, type Texts } from '../../plants/fields.ts';
import { UsageError } from '../../refusal.ts';
import type { Storage } from '../../storage.ts';
import { inStore, localTime, parseName, parsePastMs } from '../options.ts';
import { confirm, printError, type Result } from '../output.ts';
import { tableOf } from '../terminal.ts';
import { databaseCommand, findUser, inDatabase } from './command.ts';
import { positionBefore } from './log.ts';

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

interface RestoreOptions {
  store: string;
  since: number;
  yes: boolean;
  json?: true | undefined;
}

async function restore(
  storage: Storage,
  name: string,
  { store, since, yes, json }: RestoreOptions,
): Promise<Result> {
  const user = await findUser(storage, store, name);
  const from = await positionBefore(storage.log, store, since);
  const differences = await differencesSince(storage.log, user, since, from);
  const plan = await putBack(storage, user.store, differences, true);
  const count = plan.filter(isPossible).length;
  const time = localTime(since);
  const goal = `the plants of ${name} in store ${store} as they were at ${time}`;
  const value = { store, user: name, since: time, plants: plan };
  if (count === 0 || (json && !yes)) {
    return { value, text: `Nothing to change for ${goal}.${failuresOf(plan)}` };
  }
  if (!yes) {
    printError(`To put back ${goal}:\n${tableFor(plan)}`);
    if (!(await confirm(`Change ${plantsOf(count)}?`, 'Nothing was changed.'))) {
      const advice = `Pass --yes to change ${plantsOf(count)}.`;
      throw new UsageError(
        `Nothing was changed, because there is no terminal to ask on. ${advice}`,
      );
    }
  }
  const undoSince = localTime(Date.now());
  const plants = await putBack(storage, user.store, differences, false);
  const changed = plantsOf(plants.filter(isPossible).length);
  const text =
    `Put back ${goal}: changed ${changed}.${failuresOf(plants)}\n` +
    `To undo this, run the command again with --since ${undoSince}`;
  return { value: { ...value, undoSince, plants }, text };
}

type PutBack = Pick<Difference, 'id'> & {
  outcome: PutBackOutcome;
  now: Texts | undefined;
  before: Texts | undefined;
};

async function putBack(
  { users }: Storage,
  store: number,
  { since, plants }: Differences,
  isTrial: boolean,
): Promise<PutBack[]> {
  const all: PutBack[] = [];
  for (let at = 0; at < plants.length; at += batchRows) {
    if (at > 0) await pause(batchPauseMs);
    const batch = plants.slice(at, at + batchRows);
    const outcomes = await users.putBack(store, { since, plants: batch }, isTrial);
    for (const [place, outcome] of outcomes.entries()) {
      const { id = 0, now, before } = batch[place] ?? {};
      all.push({ id, outcome, now: now && textsOf(now), before: before && textsOf(before) });
    }
  }
  return all;
}

function isPossible({ outcome }: PutBack): boolean {
  return plantEvents.some((event) => event === outcome);
}

function failuresOf(plants: readonly PutBack[]): string {
  const failed = plants.filter((plant) => !isPossible(plant));
  return failed.length === 0 ? '' : `\nNot put back:\n${tableFor(failed)}`;
}

function tableFor(plants: readonly PutBack[]): string {
  const shown = (texts?: Texts) => (texts === undefined ? '' : textValues(texts).join(' · '));
  const rows = plants.slice(0, maxShown).map(({ id, outcome, now, before }) => {
    return { id, outcome: outcome.replaceAll('-', ' '), now: shown(now), before: shown(before) };
  });
  const more = plants.length - rows.length;
  const rest = more === 0 ? '' : `\nand ${more} more, which --json shows`;
  return tableOf(['id', 'outcome', 'now', 'before'], rows) + rest;
}

function plantsOf(count: number): string {
  return count === 1 ? '1 plant' : `${count} plants`;
}
