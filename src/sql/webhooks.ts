/**
 * Webhooks on both engines.
 */
import { randomInt } from 'node:crypto';
import type { Identified } from '../access/access.ts';
import { parseCursor } from '../log/feed.ts';
import { fixedProblem } from '../problem.ts';
import { scan } from '../shared/scan.ts';
import { maxDueAtMs, maxWebhooks } from '../webhooks/webhook.ts';
import type { Webhook, WebhookKey, WebhookStorage } from '../webhooks/webhook.ts';
import { findGrant, grantOf } from './grants.ts';
import { sql, type Row, type Statement } from './statement.ts';
import { writeOf, type Engine } from './write.ts';

const maxVersion = 2 ** 48 - 1; // the largest range of randomInt
const maxTimeMs = Number.MAX_SAFE_INTEGER;

type WebhookRow = readonly [
  store: number,
  user: number,
  id: string,
  version: number,
  state: string,
  userName: string,
  lastPosition: number,
];

const lastOf = (store: string) => `(
      SELECT stores.position FROM plant_store.stores WHERE stores.store = ${store})`;
const selectRows = `
    SELECT webhooks.store, webhooks.user_id, webhooks.id, version, state, (
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
  addWebhook: (row: ReturnType<typeof rowOf>, by?: Identified) =>
    writeOf({
      store: row[0],
      by,
      reads: [
        [webhookSql.version, row.slice(0, 3)],
        [webhookSql.count, row.slice(0, 2)],
      ],
      decide([committed, [[count] = [0]]]) {
        if (committed.length > 0) return { result: undefined }; // by an earlier attempt
        if (count >= maxWebhooks) throw tooManyWebhooks();
        return { result: undefined, writes: () => [[webhookSql.add, row]] };
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

  removeWebhook: (key: WebhookKey, by: Identified) =>
    writeOf({
      store: key[0],
      by,
      reads: [],
      decide: () => ({ result: undefined, writes: () => [[webhookSql.remove, key]] }),
    }),
};

export function openWebhooks(engine: Engine): WebhookStorage {
  return {
    async list({ store, user }) {
      return (await engine.read(store, webhookSql.list, [store, user])).map(webhookOf);
    },

    changed: (after, limit) =>
      scan({ after, limit }, async (from, max) => {
        const search = <R extends Row>(statement: Statement<R>, ...values: unknown[]) =>
          engine.read(undefined, statement, [from, ...values], 'webhooks');
        const [[end] = []] = await search(searchSql.endOfStep);
        const rows = await search(searchSql.changed, end ?? endOfIds, max + 1);
        return { rows, scannedTo: end };
      }),

    async due(nowMs, limit) {
      const search = (...range: number[]) =>
        engine.read(undefined, searchSql.due, [...range, limit]);
      const [due, tooLate] = [search(1, nowMs), search(maxDueAtMs(nowMs) + 1, maxTimeMs)];
      return [...(await due), ...(await tooLate)].slice(0, limit);
    },

    async find(key) {
      return (await engine.read(key[0], webhookSql.find, key)).map(webhookOf)[0];
    },

    async set(webhook, by) {
      const row = rowOf(webhook);
      const [store, user, id, version] = row;
      if (webhook.version === 0) {
        await engine.write('addWebhook', row, by?.identified);
        return { ...webhook, version };
      }
      await engine.write('saveWebhook', row, webhook.version);
      const [found] = await engine.read(store, webhookSql.version, [store, user, id]);
      return found?.[0] === version ? { ...webhook, version } : undefined;
    },

    async remove({ store, user, identified }, id) {
      const key = [store, user, id] as const;
      const isThere = (await engine.read(store, webhookSql.version, key)).length > 0;
      // The write can be repeated after a lost COMMIT, so it does not decide what its caller is told.
      await engine.write('removeWebhook', key, identified);
      return isThere;
    },

    /** By the rows and the rule of every caller, as if the provider of sign-on had just issued a token. */
    async readerOf({ store, user, userName }) {
      const times = { issuedAtMs: Infinity, expiresAtMs: Infinity };
      const claims = { storeName: '', userName, role: undefined, scopes: [], ...times };
      const credential = { tokenHash: Buffer.alloc(0), claims };
      const rows = await engine.read(store, ...findGrant(store, credential));
      const { caller, revokedAtMs } = grantOf(store, credential, rows) ?? {};
      if (caller?.user !== user || revokedAtMs !== undefined) return undefined;
      return { store, user, userName, read: caller.read };
    },
  };
}

function webhookOf([store, user, id, version, state, userName, lastPosition]: WebhookRow): Webhook {
  return { ...JSON.parse(state), store, user, id, version, userName, lastPosition };
}

const tooManyWebhooks = fixedProblem(
  'too-many-webhooks',
  `You have the maximum of ${maxWebhooks} webhooks. Delete one that you do not need.`,
);
