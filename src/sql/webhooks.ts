/**
 * Webhooks on both engines.
 */
import type { Identified, Identity } from '../access/access.ts';
import { parseCursor } from '../log/feed.ts';
import { fixedProblem } from '../problem.ts';
import {
  maxDueAtMs,
  maxWebhooks,
  type Webhook,
  type WebhookState,
  type WebhookStorage,
} from '../webhooks/webhook.ts';
import { findGrant, grantOf } from './grants.ts';
import { sql } from './statement.ts';
import { writeOf, type Engine } from './write.ts';

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
const selectRows = (store: string) => `
    SELECT webhooks.store, webhooks.user_id, webhooks.id, version, state, (
      SELECT users.name FROM plant_store.users
      WHERE users.store = ${store} AND users.id = webhooks.user_id), ${lastOf(store)}
    FROM plant_store.webhooks`;

export const webhookColumns = ['store', 'user_id', 'id', 'version', 'due_at', 'sent', 'state'];
const parameters = webhookColumns.map((_, at) => `$${at + 1}`).join();
const replaced = webhookColumns
  .slice(3)
  .map((name) => `${name} = excluded.${name}`)
  .join();

export const webhookSql = {
  versions: sql<readonly [id: string, version: number]>`
    SELECT id, version FROM plant_store.webhooks WHERE store = $1 AND user_id = $2`,
  set: sql`
    INSERT INTO plant_store.webhooks (${webhookColumns.join()}) VALUES (${parameters})
    ON CONFLICT (store, user_id, id) DO UPDATE SET ${replaced}`,
  remove: sql`
    DELETE FROM plant_store.webhooks WHERE store = $1 AND user_id = $2 AND id = $3`,
  removeOfUser: sql`DELETE FROM plant_store.webhooks WHERE store = $1 AND user_id = $2`,
  list: sql<WebhookRow>`
    ${selectRows('$1')} WHERE webhooks.store = $1 AND webhooks.user_id = $2 ORDER BY webhooks.id`,
  // Of all stores. A join could read the table of stores, even if there are no webhooks.
  due: sql<WebhookRow>`
    ${selectRows('webhooks.store')}
    WHERE (due_at <= $1 OR due_at > $2) AND sent < ${lastOf('webhooks.store')}
    ORDER BY sent < 0, due_at LIMIT $3`,
};

export const webhookWrites = {
  /** Removes it if there is no state. With a version, only that one is changed. The result is whether there was any. */
  setWebhook: (
    { store, user }: Identity,
    [id, version, state]: readonly [id: string, version?: number, state?: WebhookState],
    by?: Identified,
  ) =>
    writeOf({
      store,
      by,
      reads: [[webhookSql.versions, [store, user]]],
      decide([found]) {
        const [, current = 0] = found.find(([one]) => one === id) ?? [];
        if (version !== undefined && version !== current) return { result: false };
        if (state === undefined) {
          return { result: current > 0, writes: () => [[webhookSql.remove, [store, user, id]]] };
        }
        if (current === 0 && found.length >= maxWebhooks) throw tooManyWebhooks();
        const dueAtMs = state.retired === undefined ? state.dueAtMs : null;
        const sent = state.message === undefined ? (parseCursor(state.cursor)?.position ?? 0) : -1;
        const values = [store, user, id, current + 1, dueAtMs, sent, JSON.stringify(state)];
        return { result: true, writes: () => [[webhookSql.set, values]] };
      },
    }),
};

export function openWebhooks(engine: Engine): WebhookStorage {
  return {
    async list({ store, user }) {
      return (await engine.read(store, webhookSql.list, [store, user])).map(webhookOf);
    },

    async due(nowMs, limit) {
      const values = [nowMs, maxDueAtMs(nowMs), limit];
      return (await engine.read(undefined, webhookSql.due, values)).map(webhookOf);
    },

    async set(webhook, by) {
      const { store, user, id, version, userName: _, lastPosition: _last, ...state } = webhook;
      const values = [id, version, state] as const;
      const isSet = await engine.write('setWebhook', { store, user }, values, by?.identified);
      return isSet ? { ...webhook, version: version + 1 } : undefined;
    },

    remove: ({ store, user, identified }, id) =>
      engine.write('setWebhook', { store, user }, [id], identified),

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
