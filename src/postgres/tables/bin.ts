/**
 * Lists of deleted plants in PostgreSQL.
 */
import { userKey, type ReadAccess } from '../../access/access.ts';
import {
  binPageOf,
  keptSince,
  type BinPage,
  type BinQuery,
  type DeletedPlant,
} from '../../log/change-log.ts';
import { scan } from '../../shared/scan.ts';
import type { Servers } from '../servers.ts';
import { sql, type Statement } from '../pool/connection.ts';

type BinRow = readonly [
  plant: number,
  name: string,
  tag: string,
  owner: number,
  at: number,
  user: number | null,
  version: number,
  number: number,
  isFound: boolean,
  nth: number,
];

/** Deletions that a step of a bin checks: it takes the server a few milliseconds. */
const maxScannedDeletions = 1_000;

/**
 * Returns up to `$4` plants that can be restored among the deletions before a position, and the last one that it
 * checked. They stay in the order of the deletions: an ORDER BY would check all of them, and then sort. OFFSET 0 lets
 * PostgreSQL check each deletion once.
 */
function binStep(condition: string): Statement<BinRow> {
  return sql`
    SELECT plant, name, tag, owner, at, user_id, version, number, is_found, nth
    FROM (
      SELECT plant, name, tag, owner, at, user_id, version, number, nth, (
        ${condition}
        AND at >= $5
        AND EXISTS (
          SELECT 1 FROM plant_store.users
          WHERE users.store = $1 AND users.id = deletions.owner
            AND removed_version < deletions.version)) AS is_found
      FROM (
        SELECT plant, name, tag, owner, at, user_id, version, number,
               row_number() OVER (ORDER BY version DESC, number DESC) AS nth
        FROM plant_store.changes
        WHERE store = $1 AND is_restorable = 1 AND (version, number) < ($2, $3)
        ORDER BY version DESC, number DESC LIMIT ${maxScannedDeletions}
      ) AS deletions
      OFFSET 0
    ) AS checked
    WHERE is_found OR nth = ${maxScannedDeletions} LIMIT $4`;
}

export const binSql = {
  all: binStep('true'),
  owners: binStep('owner IN (SELECT unnest($6::bigint[]))'),
};

export async function listDeleted(
  servers: Servers,
  caller: ReadAccess,
  query: BinQuery,
  keepMs: number | undefined,
): Promise<BinPage> {
  const { store, write } = caller;
  const statement = write === 'all' ? binSql.all : binSql.owners;
  const owners = write === 'all' ? [] : [write];
  const since = keptSince(keepMs);
  const found = await scan(query, async ({ version, number }, limit) => {
    const maxRows = limit + 1;
    const values = [store, version, number, maxRows, since, ...owners];
    const rows = await servers
      .placeOf(caller.store)
      .scanSteps.run(userKey(caller), () =>
        servers.read(store, statement, values, userKey(caller)),
      );
    const last = rows.at(-1);
    const hasMore = rows.length === maxRows || last?.[9] === maxScannedDeletions;
    return {
      rows: rows.filter(([, , , , , , , , isFound]) => isFound).map(toDeleted),
      scannedTo: last && hasMore ? toDeleted(last).position : undefined,
    };
  });
  return binPageOf(found, query);
}

function toDeleted([id, name, tag, owner, at, user, version, number]: BinRow): DeletedPlant {
  const position = { version, number };
  return { id, name, tag, owner, deletedAtMs: at, deletedBy: user ?? undefined, position };
}
