/**
 * The log of changes of a store, for its operator: a table on a terminal, and JSON lines elsewhere.
 */
import type { ChangeLog, LoggedChange, LogPosition, LogQuery } from '../../log/change-log.ts';
import { openStorage } from '../database.ts';
import type { InStoreOptions } from '../options.ts';
import { io, print } from '../output.ts';
import { createTable } from '../table.ts';
import { printableJson } from '../terminal.ts';
import { findStore } from './names.ts';

interface LogOptions extends InStoreOptions, Pick<LogQuery, 'user' | 'plant'> {
  /** How far to look back, in milliseconds. */
  since?: number | undefined;
}

/** Changes to look at in one read, which takes a few milliseconds. */
const pageChanges = 500;

export async function showLog({ since, ...options }: LogOptions): Promise<void> {
  const { json, store, user, plant } = options;
  const sinceMs = since === undefined ? undefined : Date.now() - since;
  await using storage = await openStorage(options.database, { create: false });
  await findStore(storage, store);
  const linesOf = createTable(['AT', 'USER', 'CHANGE', 'PLANT', 'DETAILS']);
  for await (const changes of pagesOf(storage.log, { store, user, plant, sinceMs })) {
    if (json || !io.stdout.isTTY)
      for (const change of changes) print(printableJson(toJson(change)));
    else print(linesOf(changes.map(toRow)));
  }
}

/** Pages that are not empty. */
async function* pagesOf(
  log: ChangeLog,
  query: Omit<LogQuery, 'limit' | 'after'>,
): AsyncGenerator<readonly LoggedChange[], void> {
  let after: LogPosition | undefined;
  do {
    const page = await log.list({ ...query, after, limit: pageChanges });
    if (page.changes.length > 0) yield page.changes;
    after = page.next;
  } while (after !== undefined);
}

function toRow(change: LoggedChange): string[] {
  const { atMs, user = 'operator', event, plant } = change;
  return [new Date(atMs).toISOString(), user, event, String(plant ?? ''), detailsOf(change)];
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
    default:
      return name === undefined ? '' : `before: ${[name, tag, owner].join(' · ')}`;
  }
}

function toJson({ atMs, event, user, token, request, plant, owner, name, tag }: LoggedChange) {
  const at = new Date(atMs).toISOString();
  return { at, event, user, token, request, plant, owner, name, tag };
}
