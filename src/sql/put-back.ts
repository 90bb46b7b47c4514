/**
 * Puts plants back as they were (log/differences.ts), on both engines, as changes of their author.
 */
import type { Author } from '../access/user-storage.ts';
import { plantEvents, type NewEntry } from '../log/change-log.ts';
import {
  isDifferent,
  type Difference,
  type Differences,
  type PutBack,
  type PutBackOutcome,
} from '../log/differences.ts';
import {
  plantOf,
  textColumns,
  textFields,
  textsOf,
  textValues,
  withTexts,
  type PlantRow,
} from '../plants/fields.ts';
import type { OwnedPlant, StoredPlant } from '../plants/plant-storage.ts';
import { logSql } from './log.ts';
import { sql, type Query } from './statement.ts';
import { userSql } from './users.ts';
import { writeOf } from './write.ts';

export const putBackSql = {
  find: sql<readonly [position: number, ...PlantRow]>`
    SELECT position, id, owner, ${textColumns} FROM plant_store.plants
    WHERE store = $1 AND id = ANY ($2::bigint[])`,
  set: sql`
    INSERT INTO plant_store.plants (store, id, owner, position, ${textColumns})
    VALUES ($1, $2, $3, $4, ${textFields.map((_, at) => `$${at + 5}`).join()})
    ON CONFLICT (store, id) DO UPDATE SET owner = excluded.owner, position = excluded.position,
      ${textFields.map((field) => `${field} = excluded.${field}`).join()}`,
  delete: sql`DELETE FROM plant_store.plants WHERE store = $1 AND id = $2`,
};

export const putBackWrites = {
  putBack: (
    store: number,
    { since, plants }: Differences,
    isTrial: boolean,
    { by, request }: Author = {},
  ) => {
    const ids = plants.map(({ id }) => id);
    const owners = plants.flatMap(({ before }) => before?.owner ?? []);
    return writeOf({
      store,
      by,
      request,
      reads: [
        [putBackSql.find, [store, ids]],
        [logSql.findDeletions, [store, ids]],
        [userSql.remaining, [store, owners, since]],
      ],
      decide([plantRows, deletions, users]) {
        const remaining = new Set(users.map(([user]) => user));
        const nowById = new Map(
          plantRows.map(([position, id, owner, ...texts]) => {
            return [id, { ...plantOf(id, owner, texts), position }];
          }),
        );
        const deletedById = new Map(
          deletions.map(([position, , , , id, owner, ...texts]) => {
            return [id, { ...plantOf(id, owner, texts), position }];
          }),
        );
        const result: PutBack[] = [];
        const entries: NewEntry[] = [];
        const add = (entry: NewEntry, found?: OwnedPlant) => {
          entries.push(withTexts({ ...entry, owner: found?.owner }, (field) => found?.[field]));
        };
        for (const difference of plants) {
          const { id, before, now: shown } = difference;
          const now = nowById.get(id);
          const deleted = deletedById.get(id);
          const outcome = outcomeOf(difference, now, (now ?? deleted)?.owner, remaining);
          const texts = { now: shown && textsOf(shown), before: before && textsOf(before) };
          result.push({ id, outcome, ...texts });
          const event = plantEvents.find((each) => each === outcome);
          if (event === 'restored' && deleted !== undefined) {
            // As it was deleted, and from there as it was before.
            add({ event, plant: id, previous: deleted.position, left: deleted });
            const next = deleted.owner === before?.owner ? 'updated' : 'moved';
            if (isDifferent({ before, now: deleted })) {
              add({ event: next, plant: id, continues: true, left: before }, deleted);
            }
          } else if (event !== undefined) {
            add({ event, plant: id, previous: now?.position, left: before }, now);
          }
        }
        if (isTrial) return { result };
        const ended = entries.flatMap(({ event, previous }) =>
          event === 'restored' ? (previous ?? []) : [],
        );
        return {
          result,
          entries,
          writes: (positions) => [
            ...entries.map(({ plant, left }, at): Query => {
              if (left === undefined) return [putBackSql.delete, [store, plant]];
              const values = [left.owner, positions[at], ...textValues(left)];
              return [putBackSql.set, [store, plant, ...values]];
            }),
            [logSql.endDeletions, [store, ended]],
          ],
        };
      },
    });
  },
};

/** `now` is the plant, and `lastOwner` its owner, or that of the deleted one. */
function outcomeOf(
  { before, now: shown, isReused }: Difference,
  now: StoredPlant | undefined,
  lastOwner: number | undefined,
  remaining: ReadonlySet<number>,
): PutBackOutcome {
  if (now?.position !== shown?.position) return 'changed-meanwhile';
  if (before === undefined) return 'deleted';
  if (isReused && lastOwner !== before.owner) return 'id-used-again';
  if (!remaining.has(before.owner)) return 'owner-removed';
  if (now !== undefined) return now.owner === before.owner ? 'updated' : 'moved';
  return lastOwner === undefined ? 'not-in-log' : 'restored';
}
