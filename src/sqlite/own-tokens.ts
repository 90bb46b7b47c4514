/**
 * Tokens that users create for themselves in SQLite, and when tokens were used. The caller begins and ends
 * transactions.
 */
import type { DatabaseSync } from 'node:sqlite';
import { formatScopes, type Grant, type Identity } from '../access.ts';
import type { TokenUse } from '../identity-storage.ts';
import {
  isActive,
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
  find: `
    SELECT family, expires_at, revoked_at FROM tokens
    WHERE hash = ?`,
  count: `
    SELECT hash, created_at, expires_at, revoked_at FROM tokens INDEXED BY tokens_by_user
    WHERE store = ? AND user = ? ORDER BY hash LIMIT ${maxCountedTokens}`,
  delete: 'DELETE FROM tokens WHERE hash = ?',
  recordUse: `
    UPDATE tokens SET last_used_at = ?2
    WHERE hash = ?1 AND (last_used_at IS NULL OR last_used_at < ?2)`,
};

/** What is needed of the grant with which a token is created. */
export type Creator = Identity & Pick<Grant, 'tokenHash' | 'tokenId'>;

export class OwnTokens {
  readonly #find: Statement<
    [line: string | null, expiresAt: number | null, revokedAt: number | null]
  >;
  readonly #count: Statement<CountedToken>;
  readonly #delete: Statement;
  readonly #add: Statement;
  readonly #recordUse: Statement;

  constructor(database: DatabaseSync) {
    this.#find = prepare(database, ownTokenSql.find);
    this.#count = prepare(database, ownTokenSql.count);
    this.#delete = prepare(database, ownTokenSql.delete);
    this.#add = prepare(database, tokenSql.addToken);
    this.#recordUse = prepare(database, ownTokenSql.recordUse);
  }

  /** Returns false if the token of the grant is not active. */
  create({ tokenHash: by, tokenId, store, user }: Creator, token: OwnToken): boolean {
    const { hash, scopes, label, createdAtMs, expiresAtMs } = token;
    const found = this.#find.get(by);
    if (found === undefined) return false;
    const [line, ...times] = found;
    if (!isActive(...times, createdAtMs)) return false;
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
    return true;
  }

  recordUses(uses: readonly TokenUse[]): void {
    for (const { hash, usedAtMs } of uses) this.#recordUse.run(hash, usedAtMs);
  }
}
