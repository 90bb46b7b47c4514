/**
 * The log of changes of a store, for its operator: a table on a terminal, and JSON lines elsewhere.
 */
import type { ChangeLog, LoggedChange, LogPosition, LogQuery } from '../../log/change-log.ts';
import { openStorage } from '../database.ts';
import type { InStoreOptions } from '../options.ts';
import { io, printAll } from '../output.ts';
import { createTable } from '../table.ts';
import { printableJson } from '../terminal.ts';
import { findStore } from './names.ts';

interface LogOptions extends InStoreOptions, Pick<LogQuery, 'user' | 'plant'> {
  /** How far to look back, in milliseconds. */
  since?: number | undefined;
}

type Pages = AsyncGenerator<readonly LoggedChange[], void>;

/** Changes to look at in one read, which takes a few milliseconds. */
const pageChanges = 500;

export async function showLog({ since, ...options }: LogOptions): Promise<void> {
  const { json, store, user, plant } = options;
  const sinceMs = since === undefined ? undefined : Date.now() - since;
  await using storage = await openStorage(options.database, { create: false });
  await findStore(storage, store);
  const pages = pagesOf(storage.log, { store, user, plant, sinceMs });
  await printAll(json || !io.stdout.isTTY ? jsonOf(pages) : tableOf(pages));
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

/** Pages with at least one change. Only one is in memory. */
async function* pagesOf(log: ChangeLog, query: Omit<LogQuery, 'limit' | 'after'>): Pages {
  let after: LogPosition | undefined;
  do {
    const page = await log.list({ ...query, after, limit: pageChanges });
    if (page.changes.length > 0) yield page.changes;
    after = page.next;
  } while (after !== undefined);
}

function toRow(change: LoggedChange): string[] {
  const { atMs, user = 'the operator', event, plant } = change;
  const words = event.replaceAll('-', ' ');
  return [new Date(atMs).toISOString(), user, words, String(plant ?? ''), detailsOf(change)];
}

function detailsOf({ event, owner = '', name, tag }: LoggedChange): string {
  switch (event) {
    case 'shared':
    case 'share-changed':
    case 'share-ended':
      return `${owner} with ${name}: ${tag}`;
    case 'token-created':
    case 'token-revoked':
      return `token ${name} of ${owner}: ${tag}`;
    case 'user-removed':
      return owner;
    case 'backup-restored':
      return name ?? '';
    default:
      return name === undefined ? '' : `before: ${[name, tag, owner].join(' · ')}`;
  }
}

function toJson({ atMs, event, user, token, request, plant, owner, name, tag }: LoggedChange) {
  const at = new Date(atMs).toISOString();
  return { at, event, user, token, request, plant, owner, name, tag };
}
