/**
 * With --json, each command prints its result as one line of JSON on standard output.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { it } from 'node:test';
import { isToken } from '../../src/access/token.ts';
import { runOk } from '../support/command.ts';
import { databaseFile } from '../support/database.ts';

const timestamp = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** Runs a command with --json and returns the value that it prints. */
async function jsonOf(args: readonly string[]) {
  const printed = await runOk([...args, '--json']);
  assert.doesNotMatch(printed, /\n/);
  return JSON.parse(printed);
}

it('token create, list and revoke print a token as JSON', async (t) => {
  const { url } = databaseFile(t);
  const flags = ['--store', 'north', '--expires', '90d', '--label', 'shop', '--database', url];
  const { token, ...created } = await jsonOf(['token', 'create', 'alice', ...flags]);
  assert.ok(isToken(token));
  const { id, expiresAt } = created;
  assert.match(expiresAt, timestamp);
  const scopes = ['plants:read', 'plants:write'];
  const value = { id, user: 'alice', store: 'north', scopes, label: 'shop', expiresAt };
  assert.deepEqual(created, value);

  const [{ createdAt, ...listed }, ...others] = await jsonOf(['token', 'list', '--database', url]);
  assert.deepEqual(others, []);
  assert.match(createdAt, timestamp);
  const shown = { ...value, role: 'member' };
  assert.deepEqual(listed, { ...shown, state: 'active' });

  const { revokedAt, ...revoked } = await jsonOf(['token', 'revoke', id, '--database', url]);
  assert.match(revokedAt, timestamp);
  assert.deepEqual(revoked, { ...shown, state: 'revoked', createdAt });
  assert.deepEqual(await jsonOf(['shares', '--store', 'north', '--database', url]), []);
});

it('migrate, backup, restore and copy print what they did as JSON', async (t) => {
  const { folder, path, url } = databaseFile(t);
  const [file, other] = [join(folder, 'plants.backup'), join(folder, 'other.db')];
  for (const created of [true, false]) {
    assert.deepEqual(await jsonOf(['migrate', '--database', url]), { database: path, created });
  }
  await runOk(['token', 'create', 'alice', '--database', url]);
  const backup = await jsonOf(['backup', file, '--database', url]);
  assert.deepEqual(backup, { database: path, file });
  const { previous, ...restored } = await jsonOf(['restore', file, '--database', url]);
  assert.deepEqual(restored, { database: path, file });
  assert.ok(previous.startsWith(`${path}.before-restore-`));
  const { sha256, ...copied } = await jsonOf(['copy', '--from', url, '--to', `sqlite:${other}`]);
  assert.match(sha256, /^[0-9a-f]{64}$/);
  const rows = {
    stores: 1,
    users: 1,
    plants: 0,
    changes: 2,
    idempotency_keys: 0,
    shares: 0,
    tokens: 1,
  };
  assert.deepEqual(copied, { from: path, to: other, rows });
});
