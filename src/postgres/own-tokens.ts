/**
 * Tokens that users create for themselves in PostgreSQL, and when tokens were used.
 */
import { formatScopes, type Grant } from '../access.ts';
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
import { prepared } from './connection.ts';
import type { Cluster } from './cluster.ts';
import type { BoundStatement, Pool } from './pool.ts';
import { settled } from './settled.ts';
import { changeGrantsVersion } from './grants.ts';
import { tokenSql } from './tokens.ts';

type StateRow = readonly [line: string | null, expiresAt: number | null, revokedAt: number | null];

export const ownTokenSql = {
  find: prepared<StateRow>(
    'find_own_token',
    `
      SELECT family, expires_at, revoked_at FROM plant_store.store_tokens
      WHERE store = $1 AND hash = $2`,
  ),
  count: prepared<CountedToken>(
    'count_own_tokens',
    `
      SELECT hash, created_at, expires_at, revoked_at FROM plant_store.store_tokens
      WHERE store = $1 AND user_id = $2 ORDER BY hash LIMIT ${maxCountedTokens}`,
  ),
  delete: prepared(
    'delete_own_tokens',
    'DELETE FROM plant_store.store_tokens WHERE store = $1 AND hash = ANY ($2::bytea[])',
  ),
  recordUses: prepared(
    'record_uses',
    `
      UPDATE plant_store.store_tokens SET last_used_at = $2
      WHERE store = $1 AND hash = ANY ($3::bytea[]) AND (last_used_at IS NULL OR last_used_at < $2)`,
  ),
};

export class OwnTokens {
  readonly #cluster: Cluster;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  /** Returns false if the token of the grant is not active. */
  async create({ tokenHash: by, caller, tokenId }: Grant, token: OwnToken): Promise<boolean> {
    const { store, user } = caller;
    const { scopes, label, createdAtMs, expiresAtMs } = token;
    const hash = Buffer.from(token.hash);
    const columns = [formatScopes(scopes), label, createdAtMs, expiresAtMs ?? null];
    let isRefused = false;
    let isFull = false;
    // The first statement locks the row of the store: what the others read does not change until the commit.
    const first: BoundStatement[] = [
      changeGrantsVersion(store),
      [ownTokenSql.find, [store, Buffer.from(by)]],
      [ownTokenSql.count, [store, user]],
    ];
    await this.#cluster.ofStore(store).transactInTwo(first, ([, found = [], counted = []]) => {
      const [asking] = found as unknown as StateRow[]; // the rows of `find`
      const tokens = counted as unknown as CountedToken[]; // the rows of `count`
      if (tokens.some(([each]) => hash.equals(each))) return []; // an earlier attempt was committed
      const [line = null, ...times] = asking ?? [];
      isRefused =
        asking === undefined || !isActive(times[0] ?? null, times[1] ?? null, createdAtMs);
      if (isRefused) return [];
      const ended = tokensToDelete(tokens, createdAtMs);
      isFull = ended === undefined;
      if (ended === undefined) return [];
      const values = [store, hash, user, lineBelow(line, tokenId), ...columns];
      const add: BoundStatement = [tokenSql.addToken, values];
      return ended.length === 0 ? [add] : [[ownTokenSql.delete, [store, ended]], add];
    });
    if (isFull) throw tooManyTokens();
    return !isRefused;
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
