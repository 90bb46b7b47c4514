/**
 * Finds out whether a transaction was committed after its response was lost (decision 15).
 */
import { changeSql } from './statements.ts';
import { isWriter } from './store-changes.ts';
import type { Pool } from '../pool/pool.ts';
import { jitter } from '../pool/retries.ts';
import type { Transaction } from './transaction.ts';

/** How long to keep checking. */
const commitCheckTimeoutMs = 3_000;

/** Undefined if that cannot be found out. */
export async function isCommitted(
  server: Pool,
  transaction: Transaction,
): Promise<boolean | undefined> {
  const deadlineMs = performance.now() + commitCheckTimeoutMs;
  for (; performance.now() < deadlineMs; await jitter()) {
    try {
      return await server.withConnection(async (connection) => {
        for (const { store, version } of transaction.groups) {
          // It waits until the transaction has ended, which had locked the row.
          const [row] = await connection.query(changeSql.lock, [store]);
          if (row === undefined) continue;
          const [, current, writer] = row;
          if (isWriter(writer, transaction.id)) return true;
          if (current <= version) return false;
          // Other groups have followed: another store may show more.
        }
        return undefined;
      });
    } catch {
      // The server is not back yet, or another transaction has locked the row.
    }
  }
  return undefined;
}
