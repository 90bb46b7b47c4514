/**
 * Finds out whether a transaction was committed after its response was lost (decision 15).
 */
import { groupSql, isWriter, type Group } from './group.ts';
import type { Pool } from './pool.ts';
import { jitter } from './retries.ts';
import { settled } from './settled.ts';

/** How long to keep checking. */
const commitCheckTimeoutMs = 3_000;

/** Undefined if that cannot be found out. `begun` of a group is undefined if its ids cannot be found out. */
export async function isCommitted(
  server: Pool,
  groups: readonly Group[],
  attemptId: string,
): Promise<boolean | undefined> {
  let outcome: boolean | undefined;
  let unchecked = [...groups];
  for (
    const deadlineMs = performance.now() + commitCheckTimeoutMs;
    performance.now() < deadlineMs;
    await jitter()
  ) {
    const checked = new Set<Group>();
    try {
      await server.withConnection((connection) =>
        settled(
          unchecked.map(async (group) => {
            const values = [group.store, group.assignedCount];
            const [row] = await connection.query(groupSql.lastGroup, values);
            checked.add(group);
            const ofGroup = row && isCommittedBy(row, group, attemptId);
            outcome ??= ofGroup;
          }),
        ),
      );
    } catch {
      // The server is not back yet, or another group has locked a row.
    }
    if (outcome === false) return false; // of all groups
    unchecked = unchecked.filter((group) => !checked.has(group));
    if (outcome === true) unchecked = unchecked.filter(({ begun }) => begun === undefined);
    if (unchecked.length === 0) break;
  }
  return outcome;
}

/** Also sets what the group began with, if that was lost. Undefined if the row does not show whether it is committed. */
function isCommittedBy(
  [lastId, version, writer]: readonly [lastId: number, version: number, writer: string],
  group: Group,
  attemptId: string,
): boolean | undefined {
  if (isWriter(writer, attemptId)) {
    group.begun = { lastId, version };
    return true;
  }
  // The query waits for the row's lock, so an attempt that had begun has ended. If the version is not newer, it was
  // rolled back. Otherwise a later group has written the row, or the attempt can still begin.
  return group.begun !== undefined && version <= group.begun.version ? false : undefined;
}
