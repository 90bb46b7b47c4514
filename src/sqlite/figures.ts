/**
 * The size of a database file, and estimates of the rows of its tables.
 */
import { realpath, stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { versions, type Series } from '../metrics/metrics.ts';
import { sql } from '../sql/statement.ts';
import type { Engine } from '../sql/write.ts';

type Page = readonly [type: 'internal' | 'leaf', cells: number];

/** The pages of a table from its root down to the first leaf, and then some of its other leaves. */
const pagesSql = sql<Page>`SELECT pagetype, ncell FROM dbstat WHERE name = $1 LIMIT 32`;

/** As if all pages were like these, which is how SQLite's planner counts too. Exact for a table of one page. */
function rowsIn(pages: readonly Page[]): number {
  const leaves = pages.filter(([type]) => type === 'leaf');
  const depth = pages.findIndex(([type]) => type === 'leaf');
  const leafCount = pages.slice(0, depth).reduce((count, [, cells]) => count * (cells + 1), 1);
  const cellCount = leaves.reduce((count, [, cells]) => count + cells, 0);
  return Math.round((leafCount * cellCount) / leaves.length);
}

export async function readFigures(path: string, engine: Engine): Promise<readonly Series[]> {
  const estimate = async (table: string) => rowsIn(await engine.read(undefined, pagesSql, [table]));
  const estimates = ['plants', 'tokens', 'changes'].map(estimate);
  const [plants, tokens, changes] = await Promise.all(estimates);
  const file = await realpath(path);
  const { bavail, bsize } = await statfs(dirname(file));
  const { sqlite: storage_version = '' } = process.versions;
  return [
    ['plant_store_info', 1, { ...versions, storage: 'sqlite', storage_version }],
    ['plant_store_database_size_bytes', (await stat(file)).size],
    ['plant_store_wal_size_bytes', (await stat(`${file}-wal`)).size],
    ['plant_store_disk_free_bytes', bavail * bsize],
    ['plant_store_plants', plants],
    ['plant_store_tokens', tokens],
    ['plant_store_changes', changes],
  ];
}
