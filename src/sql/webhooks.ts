/**
 * Webhooks on both engines.
 */
import { randomInt } from 'node:crypto';
import type { Identified, Identity } from '../access/access.ts';
import type { NewEntry } from '../log/change-log.ts';
import { parseCursor } from '../log/feed.ts';
import { fixedProblem } from '../problem.ts';
import { scan } from '../shared/scan.ts';
import { maxDueAtMs, maxWebhooks } from '../webhooks/webhook.ts';
import type { Webhook, WebhookKey, WebhookStorage } from '../webhooks/webhook.ts';
import { callerNow, findAgain } from './grants.ts';
import { sql } from './statement.ts';
import { writeOf, type Engine } from './write.ts';

const maxVersion = 2 ** 48 - 1; // the largest range of randomInt

type WebhookRow = readonly [
  id: string,
  version: number,
  state: string,
  userName: string,
  lastPosition: number,
];

const lastOf = (store: string) => `(
      SELECT stores.position FROM plant_store.stores WHERE stores.store = ${store})`;
const selectRows = `
    SELECT webhooks.id, version, state, (
      SELECT users.name FROM plant_store.users
      WHERE users.store = $1 AND users.id = webhooks.user_id), ${lastOf('$1')}
    FROM plant_store.webhooks WHERE webhooks.store = $1 AND webhooks.user_id = $2`;
export const webhookColumns = ['store', 'user_id', 'id', 'version', 'due_at', 'sent', 'state'];
const one = 'store = $1 AND user_id = $2 AND id = $3';

export const webhookSql = {
  count: sql<readonly [count: number]>`
    SELECT count(*) FROM plant_store.webhooks WHERE store = $1 AND user_id = $2`,
  version: sql<readonly [version: number]>`SELECT version FROM plant_store.webhooks WHERE ${one}`,
  add: sql`
    INSERT INTO plant_store.webhooks (${webhookColumns.join()})
    VALUES ($1, $2, $3, $4, $5, $6, $7)`,
  save: sql`
    UPDATE plant_store.webhooks SET version = $4, due_at = $5, sent = $6, state = $7
    WHERE ${one} AND version = $8`,
  remove: sql`DELETE FROM plant_store.webhooks WHERE ${one}`,
  removeOfUser: sql`DELETE FROM plant_store.webhooks WHERE store = $1 AND user_id = $2`,
  list: sql<WebhookRow>`${selectRows} ORDER BY webhooks.id`,
  find: sql<WebhookRow>`${selectRows} AND webhooks.id = $3`,
};

const maxStep = 1_000;
const turn = 'webhooks'; // among what else is read in steps
const endOfIds = 'g'; // they are hexadecimal

/** Of all stores, and only from the index: a join could read the table of stores, even if there are no webhooks. */
export const searchSql = {
  endOfStep: sql<readonly [id: string]>`
    SELECT id FROM plant_store.webhooks WHERE due_at = 0 AND id > $1
    ORDER BY id LIMIT 1 OFFSET ${maxStep - 1}`,
  changed: sql<WebhookKey>`
    SELECT store, user_id, id FROM plant_store.webhooks
    WHERE due_at = 0 AND id > $1 AND id <= $2 AND sent < ${lastOf('webhooks.store')}
    ORDER BY id LIMIT $3`,
  due: sql<WebhookKey>`
    SELECT store, user_id, id FROM plant_store.webhooks
    WHERE due_at BETWEEN $1 AND $2 ORDER BY due_at LIMIT $3`,
};

/** The values of the columns, with a version that was never used before. */
function rowOf({ store, user, id, ...webhook }: Webhook) {
  const { version: _, userName: _name, lastPosition: _last, ...state } = webhook;
  const dueAtMs = state.retired === undefined ? state.dueAtMs : null;
  const sent = parseCursor(state.cursor)?.position ?? 0;
  return [store, user, id, randomInt(1, maxVersion), dueAtMs, sent, JSON.stringify(state)] as const;
}

