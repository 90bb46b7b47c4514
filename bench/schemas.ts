/**
 * The tables of the service and of the typical system, on both storages: how users, tokens and plants are inserted.
 */
import { formatScopes, scopes } from '../src/access/access.ts';
import { keyOf } from '../src/postgres/tables/names.ts';

/** All of it is SQL. */
export interface Schema {
  /** Creates the users 1, 2, 3, ..., each with a token, from the table hashes (number, hash). */
  addUsers: string;
  /** Inserts the rows of generatePlantsSql(). The service treats plants at position 0 as those of another program. */
  insertGenerated: string;
  /** Deletes the plants with ids above the number that follows. */
  deleteAbove: string;
  /** Records a change by another process, and that ids up to `lastId` are in use. */
  changed?: (lastId: number) => string;
}

/** The only store, which all tokens name. */
export const storeNumber = 1;
const granted = `'${formatScopes(scopes)}', '', 0`;

const sqliteService: Schema = {
  addUsers: `
    INSERT INTO stores (store, name, last_user)
    SELECT ${storeNumber}, 'main', count(*) FROM hashes;
    INSERT INTO users (store, id, name, role)
    SELECT ${storeNumber}, number, 'member ' || number, 'member' FROM hashes;
    INSERT INTO tokens (hash, store, user_id, scopes, label, created_at)
    SELECT hash, ${storeNumber}, number, ${granted} FROM hashes;`,
  insertGenerated: `
    INSERT INTO plants (store, id, owner, tag, name, position)
    SELECT ${storeNumber}, id, owner, tag, name, id FROM generated;`,
  deleteAbove: `DELETE FROM plants WHERE store = ${storeNumber} AND id >`,
  changed: (lastId) => `UPDATE stores SET last_id = max(last_id, ${lastId});`,
};

const postgresService: Schema = {
  addUsers: `
    INSERT INTO plant_store.named_stores (key, name, store)
    VALUES (${keyOf('main')}, 'main', ${storeNumber});
    INSERT INTO plant_store.stores (store, name, last_user)
    SELECT ${storeNumber}, 'main', count(*) FROM hashes;
    INSERT INTO plant_store.users (store, id, name, role)
    SELECT ${storeNumber}, number, 'member ' || number, 'member' FROM hashes;
    INSERT INTO plant_store.tokens (store, hash, user_id, scopes, label, created_at)
    SELECT ${storeNumber}, hash, number, ${granted} FROM hashes;`,
  insertGenerated: `
    INSERT INTO plant_store.plants (store, id, owner, tag, name, position)
    SELECT ${storeNumber}, id, owner, tag, name, id FROM generated;`,
  deleteAbove: 'DELETE FROM plant_store.plants WHERE id >',
  changed: (lastId) => `
    UPDATE plant_store.stores
    SET position = position + 1, last_id = greatest(last_id, ${lastId});`,
};

const typical: Schema = {
  addUsers: `
    INSERT INTO users (id, name) SELECT number, 'member ' || number FROM hashes;
    INSERT INTO tokens (hash, user_id) SELECT hash, number FROM hashes;`,
  insertGenerated: `
    INSERT INTO plants (id, owner_id, tag, name) SELECT id, owner, tag, name FROM generated;`,
  deleteAbove: 'DELETE FROM plants WHERE id >',
};

export const schemas = {
  sqlite: { service: sqliteService, typical },
  postgres: {
    service: postgresService,
    typical: {
      ...typical,
      changed: (lastId: number) => `SELECT setval('plants_id_seq', ${lastId});`,
    },
  },
};
