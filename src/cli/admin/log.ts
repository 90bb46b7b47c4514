/**
 * The log of changes of a store, for its operator: a table on a terminal, and JSON lines elsewhere.
 */
import type { Command } from '@commander-js/extra-typings';
import {
  keptSince,
  maxPosition,
  type ChangeLog,
  type LoggedChange,
  type LogQuery,
} from '../../log/change-log.ts';
import { eachText, textValues } from '../../plants/fields.ts';
import { openStorage } from '../database.ts';
import { inStore, keepChangesFlag, parseDurationMs, parseId, parseName } from '../options.ts';
import { io, printAll, printError } from '../output.ts';
import { createTable } from '../table.ts';
import { printableJson } from '../terminal.ts';
import { databaseCommand, findStore } from './command.ts';

type Pages = AsyncGenerator<readonly LoggedChange[], void>;

/** Changes to look at in one read, which takes a few milliseconds. */
const pageChanges = 500;
/** A change is found if the clocks of the processes that made it and those before it differ by less. */
const maxClockDifferenceMs = 60 * 60 * 1_000;

export function addLogCommand(plantStore: Command): void {
  databaseCommand(plantStore, 'log', [
    'plant-store log --since 2d',
    'plant-store log --plant 42 --json',
    'plant-store log --user alice | jq -r .event',
  ])
    .description(
      'show who changed what: a table on a terminal, otherwise a line of JSON for each change',
    )
    .addOption(inStore('store of the changes'))
    .option('--user <user>', 'only changes by this user', parseName)
    .option('--plant <id>', 'only changes to this plant', parseId)
    .option(
      '--since <duration>',
      'only changes of this time until now, such as 2d',
      parseDurationMs,
    )
    .addOption(keepChangesFlag('older changes are hidden; set it as for "serve"'))
    .action(async ({ database, json, store, user, plant, since, keepChanges }) => {
      const sinceMs = since === undefined ? undefined : Date.now() - since;
      await using storage = await openStorage(database, { create: false });
      await findStore(storage, store);
      const after =
        sinceMs && (await positionBefore(storage.log, store, sinceMs - maxClockDifferenceMs));
      const query = { store, user, plant, sinceMs, after };
      const pages = pagesOf(storage.log, query, keptSince(keepChanges));
      await printAll(json || !io.stdout.isTTY ? jsonOf(pages) : tableOf(pages));
    });
}

async function* jsonOf(pages: Pages): AsyncGenerator<string, void> {
  for await (const page of pages) {
    yield page.map((change) => `${printableJson(toJson(change))}\n`).join('');
  }
}

async function* tableOf(pages: Pages): AsyncGenerator<string, void> {
  const linesOf = createTable(['AT', 'USER', 'CHANGE', 'PLANT', 'DETAILS']);
  let isEmpty = true;
  for await (const page of pages) {
    yield `${linesOf(page.map(toRow))}\n`;
    isEmpty = false;
  }
  if (isEmpty) yield `${linesOf([])}\n`; // only the header
}

/** Bisects the log: positions are in the order of time, except that clocks differ. */
async function positionBefore(log: ChangeLog, store: string, timeMs: number): Promise<number> {
  let [low, high] = [0, maxPosition];
  while (low < high) {
    const after = Math.floor((low + high) / 2);
    const { changes, next } = await log.list({ store, after, sinceMs: timeMs, limit: 1 });
    const isEarlier = changes.length === 0 && next !== undefined;
    if (isEarlier) low = after + 1;
    else high = after;
  }
  return low - 1;
}

/** Pages with at least one change. Only one is in memory. Hides older changes than `keptSinceMs`, and says so. */
async function* pagesOf(
  log: ChangeLog,
  { after, ...query }: Omit<LogQuery, 'limit'>,
  keptSinceMs: number,
): Pages {
  let isHiding = false;
  do {
    const { changes, next } = await log.list({ ...query, after, limit: pageChanges });
    const kept = changes.filter(({ atMs }) => atMs >= keptSinceMs);
    if (kept.length < changes.length) isHiding = true;
    if (kept.length > 0) yield kept;
    after = next;
  } while (after !== undefined);
  if (isHiding) printError('Older changes are hidden. To show them, set --keep-changes.');
}

function toRow(change: LoggedChange): string[] {
  const { atMs, user = 'the operator', event, plant } = change;
  const words = event.replaceAll('-', ' ');
  return [new Date(atMs).toISOString(), user, words, String(plant ?? ''), detailsOf(change)];
}

function detailsOf(change: LoggedChange): string {
  const { event, owner = '', name, tag } = change;
  switch (event) {
    case 'shared':
    case 'share-changed':
    case 'share-ended':
      return `${owner} with ${name}: ${tag}`;
    case 'token-created':
    case 'token-revoked':
      return `token ${name} of ${owner}: ${tag}`;
    case 'user-created':
    case 'role-changed':
      return `${owner}: ${tag}`;
    case 'user-removed':
      return owner;
    case 'backup-restored':
      return name ?? '';
    default:
      return name === undefined ? '' : `before: ${[...textValues(change), owner].join(' · ')}`;
  }
}

function toJson(change: LoggedChange) {
  const { atMs, event, user, token, request, plant, owner } = change;
  const at = new Date(atMs).toISOString();
  const texts = eachText((field) => change[field]);
  return { at, event, user, token, request, plant, owner, ...texts };
}
