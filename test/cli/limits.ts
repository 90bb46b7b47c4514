/**
 * A service with limits, and requests that come up against them.
 */
import type { TestContext } from 'node:test';
import { call } from '../support/app.ts';
import { serve } from '../support/command.ts';
import { Connection } from '../support/connection.ts';
import { databaseFile, fill } from '../support/database.ts';

export async function start(
  t: TestContext,
  args: readonly string[],
  env: Record<string, string> = {},
) {
  const { path, url } = databaseFile(t);
  const token = await fill(path, 1);
  const service = await serve(t, ['--database', url, ...args], { env });
  const ask = (used: string, headers: Record<string, string> = {}) =>
    call(`${service.address}/plants`, 'GET', { token: used, headers });
  /** The statuses of requests on one connection, while it goes on. */
  const statusesOf = async (used: string, goesOn: (statuses: readonly number[]) => boolean) => {
    const connection = new Connection(service.address);
    const statuses: number[] = [];
    do {
      connection.write(`GET /plants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${used}\r\n\r\n`);
      statuses.push((await connection.answer())?.status ?? 0);
    } while (goesOn(statuses));
    connection.socket.destroy();
    return statuses;
  };
  return { service, token, ask, statusesOf };
}
