/**
 * `completion` in a real shell.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { it, type TestContext } from 'node:test';
import { executable, runOk } from '../support/command.ts';
import { without } from '../support/programs.ts';
import { tempFolder } from '../support/temp.ts';

/** What bash does to complete its last argument, which can be empty; prints a word per line. */
const completeLast = `export COMP_LINE="$*"
  $(complete -p plant-store | sed "s/.* -C '\\(.*\\)' .*/\\1/") plant-store "\${@: -1}" "\${@: -2:1}"`;

async function completions(t: TestContext) {
  const script = await runOk(['completion', 'bash']);
  const folder = tempFolder(t);
  const file = join(folder, 'completion');
  writeFileSync(file, `${script}\n${completeLast}\n`);
  symlinkSync(executable, join(folder, 'plant-store'));
  const path = [folder, dirname(process.execPath), process.env['PATH']].join(delimiter);
  return (...words: string[]) => {
    const { stdout, stderr } = spawnSync('bash', [file, 'plant-store', ...words], {
      cwd: folder,
      env: { ...process.env, PATH: path },
      encoding: 'utf8',
    });
    assert.equal(stderr, '');
    return stdout.split('\n').filter((word) => word !== '');
  };
}

it('completes commands, flags and choices', { skip: without('bash') }, async (t) => {
  const complete = await completions(t);
  const all = complete('');
  for (const command of ['serve', 'token', 'plants', 'completion'])
    assert.ok(all.includes(command));
  assert.deepEqual(complete('token', 'cr'), ['create']);
  assert.deepEqual(complete('token', 'create', 'alice', '--ro'), ['--role']);
  const roles = complete('token', 'create', 'alice', '--role', '');
  assert.deepEqual(new Set(roles), new Set(['member', 'manager']));
  assert.deepEqual(complete('share', 'alice', 'bob', 'w'), ['write']);
  assert.deepEqual(complete('backup', 'comp'), []); // bash adds files itself
});
