/**
 * Runs the statements of `sql/` in SQLite: reads on the event loop, and writes by name on the writer thread
 * (tables/statements.ts).
 */
import { defect } from '../problem.ts';
import { runInSlice } from '../shared/time-slices.ts';
import { sql } from '../sql/statement.ts';
import type { Engine } from '../sql/write.ts';
import type { Connection } from './connection.ts';
import type { Writer } from './writer/writer.ts';

const findStoreSql = sql<readonly [store: number]>`SELECT store FROM stores WHERE name = $1`;

export function openEngine(connection: Connection, writer: Writer): Engine {
  const read: Engine['read'] = async (_store, statement, values, turn) => {
    const step = () => connection.read(({ statements }) => statements.all(statement, values));
    return turn === undefined ? step() : runInSlice(turn, async () => step());
  };

  async function findStore(name: string): Promise<number | undefined> {
    const [row] = await read(undefined, findStoreSql, [name]);
    return row?.[0];
  }

  return {
    read,
    findStore,

    async ensureStore(name) {
      const known = await findStore(name);
      if (known !== undefined) return known;
      await writer.write(['add-store', name]);
      return (
        (await findStore(name)) ?? Promise.reject(defect(new Error(`no store is called ${name}`)))
      );
    },

    write: (...call) => writer.call(...call),
  };
}
