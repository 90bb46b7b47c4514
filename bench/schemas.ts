/**
 * The schemas of the two SQLite databases, and how users, tokens and plants are inserted.
 */
import { readFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { defaultScopes, formatScopes } from '../src/access/access.ts';
import { openDatabase } from '../src/sqlite/file/open.ts';
import { hashToken } from '../src/access/token.ts';

export interface Schema {
  /** The argument with which its server opens the file. */
  address(path: string): string;
  /** Opens the file, or creates it with all tables. */
  open(path: string): DatabaseSync;
  /** Creates the users 1, 2, 3, ..., each with one of the tokens. */
  addUsers(database: DatabaseSync, tokens: readonly string[]): void;
  /** Inserts the rows of generatePlantsSql(). */
  insertGenerated: string;
  /** Records that ids up to `:id` have been used, if the schema stores that. */
  raiseLastId?: string;
  /** Deletes every plant with an id above `:id`. */
  deleteAbove: string;
}

/** The only store, which all tokens name. */
export const storeNumber = 1;

const service: Schema = {
  address: (path) => `sqlite:${path}`,
  open: (path) => openDatabase(path, { create: true }),
  addUsers(database, tokens) {
    database.exec(`
      INSERT INTO stores (store, name, last_user)
      VALUES (${storeNumber}, 'main', ${tokens.length})`);
    const addUser = database.prepare(
      `INSERT INTO users (store, id, name, role) VALUES (${storeNumber}, ?, ?, 'member')`,
    );
    const addToken = database.prepare(`
      INSERT INTO tokens (hash, store, user_id, scopes, label, created_at)
      VALUES (?, ${storeNumber}, ?, '${formatScopes(defaultScopes)}', '', 0)`);
    for (const [at, token] of tokens.entries()) {
      addUser.run(at + 1, `member ${at + 1}`);
      addToken.run(hashToken(token), at + 1);
    }
  },
  insertGenerated: `
    INSERT INTO plants (store, id, owner, tag, name)
    SELECT ${storeNumber}, id, owner, tag, name FROM generated`,
  raiseLastId: `UPDATE stores SET last_id = :id WHERE store = ${storeNumber}`,
  deleteAbove: `DELETE FROM plants WHERE store = ${storeNumber} AND id > :id`,
};

const typicalSchema = new URL('./peers/schema.sql', import.meta.url);

const typical: Schema = {
  address: (path) => path,
  open(path) {
    const database = new DatabaseSync(path, { timeout: 5_000 });
    database.exec('PRAGMA journal_mode = WAL');
    database.exec(readFileSync(typicalSchema, 'utf8'));
    return database;
  },
  addUsers(database, tokens) {
    const addUser = database.prepare('INSERT INTO users (id, name) VALUES (?, ?)');
    const addToken = database.prepare('INSERT INTO tokens (hash, user_id) VALUES (?, ?)');
    for (const [at, token] of tokens.entries()) {
      addUser.run(at + 1, `member ${at + 1}`);
      addToken.run(hashToken(token), at + 1);
    }
  },
  insertGenerated: `
    INSERT INTO plants (id, owner_id, tag, name) SELECT id, owner, tag, name FROM generated`,
  deleteAbove: 'DELETE FROM plants WHERE id > :id',
};

export const schemas = { service, typical };
