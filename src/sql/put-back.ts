/**
 * Puts plants back as they were (log/differences.ts), on both engines, as changes of the operator.
 */
import { plantEvents, type NewEntry } from '../log/change-log.ts';
import type { Difference, Differences, PutBackOutcome } from '../log/differences.ts';
import {
  plantOf,
  textColumns,
  textFields,
  textValues,
  withTexts,
  type PlantRow,
} from '../plants/fields.ts';
import type { StoredPlant } from '../plants/plant-storage.ts';
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
  putBack: (store: number, { since, plants }: Differences, isTrial: boolean) => {
    const ids = plants.map(({ id }) => id);
    const owners = plants.flatMap(({ before }) => before?.owner ?? []);
    return writeOf({
      store,
      reads: [
        [putBackSql.find, [store, ids]],
        [logSql.findDeletions, [store, ids]],
        [userSql.remaining, [store, owners, since]],
      ],
      decide([found, deletions, users]) {
        const remaining = new Set(users.map(([user]) => user));
        const nowById = new Map(
          found.map(([position, id, owner, ...texts]) => {
            return [id, { ...plantOf(id, owner, texts), position }];
          }),
        );
        const deletionById = new Map(
          deletions.map(([position, , , , id, owner]) => [id, { position, owner }]),
        );
        const result: PutBackOutcome[] = [];
        const [writes, entries, ended]: [PlantWrite[], NewEntry[], number[]] = [[], [], []];
        for (const difference of plants) {
          const { id, before } = difference;
          const now = nowById.get(id);
          const last = now ?? deletionById.get(id);
          const outcome = outcomeOf(difference, now, last, remaining);
          result.push(outcome);
          const event = plantEvents.find((each) => each === outcome);
          if (event === undefined) continue;
          const previous = last?.position;
          if (event === 'restored' && previous !== undefined) ended.push(previous);
          const own = { event, plant: id, previous, owner: now?.owner, left: before };
          entries.push(withTexts(own, (field) => now?.[field]));
          writes.push((position) =>
            before === undefined
              ? [putBackSql.delete, [store, id]]
              : [putBackSql.set, [store, id, before.owner, position, ...textValues(before)]],
          );
        }
        if (isTrial) return { result };
        return {
          result,
          entries,
          writes: (positions) => [
            ...writes.map((write, at) => write(positions[at])),
            [logSql.endDeletions, [store, ended]],
          ],
        };
      },
    });
  },
};

/** What changes the plant, and gets the position of its entry in the log. */
type PlantWrite = (position: number | undefined) => Query;

/** `now` is the plant, and `last` the same or its deletion. */
function outcomeOf(
  { before, now: shown, last: lastShown, isReused }: Difference,
  now: StoredPlant | undefined,
  last: Pick<StoredPlant, 'position' | 'owner'> | undefined,
  remaining: ReadonlySet<number>,
): PutBackOutcome {
  if (now?.position !== shown?.position) return 'changed-meanwhile';
  if (before === undefined) return 'deleted';
  if (isReused && last?.owner !== before.owner) return 'id-used-again';
  if (!remaining.has(before.owner)) return 'owner-removed';
  if (now !== undefined) return now.owner === before.owner ? 'updated' : 'moved';
  if (last === undefined) return 'not-in-log';
  return last.position === lastShown ? 'restored' : 'changed-meanwhile';
}
