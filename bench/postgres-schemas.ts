/**
 * The schemas of the two PostgreSQL databases, and how users, tokens and plants are inserted.
 */
import { readFileSync } from 'node:fs';
import { scopes } from '../src/access.ts';
import { PostgresStorage } from '../src/postgres/storage.ts';
import { hashToken } from '../src/token.ts';
import { query } from '../test/support/postgres.ts';

export interface PostgresSchema {
  /** Creates all tables, and the users 1, 2, 3, ..., each with one of the tokens. */
  addUsers(url: string, tokens: readonly string[]): Promise<void>;
  /** The table of plants. */
  plants: string;
  /** Inserts the rows of generatePlantsSql(). */
  insertGenerated: string;
  /** Records that another process changed plants, and that ids up to `lastId` are in use. */
  changed(lastId: number): string;
}

const service: PostgresSchema = {
  async addUsers(url, tokens) {
    const [first = '', ...others] = tokens;
    await using storage = new PostgresStorage(url);
    const named = { store: 'main', user: 'member 1', label: '' };
    await storage.createToken({ hash: hashToken(first), ...named, scopes, createdAtMs: 0 });
    // Copies the first for all others, because creating them one by one would take minutes.
    await query(
      url,
      `INSERT INTO plant_store.users (store, id, name, role)
       SELECT store, at, 'member ' || at, role
       FROM plant_store.users, generate_series(2, ${tokens.length}) AS at;

       INSERT INTO plant_store.tokens (hash, store, user_id, scopes, label, created_at)
       SELECT decode(hex, 'hex'), store, at + 1, scopes, label, created_at
       FROM plant_store.tokens, ${hashesSql(others)};

       UPDATE plant_store.stores SET last_user = ${tokens.length}`,
    );
  },
  plants: 'plant_store.plants',
  insertGenerated: `
    INSERT INTO plant_store.plants (store, id, owner, tag, name)
    SELECT store, generated.id, owner, tag, generated.name FROM generated, plant_store.stores`,
  changed: (lastId) => `
    UPDATE plant_store.stores
    SET version = version + 1, last_id = greatest(last_id, ${lastId})`,
};

const typicalSchema = new URL('./typical/schema-postgres.sql', import.meta.url);

const typical: PostgresSchema = {
  async addUsers(url, tokens) {
    await query(
      url,
      `${readFileSync(typicalSchema, 'utf8')};

       INSERT INTO users (id, name)
       SELECT at, 'member ' || at FROM generate_series(1, ${tokens.length}) AS at;

       INSERT INTO tokens (hash, user_id) SELECT decode(hex, 'hex'), at FROM ${hashesSql(tokens)}`,
    );
  },
  plants: 'plants',
  insertGenerated: `
    INSERT INTO plants (id, owner_id, tag, name) SELECT id, owner, tag, name FROM generated`,
  changed: (lastId) => `SELECT setval('plants_id_seq', ${lastId})`,
};

export const postgresSchemas = { service, typical };

/** The rows hashes (hex, at), numbered from 1. */
function hashesSql(tokens: readonly string[]): string {
  const all = tokens.map((token) => hashToken(token).toString('hex'));
  return `string_to_table('${all.join()}', ',') WITH ORDINALITY AS hashes (hex, at)`;
}
