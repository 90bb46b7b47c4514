/**
 * The schemas of the two PostgreSQL databases, and how users, tokens and plants are inserted.
 */
import { readFileSync } from 'node:fs';
import { formatScopes, scopes } from '../src/access/access.ts';
import { keyOf } from '../src/postgres/tables/names.ts';
import { PostgresStorage } from '../src/postgres/storage.ts';
import { hashToken } from '../src/access/token.ts';
import { query } from '../test/support/postgres.ts';
import { storeNumber } from './schemas.ts';

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
    await using storage = new PostgresStorage(url);
    await storage.open(); // to create the schema
    await query(
      url,
      `INSERT INTO plant_store.named_stores (key, name, store)
       VALUES (${keyOf('main')}, 'main', ${storeNumber});

       INSERT INTO plant_store.stores (store, name, last_user)
       VALUES (${storeNumber}, 'main', ${tokens.length});

       INSERT INTO plant_store.users (store, id, name, role)
       SELECT ${storeNumber}, at, 'member ' || at, 'member'
       FROM generate_series(1, ${tokens.length}) AS at;

       INSERT INTO plant_store.tokens
         (store, hash, user_id, scopes, label, created_at)
       SELECT ${storeNumber}, decode(hex, 'hex'), at, '${formatScopes(scopes)}', '', 0
       FROM ${hashesSql(tokens)}`,
    );
  },
  plants: 'plant_store.plants',
  insertGenerated: `
    INSERT INTO plant_store.plants (store, id, owner, tag, name)
    SELECT store, generated.id, owner, tag, generated.name FROM generated, plant_store.stores`,
  changed: (lastId) => `
    UPDATE plant_store.stores
    SET position = position + 1, last_id = greatest(last_id, ${lastId})`,
};

const typicalSchema = new URL('./peers/schema-postgres.sql', import.meta.url);

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
