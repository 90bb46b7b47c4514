/**
 * Applies writes in the open transaction of the writer thread.
 */
import type { Tables } from '../tables/tables.ts';
import type { Call, Write } from './messages.ts';

/** Runs a write in the open transaction. If it throws a Problem, it has changed nothing. */
export function apply(tables: Tables, write: Write): unknown {
  switch (write[0]) {
    case 'create':
      return tables.plants.create(write);
    case 'delete':
      return tables.plants.delete(write);
    default: {
      const result = call(tables, write);
      tables.grants.clearVersion();
      return result;
    }
  }
}

export function call(tables: Tables, [name, method, ...args]: Call): unknown {
  // The type of the call has checked this combination, which the compiler cannot follow here.
  const table = tables[name] as unknown as Record<typeof method, (...args: unknown[]) => unknown>;
  return table[method](...args);
}
