/**
 * Tokens that users create for themselves in PostgreSQL, and when tokens were used.
 */
import { formatScopes, type Grant } from '../access.ts';
import type { TokenUse } from '../identity-storage.ts';
import {
  lineBelow,
  maxCountedTokens,
  tokensToDelete,
  type CountedToken,
  type OwnToken,
} from '../own-tokens.ts';
import { tooManyTokens } from '../problem.ts';
import { prepared } from './connection.ts';
import type { Cluster } from './cluster.ts';
import type { BoundStatement, Pool } from './pool.ts';
import { settled } from './settled.ts';
import { changeGrantsVersion, identifyAgain, lineOf, refusalOf } from './grants.ts';
import { tokenSql } from './tokens.ts';

export const ownTokenSql = {
  count: prepared<CountedToken>(
    'count_own_tokens',
    `
      SELECT hash, created_at, expires_at, revoked_at FROM plant_store.tokens
      WHERE store = $1 AND user_id = $2 ORDER BY hash LIMIT ${maxCountedTokens}`,
  ),
  delete: prepared(
    'delete_own_tokens',
    'DELETE FROM plant_store.tokens WHERE store = $1 AND hash = ANY ($2::bytea[])',
  ),
  recordUses: prepared(
    'record_uses',
    `
      UPDATE plant_store.tokens SET last_used_at = $2
      WHERE store = $1 AND hash = ANY ($3::bytea[]) AND (last_used_at IS NULL OR last_used_at < $2)`,
  ),
};

export class OwnTokens {
  readonly #cluster: Cluster;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  async create({ caller, tokenId }: Grant, token: OwnToken): Promise<void> {
    const { store, user } = caller;
    const { scopes, label, createdAtMs, expiresAtMs } = token;
    const hash = Buffer.from(token.hash);
    const columns = [formatScopes(scopes), label, createdAtMs, expiresAtMs ?? null];
    // The first statement locks the row of the store: what the others read does not change until the commit.
    const first: BoundStatement[] = [
      changeGrantsVersion(store),
      [ownTokenSql.count, [store, user]],
      ...identifyAgain(caller),
    ];
    await this.#cluster.ofStore(store).transactInTwo(first, ([, counted = [], found]) => {
      const tokens = counted as unknown as CountedToken[]; // the rows of `count`
      if (tokens.some(([each]) => hash.equals(each))) return []; // an earlier attempt was committed
      const refusal = refusalOf(caller, found);
      if (refusal !== undefined) return refusal;
      const ended = tokensToDelete(tokens, createdAtMs);
      if (ended === undefined) return tooManyTokens();
      const values = [store, hash, user, lineBelow(lineOf(found), tokenId), ...columns];
      const add: BoundStatement = [tokenSql.addToken, values];
      return ended.length === 0 ? [add] : [[ownTokenSql.delete, [store, ended]], add];
    });
  }

  /** On each server by itself, so that one that does not respond delays no others. */
  async recordUses(uses: readonly TokenUse[]): Promise<void> {
    const together = Map.groupBy(uses, ({ store }) => this.#cluster.ofStore(store));
    await settled([...together].map(([server, some]) => recordUses(server, some)));
  }
}

/** One statement for each store and minute. It locks tokens in the order of the index, so none deadlock. */
async function recordUses(server: Pool, uses: readonly TokenUse[]): Promise<void> {
  const together = Map.groupBy(uses, ({ store, usedAtMs }) => `${store} ${usedAtMs}`);
  for (const group of together.values()) {
    const [first] = group;
    const hashes = group.map(({ hash }) => Buffer.from(hash));
    await server.write(ownTokenSql.recordUses, [first?.store, first?.usedAtMs, hashes]);
  }
}
