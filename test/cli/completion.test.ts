/**
 * The scripts of `completion`, in real shells.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { run, runOk } from '../support/command.ts';
import { without } from '../support/programs.ts';
import { tempFolder } from '../support/temp.ts';

/** What a shell does to complete its last argument, which can be empty; prints a word per line. */
const shells = {
  bash: `COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
    eval "$(complete -p plant-store | sed 's/.*-F \\([a-z_]*\\) .*/\\1/')"
    printf '%s\\n' "\${COMPREPLY[@]}"`,
  fish: `complete -C (string join -- ' ' $argv) | string replace -r '\\t.*' ''`,
};

async function completions(t: TestContext, shell: keyof typeof shells) {
  const script = await runOk(['completion', shell]);
  const file = join(tempFolder(t), 'completion');
  writeFileSync(file, `${script}\n${shells[shell]}\n`);
  return (...words: string[]) => {
    const { stdout, stderr } = spawnSync(shell, [file, 'plant-store', ...words], {
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
    });
  }

  it('of another shell is refused', async () => {
    const { status, stderr } = await run(['completion', 'tcsh']);
    assert.equal(status, 2);
    assert.match(stderr, /Allowed choices are bash, zsh, fish\./);
  });
});
