/**
 * The checks of a PostgreSQL server. They only read, over connections as the service has, which refuse a server whose
 * settings can lose acknowledged changes.
 */
import { Refusal } from '../refusal.ts';
import type { Check, Finding } from '../shared/finding.ts';
import { sqlChecks } from '../sql/doctor.ts';
import { codeOf, isConnectionLost, isStatementError, refusalFor, sqlState } from './errors.ts';
import { nameOf, parseAddress } from './pool/address.ts';
import type { Connection } from './pool/connection.ts';
import { Pool } from './pool/pool.ts';
import { migrations, readSchema } from './schema/migrate.ts';

export function serverChecks(url: string, resources: AsyncDisposableStack): Check[] {
  const address = parseAddress(url);
  const name = address.hosts.map(nameOf).join();
  const pool = new Pool(address, { name, onFault: undefined, check: readSchema });
  resources.defer(() => pool.close());
  const read = <T>(work: (connection: Connection) => Promise<T>) =>
    pool.check(work).catch((error: Error) => {
      const reason = refusalFor(error);
      if (reason !== undefined || !isConnectionLost(error)) throw reason ?? error;
      const { message } = error.cause instanceof Error ? error.cause : error;
      const what = message.replace(/\.$/, '');
      throw new Refusal(`${what}. Start the right server, or correct the address.`);
    });
  const server = async () => migrations.findingOf(await read(readSchema), name);
  return [
    ['server', 'the connection, settings that can lose changes, and the schema', server],
    ...sqlChecks(new URL('doctor.sql', import.meta.url), (...query) =>
      read((connection) => connection.query(...query).catch((error) => [skip(error)])),
    ),
  ];
}

/** Not every server has each table and function, and not every user sees them. */
function skip(error: unknown): Finding {
  if (!(error instanceof Error) || !isStatementError(error)) throw error;
  const isMissing = codeOf(error) === sqlState.undefinedTable;
  return ['skipped', isMissing ? 'the server has no such tables' : error.message];
}
