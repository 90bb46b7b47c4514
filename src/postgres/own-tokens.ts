/**
 * Tokens that users create for themselves in PostgreSQL, and when tokens were used. Every statement is simple enough
 * for a cluster whose tokens are on other nodes than their stores.
 */
import { formatScopes, type Grant } from '../access.ts';
import type { TokenUse } from '../identity-storage.ts';
import {
  isActive,
  maxCountedTokens,
  tokensToDelete,
  type CountedToken,
  type OwnToken,
} from '../own-tokens.ts';
import { tooManyTokens } from '../problem.ts';
import { lastHashOf } from '../token.ts';
import { prepared } from './connection.ts';
import type { BoundStatement, Pool } from './pool.ts';
import { changeGrantsVersion, tokenSql } from './tokens.ts';

type StateRow = readonly [expiresAt: number | null, revokedAt: number | null];

export const ownTokenSql = {
  find: prepared<StateRow>(
    'find_own_token',
    `
      SELECT expires_at, revoked_at FROM plant_store.tokens
      WHERE hash BETWEEN $1 AND $2`,
  ),
  count: prepared<CountedToken>(
    'count_own_tokens',
    `
      SELECT hash, created_at, expires_at, revoked_at FROM plant_store.tokens
      WHERE store = $1 AND user_id = $2 ORDER BY hash LIMIT ${maxCountedTokens}`,
  ),
  delete: prepared(
    'delete_own_tokens',
    'DELETE FROM plant_store.tokens WHERE hash = ANY ($1::bytea[])',
  ),
  recordUses: prepared(
    'record_uses',
    `
      UPDATE plant_store.tokens SET last_used_at = used.at
      FROM unnest($2::bytea[], $3::bytea[], $4::bigint[]) AS used (first, last, at)
      WHERE tokens.hash BETWEEN used.first AND used.last AND tokens.store = $1
        AND (tokens.last_used_at IS NULL OR tokens.last_used_at < used.at)`,
  ),
};

export class OwnTokens {
  readonly #pool: Pool;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** Returns false if the token of the grant is not active. */
  async create({ tokenId: by, caller }: Grant, token: OwnToken): Promise<boolean> {
    const { store, user } = caller;
    const { scopes, label, createdAtMs, expiresAtMs } = token;
    const hash = Buffer.from(token.hash);
    const columns = [formatScopes(scopes), label, createdAtMs, expiresAtMs ?? null];
    const add: BoundStatement = [tokenSql.addToken, [hash, store, user, ...columns]];
    let isRefused = false;
    let isFull = false;
    // The first statement locks the row of the store: what the others read does not change until the commit.
    const first: BoundStatement[] = [
      changeGrantsVersion(store),
      [ownTokenSql.find, [Buffer.from(by, 'hex'), lastHashOf(by)]],
      [ownTokenSql.count, [store, user]],
    ];
    await this.#pool.transactInTwo(first, ([, found = [], counted = []]) => {
      const [asking] = found as unknown as StateRow[]; // the rows of `find`
      const tokens = counted as unknown as CountedToken[]; // the rows of `count`
      if (tokens.some(([each]) => hash.equals(each))) return []; // an earlier attempt was committed
      isRefused = asking === undefined || !isActive(...asking, createdAtMs);
      if (isRefused) return [];
      const ended = tokensToDelete(tokens, createdAtMs);
      isFull = ended === undefined;
      if (ended === undefined) return [];
      return ended.length === 0 ? [add] : [[ownTokenSql.delete, [ended]], add];
    });
    if (isFull) throw tooManyTokens();
    return !isRefused;
  }

  /** One statement for each store, whose uses are in ascending order of id, so that processes do not deadlock. */
  async recordUses(uses: readonly TokenUse[]): Promise<void> {
    const sorted = uses.toSorted((a, b) => (a.id < b.id ? -1 : 1));
    for (const [store, ofStore] of Map.groupBy(sorted, (use) => use.store)) {
      await this.#pool.write(ownTokenSql.recordUses, [
        store,
        ofStore.map(({ id }) => Buffer.from(id, 'hex')),
        ofStore.map(({ id }) => lastHashOf(id)),
        ofStore.map(({ usedAtMs }) => usedAtMs),
      ]);
    }
  }
}
