CREATE TABLE IF NOT EXISTS users (
  id   INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
);

CREATE TABLE IF NOT EXISTS tokens (
  hash    BLOB PRIMARY KEY,
  user_id INTEGER NOT NULL REFERENCES users (id)
);

CREATE TABLE IF NOT EXISTS plants (
  id       INTEGER PRIMARY KEY,
  owner_id INTEGER NOT NULL REFERENCES users (id),
  name     TEXT NOT NULL,
  tag      TEXT NOT NULL
);

-- SQLite appends the id to each key of it, so a page of an owner is one range in order.
CREATE INDEX IF NOT EXISTS plants_by_owner ON plants (owner_id);
