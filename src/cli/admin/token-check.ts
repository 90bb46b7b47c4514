import { createInterface } from 'node:readline';
import { stateOf, type Grant } from '../../access.ts';
import { Refusal } from '../../refusal.ts';
import { formatTimestamp } from '../../timestamp.ts';
import { credentialOf, tokenFault, tokenId } from '../../token.ts';
import { displayName, openExisting, openStorage } from '../database.ts';
import { io, printResult } from '../output.ts';
import { program } from '../program.ts';

interface CheckOptions {
  database: string;
  /** Whether to check only the checksum if there is no database. */
  canBeMissing: boolean;
  json?: true | undefined;
}

/** More than any token has. The rest is not read. */
const maxInputChars = 1_000;

/**
 * Prints what is known about a token, for example after it was found in a log. The token is never an argument, which
 * other users of the machine could see, and is never printed.
 */
export async function checkToken(options: CheckOptions): Promise<void> {
  const text = await readText();
  const fault = tokenFault(text);
  if (fault !== undefined) throw new Refusal(`This is not a Plant Store token: ${fault}.`);
  const credential = credentialOf(text);
  const id = tokenId(credential.tokenHash, credential.store);
  const { database, canBeMissing } = options;
  await using storage = canBeMissing
    ? await openExisting(database)
    : await openStorage(database, { create: false });
  const name = displayName(database);
  if (storage === undefined) {
    const unknown = `There is no database at ${name}: set --database to see whose it is.`;
    return printResult(
      options,
      { id },
      `This is a Plant Store token with the id ${id}. ${unknown}`,
    );
  }
  const grant = await storage.identity.identify(credential);
  if (grant === undefined) {
    throw new Refusal(
      `This is a Plant Store token with the id ${id}, but ${name} does not contain it.`,
    );
  }
  printResult(options, valueOf(grant), textOf(grant));
}

function valueOf(grant: Grant): object {
  const { tokenId: id, storeName: store, userName: user, role, caller } = grant;
  return {
    id,
    store,
    user,
    role,
    scopes: [...caller.scopes],
    state: stateOf(grant, Date.now()),
    expiresAt: formatTimestamp(grant.expiresAtMs),
    revokedAt: formatTimestamp(grant.revokedAtMs),
  };
}

function textOf(grant: Grant): string {
  const { tokenId: id, storeName, userName, role, caller } = grant;
  const state = stateOf(grant, Date.now());
  const owner = `user ${userName} (${role}) in store ${storeName}`;
  const text = `Token ${id} of ${owner} is ${state}. Scopes: ${[...caller.scopes].join()}.`;
  return state === 'active' ? `${text}\nTo revoke it: ${program} token revoke ${id}` : text;
}

/** Standard input without spaces and line breaks around it, or one line from a terminal. */
async function readText(): Promise<string> {
  const { stdin, stderr } = io;
  if (stdin.isTTY) {
    stderr.write('Paste the token, then press Enter: ');
    const lines = createInterface({ input: stdin });
    try {
      for await (const line of lines) return line;
      return '';
    } finally {
      lines.close(); // otherwise the terminal keeps the process running
    }
  }
  let text = '';
  for await (const chunk of stdin.setEncoding('utf8')) {
    text += String(chunk);
    if (text.length > maxInputChars) break;
  }
  return text.trim();
}