export const webhookWrites = {
  addWebhook: (row: ReturnType<typeof rowOf>, by?: Identified, request?: string) =>
    writeOf({
      store: row[0],
      by,
      request,
      reads: [[webhookSql.count, row.slice(0, 2)]],
      decide([[[count] = [0]]]) {
        if (count >= maxWebhooks) throw tooManyWebhooks();
        const [, user, id, , , , state] = row;
        return {
          result: undefined,
          writes: () => [[webhookSql.add, row]],
          entries: [{ event: 'webhook-created', owner: user, name: id, tag: originOf(state) }],
        };
      },
    }),

  /** Without the lock of the store, so that webhooks delay no changes of plants: the statement compares and sets. */
  saveWebhook: (row: ReturnType<typeof rowOf>, version: number) =>
    writeOf({
      store: row[0],
      withoutLock: true,
      reads: [],
      decide: () => ({
        result: undefined,
        writes: () => [[webhookSql.save, [...row, version]]],
      }),
    }),

  removeWebhook: (key: WebhookKey, by: Identified, request?: string) =>
    writeOf({
      store: key[0],
      by,
      request,
      reads: [[webhookSql.find, key]],
      decide([found]) {
        const entries = found.map(([id, , state]): NewEntry => ({
          event: 'webhook-removed',
          owner: key[1],
          name: id,
          tag: originOf(state),
        }));
        const writes = () => (found.length > 0 ? [[webhookSql.remove, key] as const] : []);
        return { result: found.length > 0, writes, entries };
      },
    }),
};

/** Not the rest of the URL: it can have a secret. */
function originOf(state: string): string {
  const { url }: Webhook = JSON.parse(state);
  return new URL(url).origin;
}

export function openWebhooks(engine: Engine): WebhookStorage {
  return {
    async list({ store, user }) {
      const rows = await engine.read(store, webhookSql.list, [store, user]);
      return rows.map((row) => webhookOf({ store, user }, row));
    },

    changed: (after, limit) =>
      scan({ after, limit }, async (from, max) => {
        const [[end] = []] = await engine.read(undefined, searchSql.endOfStep, [from], turn);
        const values = [from, end ?? endOfIds, max + 1];
        const rows = await engine.read(undefined, searchSql.changed, values, turn);
        return { rows, scannedTo: end };
      }),

    async due(nowMs, limit) {
      const search = (...range: readonly number[]) =>
        engine.read(undefined, searchSql.due, [...range, limit], turn);
      const found = [search(1, nowMs), search(maxDueAtMs(nowMs) + 1, Number.MAX_SAFE_INTEGER)];
      return (await Promise.all(found)).flat().slice(0, limit);
    },

    async find([store, user, id]) {
      const [row] = await engine.read(store, webhookSql.find, [store, user, id]);
      return row && webhookOf({ store, user }, row);
    },

    async set(webhook, by, request) {
      const row = rowOf(webhook);
      const [store, user, id, version] = row;
      if (webhook.version === 0) {
        await engine.write('addWebhook', row, by?.identified, request);
        return { ...webhook, version };
      }
      await engine.write('saveWebhook', row, webhook.version);
      const [found] = await engine.read(store, webhookSql.version, [store, user, id]);
      return found?.[0] === version ? { ...webhook, version } : undefined;
    },

    remove: ({ store, user, identified }, id, request) =>
      engine.write('removeWebhook', [store, user, id], identified, request),

    /** By the rule for every caller, as if the provider of sign-on had just issued a token. */
    async readerOf({ store, user, userName }) {
      const times = { issuedAtMs: Infinity, expiresAtMs: Infinity };
      const claims = { storeName: '', userName, role: undefined, scopes: [], ...times };
      const by: Identified = [0, '', user, claims];
      const { read } = callerNow(store, by, await engine.read(store, ...findAgain(store, by)));
      return { store, user, userName, read };
    },
  };
}

function webhookOf(
  identity: Identity,
  [id, version, state, userName, lastPosition]: WebhookRow,
): Webhook {
  return { ...JSON.parse(state), ...identity, id, version, userName, lastPosition };
}

const tooManyWebhooks = fixedProblem(
  'too-many-webhooks',
  `You have the maximum of ${maxWebhooks} webhooks. Delete one that you do not need.`,
);
