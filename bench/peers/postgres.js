/**
 * The typical service on PostgreSQL: the same API as it is usually written, on Express and a pool of pg. It is
 * correct and not slowed down: each request looks up its token, each statement is prepared once, and each commit
 * is synced. `node postgres.js URL` prints its URL.
 */
/* oxlint-disable oxc/no-async-endpoint-handlers -- Express 5 handles what they reject with. */
import { readFileSync } from 'node:fs';
import express from 'express';
import { Pool } from 'pg';
import { faultOfChange, faultOfList, faultOfPlant, isCount, refuse, tokenHash } from './checks.js';

const findUser = { name: 'find_user', text: 'SELECT user_id FROM tokens WHERE hash = $1' };
const listPlants = {
  name: 'list_plants',
  text: 'SELECT name, tag FROM plants WHERE owner_id = $1 AND id > $2 ORDER BY id LIMIT $3',
};
const insertPlant = {
  name: 'insert_plant',
  text: 'INSERT INTO plants (owner_id, name, tag) VALUES ($1, $2, $3) RETURNING id',
};
const insertPlantAs = {
  name: 'insert_plant_as',
  text: 'INSERT INTO plants (owner_id, name, tag, id) VALUES ($1, $2, $3, $4) RETURNING id',
};
const updatePlant = {
  name: 'update_plant',
  text: `UPDATE plants SET name = coalesce($1, name), tag = coalesce($2, tag)
    WHERE id = $3 AND owner_id = $4 RETURNING name, tag`,
};
const deletePlant = {
  name: 'delete_plant',
  text: 'DELETE FROM plants WHERE id = $1 AND owner_id = $2',
};
const uniqueViolation = '23505';

const pool = new Pool({ connectionString: process.argv[2], max: 20 });
pool.on('error', (error) => console.error(error)); // of an idle connection, which the pool replaces
await pool.query(readFileSync(new URL('schema-postgres.sql', import.meta.url), 'utf8'));

const app = express();
app.use(authenticate);
app.use(express.json({ limit: '16kb' }));

app.get('/plants', async (request, response) => {
  const { limit = null, after = '0' } = request.query; // PostgreSQL takes null as no limit
  const fault = faultOfList(request.query);
  if (fault !== undefined) return refuse(response, 400, fault);
  const { rows } = await pool.query({ ...listPlants, values: [request.userId, after, limit] });
  response.json(rows);
});

app.post('/plants', async (request, response) => {
  const { id, name, tag = '' } = request.body ?? {};
  const fault = faultOfPlant({ id, name, tag });
  if (fault !== undefined) return refuse(response, 400, fault);
  try {
    const values = [request.userId, name, tag];
    const { rows } =
      id === undefined
        ? await insertWithNextId(values)
        : await pool.query({ ...insertPlantAs, values: [...values, id] });
    response.status(201).location(`/plants/${rows[0].id}`).json({ name, tag });
  } catch (error) {
    if (error.code !== uniqueViolation) throw error;
    refuse(response, 409, 'id is taken');
  }
});

app.patch('/plants/:id', async (request, response) => {
  const { id } = request.params;
  const { name, tag } = request.body ?? {};
  const fault = isCount(id) ? faultOfChange({ name, tag }) : 'invalid id';
  if (fault !== undefined) return refuse(response, 400, fault);
  const { rows } = await pool.query({ ...updatePlant, values: [name, tag, id, request.userId] });
  if (rows.length === 0) return refuse(response, 404, 'no such plant');
  response.json(rows[0]);
});

app.delete('/plants/:id', async (request, response) => {
  const { id } = request.params;
  if (!isCount(id)) return refuse(response, 400, 'invalid id');
  const { rowCount } = await pool.query({ ...deletePlant, values: [id, request.userId] });
  if (rowCount === 0) return refuse(response, 404, 'no such plant');
  response.status(204).end();
});

const server = app.listen(0, '127.0.0.1', () => {
  console.log(`typical listens on http://127.0.0.1:${server.address().port}`);
});

async function authenticate(request, response, next) {
  const hash = tokenHash(request);
  const { rows } =
    hash === undefined ? { rows: [] } : await pool.query({ ...findUser, values: [hash] });
  if (rows.length === 0) return refuse(response, 401, 'invalid token');
  request.userId = rows[0].user_id;
  next();
}

/** Retries with the next id of the sequence if a plant was already created with this one. */
async function insertWithNextId(values) {
  for (;;) {
    try {
      return await pool.query({ ...insertPlant, values });
    } catch (error) {
      if (error.code !== uniqueViolation) throw error;
    }
  }
}
