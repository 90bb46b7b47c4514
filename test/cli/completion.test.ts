/**
 * `completion` in real shells.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { executable, run, runOk } from '../support/command.ts';
import { without } from '../support/programs.ts';
import { tempFolder } from '../support/temp.ts';

/** What a shell does to complete its last argument, which can be empty; prints a word per line. */
const shells = {
  bash: `export COMP_LINE="$*"
    $(complete -p plant-store | sed "s/.* -C '\\(.*\\)' .*/\\1/") plant-store "\${@: -1}" "\${@: -2:1}"`,
  fish: `complete -C (string join -- ' ' $argv) | string replace -r '\\t.*' ''`,
};

async function completions(t: TestContext, shell: keyof typeof shells) {
  const script = await runOk(['completion', shell]);
  const folder = tempFolder(t);
  const file = join(folder, 'completion');
  writeFileSync(file, `${script}\n${shells[shell]}\n`);
  symlinkSync(executable, join(folder, 'plant-store'));
  const path = [folder, dirname(process.execPath), process.env['PATH']].join(delimiter);
  return (...words: string[]) => {
    const { stdout, stderr } = spawnSync(shell, [file, 'plant-store', ...words], {
      cwd: folder,
      env: { ...process.env, PATH: path },
      encoding: 'utf8',
    });
    assert.equal(stderr, '');
    return stdout.split('\n').filter((word) => word !== '');
  };
}

describe('completion', { concurrency: 2 }, () => {
  for (const shell of ['bash', 'fish'] as const) {
    const skip = without(shell);
    it(`of ${shell} completes commands, flags and choices`, { skip }, async (t) => {
      const complete = await completions(t, shell);
      const all = complete('');
      for (const command of ['serve', 'token', 'plants', 'completion']) {
        assert.ok(all.includes(command), command);
      }
      assert.deepEqual(complete('tok'), ['token']);
      assert.deepEqual(complete('token', 'cr'), ['create']);
      assert.deepEqual(complete('token', 'create', 'alice', '--ro'), ['--role']);
      const roles = complete('token', 'create', 'alice', '--role', '');
      assert.deepEqual(new Set(roles), new Set(['member', 'manager']));
      assert.deepEqual(complete('share', 'alice', 'bob', 'w'), ['write']);
      assert.deepEqual(complete('completion', 'fi'), ['fish']);
      assert.deepEqual(complete('plants', 'list', '--cs'), ['--csv']);
      const files = shell === 'fish' ? ['completion'] : []; // bash adds them itself
      assert.deepEqual(complete('backup', 'comp'), files);
    });
  }

  it('of another shell is refused', async () => {
    const { status, stderr } = await run(['completion', 'tcsh']);
    assert.equal(status, 2);
    assert.match(stderr, /Allowed choices are bash, zsh, fish\./);
  });
});
