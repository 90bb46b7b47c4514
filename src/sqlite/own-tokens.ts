/**
 * Tokens that users create for themselves in SQLite, and when tokens were used. The caller begins and ends
 * transactions.
 */
import type { DatabaseSync } from 'node:sqlite';
import { formatScopes, type Caller, type Grant } from '../access.ts';
import type { TokenUse } from '../identity-storage.ts';
import {
  lineBelow,
  maxCountedTokens,
  tokensToDelete,
  type CountedToken,
  type OwnToken,
} from '../own-tokens.ts';
import { tooManyTokens } from '../problem.ts';
import { prepare, type Statement } from './statement.ts';
import { tokenSql } from './tokens.ts';

export const ownTokenSql = {
  line: 'SELECT family FROM tokens WHERE hash = ?',
  count: `
    SELECT hash, created_at, expires_at, revoked_at FROM tokens INDEXED BY tokens_by_user
    WHERE store = ? AND user = ? ORDER BY hash LIMIT ${maxCountedTokens}`,
  delete: 'DELETE FROM tokens WHERE hash = ?',
  recordUse: `
    UPDATE tokens SET last_used_at = ?2
    WHERE hash = ?1 AND (last_used_at IS NULL OR last_used_at < ?2)`,
};

/** What is needed of the grant with which a token is created. */
export type Creator = Pick<Caller, 'store' | 'user' | 'identified'> &
  Pick<Grant, 'tokenHash' | 'tokenId'>;

export class OwnTokens {
  readonly #line: Statement<[line: string | null]>;
  readonly #count: Statement<CountedToken>;
  readonly #delete: Statement;
  readonly #add: Statement;
  readonly #recordUse: Statement;

  constructor(database: DatabaseSync) {
    this.#line = prepare(database, ownTokenSql.line);
    this.#count = prepare(database, ownTokenSql.count);
    this.#delete = prepare(database, ownTokenSql.delete);
    this.#add = prepare(database, tokenSql.addToken);
    this.#recordUse = prepare(database, ownTokenSql.recordUse);
  }

  create({ tokenHash: by, tokenId, store, user }: Creator, token: OwnToken): void {
    const { hash, scopes, label, createdAtMs, expiresAtMs } = token;
    const [line = null] = this.#line.get(by) ?? [];
    const ended = tokensToDelete(this.#count.all(store, user), createdAtMs);
    if (ended === undefined) throw tooManyTokens();
    for (const each of ended) this.#delete.run(each);
    const columns = [
      lineBelow(line, tokenId),
      formatScopes(scopes),
      label,
      createdAtMs,
      expiresAtMs ?? null,
    ];
    this.#add.run(hash, store, user, ...columns);
  }

  recordUses(uses: readonly TokenUse[]): void {
    for (const { hash, usedAtMs } of uses) this.#recordUse.run(hash, usedAtMs);
  }
}
