/**
 * The log of changes of a store, for its operator: a table on a terminal, and JSON lines elsewhere.
 */
import type { Command } from '@commander-js/extra-typings';
import {
  keptSince,
  type ChangeLog,
  type LoggedChange,
  type LogQuery,
} from '../../log/change-log.ts';
import { positionBefore } from '../../log/differences.ts';
import { eachText, textValues } from '../../plants/fields.ts';
import { openStorage } from '../database.ts';
import { inStore, keepChangesFlag, parseId, parseName, parsePastMs } from '../options.ts';
import { io, printAll, printError } from '../output.ts';
import { jsonLines, tableOfPages } from '../terminal.ts';
import { databaseCommand, findStore } from './command.ts';

const columns = ['at', 'user', 'change', 'plant', 'details'] as const;

/** Changes to look at in one read, which takes a few milliseconds. */
const pageChanges = 500;

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
    .option('--since <time>', 'only changes of this time until now, such as 2d', parsePastMs)
    .addOption(keepChangesFlag('older changes are hidden; set it as for "serve"'))
    .action(async ({ database, json, store, user, plant, since: sinceMs, keepChanges }) => {
      await using storage = await openStorage(database, { create: false });
      await findStore(storage, store);
      const after = sinceMs && (await positionBefore(storage.log, store, sinceMs));
      const query = { store, user, plant, sinceMs, after };
      const kept = keptSince(keepChanges);
      await printAll(
        json || !io.stdout.isTTY
          ? jsonLines(pagesOf(storage.log, query, kept, toJson))
          : tableOfPages(columns, pagesOf(storage.log, query, kept, toRow)),
      );
    });
}

/** Only one page is in memory, and only a single one can be empty. Hides older changes than `keptSinceMs`, and says so. */
async function* pagesOf<Shown>(
  log: ChangeLog,
  { after, ...query }: Omit<LogQuery, 'limit'>,
  keptSinceMs: number,
  show: (change: LoggedChange) => Shown,
): AsyncGenerator<Shown[], void> {
  let [isHiding, isEmpty] = [false, true];
  do {
    const { changes, next } = await log.list({ ...query, after, limit: pageChanges });
    const kept = changes.filter(({ atMs }) => atMs >= keptSinceMs);
    isHiding ||= kept.length < changes.length;
    isEmpty &&= kept.length === 0;
    if (kept.length > 0) yield kept.map(show);
    after = next;
  } while (after !== undefined);
  if (isHiding) printError('Older changes are hidden. To show them, set --keep-changes.');
  if (isEmpty) yield [];
}

function toRow(change: LoggedChange) {
  const { atMs, user = 'the operator', event, plant } = change;
  const [at, words] = [new Date(atMs).toISOString(), event.replaceAll('-', ' ')];
  return { at, user, change: words, plant, details: detailsOf(change) };
}

function detailsOf(change: LoggedChange): string {
  const { event, owner = '', name, tag } = change;
  switch (event) {
    case 'shared':
    case 'share-changed':
    case 'share-ended':
      return `${owner} with ${name || 'everyone'}: ${tag}`;
    case 'token-created':
    case 'token-revoked':
      return `token ${name} of ${owner}: ${tag}`;
    case 'webhook-created':
    case 'webhook-removed':
      return `webhook ${name} of ${owner}: ${tag}`;
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
  const { position, atMs, event, user, token, request, plant, owner } = change;
  const at = new Date(atMs).toISOString();
  const texts = eachText((field) => change[field]);
  return { at, position, event, user, token, request, plant, owner, ...texts };
}
