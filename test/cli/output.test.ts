/**
 * What a command prints either arrives whole or makes it fail.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { run, runOk, start } from '../support/command.ts';
import { databaseFile, fill } from '../support/database.ts';
import { tempFolder } from '../support/temp.ts';

/** Runs a command with its output sent to a place, as a shell does. */
function under(redirection: string): readonly string[] {
  return ['sh', '-c', `${redirection}; exec "$@"`, 'sh'];
}

const toFull = { under: under('exec >/dev/full') };
const skip = !existsSync('/dev/full') && 'this system has no /dev/full';

const lost = /^error: Cannot write the output: ENOSPC: .*\.$/m;

describe('a command whose output is lost', { concurrency: 2 }, () => {
  it(
    'fails with the reason, and revokes the token that could not be printed',
    { skip },
    async (t) => {
      const { path, url } = databaseFile(t);
      await fill(path, 0);
      const copy = join(tempFolder(t), 'backup.db');
      const backup = await run(['backup', copy, '--database', url], toFull);
      assert.equal(backup.status, 1, backup.stderr);
      assert.match(backup.stderr, lost);
      assert.equal(backup.stderr.match(/^error:/gm)?.length, 1, backup.stderr);
      const { status, stderr } = await run(['token', 'create', 'alice', '--database', url], toFull);
      assert.equal(status, 1);
      assert.match(stderr, lost);
      const message =
        /^error: Token (\w{9}-\w{16}) could not be printed, so it was revoked\. Create another\.$/m;
      const [, id = ''] = message.exec(stderr) ?? [];
      const list = await runOk(['token', 'list', '--database', url]);
      assert.match(list, new RegExp(`^${id} .* revoked$`, 'm'));
    },
  );

  it('succeeds without a message if its reader closes the pipe, unless a token is lost', async (t) => {
    const { url } = databaseFile(t);
    const child = start(['token', 'create', 'alice', '--database', url]);
    child.stdout.destroy();
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text) => (stderr += String(text)));
    assert.deepEqual(await once(child, 'close'), [1, null]);
    // Except for a message about the token.
    assert.match(
      stderr,
      /^Database: .*\nCreated token .*\nerror: Token \w{9}-\w{16} could not be printed, so it was revoked.*\n$/,
    );
    const help = start(['--help']);
    help.stdout.destroy();
    help.stderr.setEncoding('utf8').on('data', (text) => assert.fail(String(text)));
    assert.deepEqual(await once(help, 'close'), [0, null]);
  });

  it('fails if only part of it fits into a file', async (t) => {
    const file = join(tempFolder(t), 'help');
    const limited = { under: under(`ulimit -f 1; exec >'${file}'`) }; // 512 or 1,024 bytes
    const { status, stderr } = await run(['serve', '--help'], limited);
    assert.equal(status, 1);
    assert.match(stderr, /^error: Cannot write the output: EFBIG: .*\.$/m);
  });
});
