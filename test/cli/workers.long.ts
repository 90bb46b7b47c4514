import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { run } from '../support/command.ts';
import { databaseFile } from '../support/database.ts';
import { shared } from '../support/shared.ts';
import { until } from '../support/until.ts';
import { connectionToEach, killWorkers, start, workers } from './workers.ts';

describe('serve --workers', () => {
  const service = shared(start);

  it('closes every connection of a killed worker that it has not answered', async () => {
    await killWorkers(service(), 16);
  });

  it('reports once why it cannot start, and exits with 1', async () => {
    const { url, service: running } = service();
    const { port } = new URL(running.address);
    const args = ['serve', '--workers', '2', '--port', port, '--database', url];
    const { status, stdout, stderr } = await run(args);
    assert.deepEqual([status, stdout], [1, '']);
    assert.equal(
      stderr,
      `error: Cannot listen on 127.0.0.1:${port}: the port is in use. Choose another with --port, or 0 for a free one.\n`,
    );
  });

  it('keeps its address while workers are replaced', async (t) => {
    const started = service();
    const { port } = new URL(started.service.address);
    const before = await connectionToEach(started);
    for (const pid of before.keys()) process.kill(pid, 'SIGKILL');
    for (const connection of before.values()) await connection.closed();
    const args = ['serve', '--port', port, '--database', databaseFile(t).url];
    const { status, stderr } = await run(args);
    assert.equal(status, 1, stderr);
    assert.match(stderr, /the port is in use/);
  });

  it('replaces all workers if they die at once, even right after their start', async () => {
    const started = service();
    const deaths = () => started.service.log().split('"worker exited"').length - 1;
    const deathsBefore = deaths();
    for (let round = 0; round < 2; round++) {
      const before = await connectionToEach(started);
      for (const pid of before.keys()) process.kill(pid, 'SIGKILL');
      for (const connection of before.values()) await connection.closed();
    }
    await until('all deaths are logged', () => deaths() === deathsBefore + 2 * workers);
    assert.equal(started.service.child.exitCode, null);
  });
});
