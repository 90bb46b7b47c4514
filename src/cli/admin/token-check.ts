import { stateOf } from '../../access/access.ts';
import { Refusal } from '../../refusal.ts';
import { formatTimestamp } from '../../shared/timestamp.ts';
import { credentialOf, tokenFault, tokenId } from '../../access/token.ts';
import { displayName, openExisting, openStorage } from '../database.ts';
import type { DatabaseOptions } from '../options.ts';
import { ask, io, printResult, readInput } from '../output.ts';

/**
 * Prints what is known about a token, for example after it was found in a log. The token is never an argument, which
 * other users of the machine could see, and is never printed. If the database can be missing, only the form of the
 * token is checked then.
 */
export async function checkToken(options: DatabaseOptions, canBeMissing: boolean): Promise<void> {
  const text = io.stdin.isTTY
    ? await ask('Paste the token, then press Enter: ')
    : (await readInput('the token', '-')).toString().trim();
  const fault = tokenFault(text);
  if (fault !== undefined) throw new Refusal(`This is not a Plant Store token: ${fault}.`);
  const credential = credentialOf(text);
  const id = tokenId(credential.tokenHash, credential.store);
  const known = `This is a Plant Store token with the id ${id}`;
  const { database } = options;
  const name = displayName(database);
  await using storage = canBeMissing
    ? await openExisting(database)
    : await openStorage(database, { create: false });
  if (storage === undefined) {
    const advice = `There is no database at ${name}. To see whose token this is, set --database.`;
    return printResult(options, { id }, `${known}. ${advice}`);
  }
  const grant = await storage.identity.identify(credential);
  if (grant === undefined) throw new Refusal(`${known}, but ${name} does not contain it.`);
  const { storeName: store, userName: user, role, expiresAtMs, revokedAtMs } = grant;
  const [scopes, state] = [[...grant.caller.scopes], stateOf(grant, Date.now())];
  const expiresAt = formatTimestamp(expiresAtMs);
  const revokedAt = formatTimestamp(revokedAtMs);
  const sentence = `Token ${id} of user ${user} (${role}) in store ${store} is ${state}. Scopes: ${scopes.join()}.`;
  const revoke = state === 'active' ? `\nTo revoke it: npx plant-store token revoke ${id}` : '';
  const value = { id, store, user, role, scopes, state, expiresAt, revokedAt };
  printResult(options, value, sentence + revoke);
}
