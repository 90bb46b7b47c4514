/**
 * Plants of several owners in SQLite, in ascending order of id (probe.ts).
 */
import type { Reach } from '../access.ts';
import type { OwnedPlantRow, PlantRow } from '../lists.ts';
import type { PlantQuery } from '../plant-storage.ts';
import { isSparse, Probe } from '../probe.ts';
import { Table } from './table.ts';

/** The id of the owner's next plant above `after`. Both arguments are SQL expressions. */
const nextIdSql = (owner: string, after: string) =>
  `(
        SELECT id FROM plants INDEXED BY plants_by_owner
        WHERE store = ?1 AND owner = ${owner} AND id > ${after} ORDER BY id LIMIT 1)`;

/**
 * Work of a step, which takes about 1.5 ms. The unit is the search for the first plant of an owner. Each plant that
 * is read takes as long as two of them.
 */
const maxStepWork = 1_300;
const workOfPlant = 2;

/** Number of plants that a step reads. A reach has up to `maxOwnersInReach` owners. */
export function maxPlantsOfStep(reach: Reach): number {
  return Math.floor((maxStepWork - reach.length) / workOfPlant);
}

type Range = Pick<PlantQuery, 'after' | 'limit'>;

/** What one step of a list leaves for the next: whether to merge without another probe. */
export interface OwnersProgress {
  isSparse: boolean;
}

export interface OwnersStep {
  /** Up to `limit + 1` plants. */
  rows: readonly (PlantRow | OwnedPlantRow)[];
  /** The next step begins after this id; undefined at the end. */
  scannedTo: number | undefined;
}

export class Owners extends Table {
  // `?3 + 0`, because of what listSql (plant-lists.ts) says about LIMIT.
  readonly #owned = this.prepare<OwnedPlantRow>(`
    SELECT id, name, tag, owner FROM plants NOT INDEXED
    WHERE store = ?1 AND id > ?2 ORDER BY id LIMIT ?3 + 0`);
  // Merges the plants of several owners by id, up to `?3`. The queue of the recursive query holds the next
  // plant of each owner. When it takes the first, it adds that owner's next plant. Owners without more plants
  // sort last, with id null.
  readonly #merge = this.prepare<PlantRow>(`
    WITH RECURSIVE merged (id, owner) AS (
      SELECT ${nextIdSql('reach.value', '?2')}, reach.value FROM json_each(?4) AS reach
      UNION ALL
      SELECT ${nextIdSql('merged.owner', 'merged.id')}, owner FROM merged WHERE id IS NOT NULL
      ORDER BY 1 NULLS LAST LIMIT ?3 + 0
    )
    SELECT plants.id, name, tag FROM merged CROSS JOIN plants INDEXED BY plants_by_owner
    WHERE store = ?1 AND plants.owner = merged.owner AND plants.id = merged.id`);

  /** One step of a list. It either probes or merges, because both together would take too long. */
  step(store: number, reach: Reach, range: Range, progress: OwnersProgress): OwnersStep {
    const { after, limit } = range;
    if (!progress.isSparse) {
      const { found, missing, after: scannedTo } = this.#probe(store, reach, range);
      progress.isSparse = missing > 0;
      const isLong = found.length > limit;
      // With few owners, the probe has read nothing.
      if (scannedTo !== after)
        return { rows: found, scannedTo: isLong ? found.at(-1)?.[0] : scannedTo };
    }
    const rows = this.#mergeRows(store, reach, range, limit + 1);
    const last = rows[limit]?.[0];
    // The store has at most one plant for each id.
    if (last !== undefined) progress.isSparse = isSparse(rows.length, last - after);
    return { rows, scannedTo: last };
  }

  #probe(store: number, reach: Reach, range: Range): Probe {
    const probe = new Probe(reach, range);
    while (probe.limit > 0 && probe.after !== undefined)
      probe.add(this.#owned.all(store, probe.after, probe.limit));
    return probe;
  }

  #mergeRows(store: number, reach: Reach, { after }: Range, count: number) {
    return this.#merge.all(store, after, count, JSON.stringify(reach));
  }
}
