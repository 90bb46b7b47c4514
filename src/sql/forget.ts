/**
 * Blanks what the database has of a removed user and of their plants, on both engines. Positions and events stay, so that
 * nobody who follows changes sees a gap.
 */
import type { Identity } from '../access/access.ts';
import { changeEvents, type ChangeEvent } from '../log/change-log.ts';
import { textFields } from '../plants/fields.ts';
import { sql } from './statement.ts';
import { userSql } from './users.ts';
import { writeOf } from './write.ts';

const isOneOf = (...events: readonly ChangeEvent[]) =>
  `event IN (${events.map((event) => changeEvents.indexOf(event)).join()})`;
const inRange = 'changes.store = $1 AND changes.position BETWEEN $2 AND $3';
const ofPlants = `${inRange} AND owner = $4 AND plant IS NOT NULL`;

const forgetSql = {
  findPrevious: sql<readonly [previous: number]>`
    SELECT previous FROM plant_store.changes WHERE ${ofPlants} AND previous IS NOT NULL`,
  blankChecksums: sql`
    UPDATE plant_store.changes SET left_crc = NULL
    WHERE changes.store = $1 AND changes.position = ANY ($2::bigint[])`,
  blankPlants: sql`
    UPDATE plant_store.changes SET ${textFields.map((field) => `${field} = NULL`).join()}
    WHERE ${ofPlants}`,
  blankWebhooks: sql`
    UPDATE plant_store.changes SET tag = NULL
    WHERE ${inRange} AND owner = $4 AND ${isOneOf('webhook-created', 'webhook-removed')}`,
  blankShares: sql`
    UPDATE plant_store.changes SET name = $5
    WHERE ${inRange} AND name = $4 AND ${isOneOf('shared', 'share-changed', 'share-ended')}`,
  blankLabels: sql`UPDATE plant_store.tokens SET label = '' WHERE store = $1 AND user_id = $2`,
  removeKeys: sql`DELETE FROM plant_store.idempotency_keys WHERE store = $1 AND user_id = $2`,
  rename: sql`UPDATE plant_store.users SET name = $3 WHERE store = $1 AND id = $2`,
};

/** Nobody can have this name, because it ends with a control character. */
const forgottenName = (user: number) => `forgotten-${user}\u007F`;

export const forgetWrites = {
  forgetChanges: ({ store, user }: Identity, name: string, from: number, to: number) =>
    writeOf({
      store,
      reads: [
        [userSql.isActive, [store, user]],
        [forgetSql.findPrevious, [store, from, to, user]],
      ],
      decide([[active], previous]) {
        if (active !== undefined) return { result: false };
        const range = [store, from, to];
        return {
          result: true,
          writes: () => [
            [forgetSql.blankChecksums, [store, previous.map(([position]) => position)]],
            [forgetSql.blankPlants, [...range, user]],
            [forgetSql.blankWebhooks, [...range, user]],
            [forgetSql.blankShares, [...range, name, forgottenName(user)]],
          ],
        };
      },
    }),

  forgetName: ({ store, user }: Identity) =>
    writeOf({
      store,
      reads: [[userSql.isActive, [store, user]]],
      decide([[active]]) {
        if (active !== undefined) return { result: false };
        return {
          result: true,
          writes: () => [
            [forgetSql.blankLabels, [store, user]],
            [forgetSql.removeKeys, [store, user]],
            [forgetSql.rename, [store, user, forgottenName(user)]],
          ],
        };
      },
    }),
};
