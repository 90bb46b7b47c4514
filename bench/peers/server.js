/**
 * The typical service on SQLite: the same API as it is usually written, on Express and better-sqlite3. It is
 * correct: each request looks up its token, and each commit is synced. `node server.js FILE` prints its URL.
 */
import { readFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import express from 'express';
import { faultOfChange, faultOfList, faultOfPlant, isCount, refuse, tokenHash } from './checks.js';

const database = new Database(process.argv[2]);
database.pragma('journal_mode = WAL');
database.pragma('synchronous = FULL');
database.pragma('foreign_keys = ON');
database.exec(readFileSync(new URL('schema.sql', import.meta.url), 'utf8'));

const findUser = database.prepare('SELECT user_id FROM tokens WHERE hash = ?').pluck();
const listPlants = database.prepare(
  'SELECT name, tag FROM plants WHERE owner_id = ? AND id > ? ORDER BY id LIMIT ?',
);
const insertPlant = database.prepare(
  'INSERT INTO plants (id, owner_id, name, tag) VALUES (?, ?, ?, ?)',
);
const updatePlant = database.prepare(`
  UPDATE plants SET name = coalesce(?, name), tag = coalesce(?, tag) WHERE id = ? AND owner_id = ?
  RETURNING name, tag`);
const deletePlant = database.prepare('DELETE FROM plants WHERE id = ? AND owner_id = ?');

const app = express();
app.use(authenticate);
app.use(express.json({ limit: '16kb' }));

app.get('/plants', (request, response) => {
  const { limit = -1, after = 0 } = request.query; // SQLite takes -1 as no limit
  const fault = faultOfList(request.query);
  if (fault !== undefined) return refuse(response, 400, fault);
  response.json(listPlants.all(request.userId, Number(after), Number(limit)));
});

app.post('/plants', (request, response) => {
  const { id, name, tag = '' } = request.body ?? {};
  const fault = faultOfPlant({ id, name, tag });
  if (fault !== undefined) return refuse(response, 400, fault);
  try {
    const { lastInsertRowid } = insertPlant.run(id ?? null, request.userId, name, tag);
    response.status(201).location(`/plants/${lastInsertRowid}`).json({ name, tag });
  } catch (error) {
    if (error.code !== 'SQLITE_CONSTRAINT_PRIMARYKEY') throw error;
    refuse(response, 409, 'id is taken');
  }
});

app.patch('/plants/:id', (request, response) => {
  const { id } = request.params;
  const { name, tag } = request.body ?? {};
  const fault = isCount(id) ? faultOfChange({ name, tag }) : 'invalid id';
  if (fault !== undefined) return refuse(response, 400, fault);
  const plant = updatePlant.get(name ?? null, tag ?? null, Number(id), request.userId);
  if (plant === undefined) return refuse(response, 404, 'no such plant');
  response.json(plant);
});

app.delete('/plants/:id', (request, response) => {
  const { id } = request.params;
  if (!isCount(id)) return refuse(response, 400, 'invalid id');
  const { changes } = deletePlant.run(Number(id), request.userId);
  if (changes === 0) return refuse(response, 404, 'no such plant');
  response.status(204).end();
});

const server = app.listen(0, '127.0.0.1', () => {
  console.log(`typical listens on http://127.0.0.1:${server.address().port}`);
});

function authenticate(request, response, next) {
  const hash = tokenHash(request);
  const userId = hash === undefined ? undefined : findUser.get(hash);
  if (userId === undefined) return refuse(response, 401, 'invalid token');
  request.userId = userId;
  next();
}
