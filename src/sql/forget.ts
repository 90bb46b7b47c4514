/**
 * Blanks what the database has of a removed user and of their plants, on both engines. Positions and events stay, so that
 * nobody who follows changes sees a gap.
 */
import type { Identity } from '../access/access.ts';
import { changeEvents, maxPosition, type ChangeEvent } from '../log/change-log.ts';
import { textFields } from '../plants/fields.ts';
import { sql, type Query } from './statement.ts';
import { userSql } from './users.ts';
import { writeOf } from './write.ts';

const isOneOf = (...events: readonly ChangeEvent[]) =>
  `event IN (${events.map((event) => changeEvents.indexOf(event)).join()})`;
const inRange = 'changes.store = $1 AND changes.position BETWEEN $2 AND $3';

const forgetSql = {
  findChanges: sql<
    readonly [position: number, owner: number | null, plant: number | null, previous: number | null]
  >`
    SELECT position, owner, plant, previous FROM plant_store.changes
    WHERE changes.store = $1 AND changes.position BETWEEN $2 AND ${maxPosition}
    ORDER BY changes.position LIMIT $3`,
  blankChecksums: sql`
    UPDATE plant_store.changes SET left_crc = NULL
    WHERE changes.store = $1 AND changes.position = ANY ($2::bigint[])`,
  blankPlants: sql`
    UPDATE plant_store.changes SET is_restorable = 0, ${textFields.map((field) => `${field} = NULL`).join()}
    WHERE ${inRange} AND owner = $4 AND plant IS NOT NULL`,
  blankWebhooks: sql`
    UPDATE plant_store.changes SET tag = NULL
    WHERE ${inRange} AND owner = $4 AND ${isOneOf('webhook-created', 'webhook-removed')}`,
  blankShares: sql`
    UPDATE plant_store.changes SET name = $5
    WHERE ${inRange} AND name = $4 AND ${isOneOf('shared', 'share-changed', 'share-ended')}`,
  blankLabels: sql`UPDATE plant_store.tokens SET label = '' WHERE store = $1 AND user_id = $2`,
  rename: sql`UPDATE plant_store.users SET name = $3 WHERE store = $1 AND id = $2`,
};

/** Nobody can have this name, because it ends with a control character. */
const forgottenName = (user: number) => `forgotten-${user}\u007F`;

export const forgetWrites = {
  forgetUser: ({ store, user }: Identity, name: string, from: number, limit: number) =>
    writeOf({
      store,
      reads: [
        [userSql.isActive, [store, user]],
        [userSql.ownsAnything, [store, user]],
        [forgetSql.findChanges, [store, from, limit]],
        [userSql.findReceived, [store, user, limit]],
      ],
      decide([active, owned, changes, received]) {
        if (active.length + owned.length > 0) return { result: undefined };
        const to = changes.at(-1)?.[0] ?? from;
        const isLast = changes.length < limit && received.length < limit;
        const before = changes.flatMap(([, owner, plant, previous]) =>
          owner === user && plant !== null ? (previous ?? []) : [],
        );
        const [ofUser, range] = [
          [store, user],
          [store, from, to],
        ];
        const rest: Query[] = [
          [forgetSql.blankLabels, ofUser],
          [forgetSql.rename, [...ofUser, forgottenName(user)]],
        ];
        const owners = received.map(([owner]) => owner);
        return {
          result: isLast ? {} : { next: to + 1 },
          writes: () => [
            [forgetSql.blankChecksums, [store, before]],
            [forgetSql.blankPlants, [...range, user]],
            [forgetSql.blankWebhooks, [...range, user]],
            [forgetSql.blankShares, [...range, name, forgottenName(user)]],
            [userSql.endReceived, [...ofUser, owners]], // given to the name since the removal
            ...(isLast ? rest : []),
          ],
          entries: received.map(([owner, , tag]) => ({
            event: 'share-ended',
            owner,
            name: forgottenName(user),
            tag,
          })),
        };
      },
    }),
};
