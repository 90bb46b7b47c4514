-- Older versions: refused
-- Each statement is its own transaction and can be repeated. On distributed engines, every table is distributed
-- by its first column (citus.ts), so the rows of one store are on one node.
--
-- Indexed text has the collation "C", the order of its bytes. Other collations come from a library of the
-- operating system. After an update of that library, an index can miss rows.

-- A name is unique across all stores. A table that is distributed by store could not enforce that.
CREATE TABLE IF NOT EXISTS plant_store.store_names (
  name  text   COLLATE "C" NOT NULL PRIMARY KEY,
  store bigint NOT NULL
);

CREATE TABLE IF NOT EXISTS plant_store.stores (
  store     bigint NOT NULL PRIMARY KEY,
  name      text   NOT NULL,
  -- The next plant without an id gets this number + 1. It can exceed the largest valid id.
  last_id   bigint NOT NULL DEFAULT 0,
  last_user bigint NOT NULL DEFAULT 0,
  -- The number of groups of changes to plants, and the writer of the last group.
  version   bigint NOT NULL DEFAULT 0,
  writer    text   NOT NULL DEFAULT '',
  -- Each change of a token or a role sets a new random number.
  grants    bigint NOT NULL DEFAULT 0
);

CREATE TABLE IF NOT EXISTS plant_store.users (
  store bigint NOT NULL REFERENCES plant_store.stores (store),
  id    bigint NOT NULL,
  name  text   COLLATE "C" NOT NULL,
  role  text   NOT NULL CHECK (role IN ('member', 'manager')),
  PRIMARY KEY (store, id),
  UNIQUE (store, name)
);

-- A token is found by its hash alone, before its store is known.
CREATE TABLE IF NOT EXISTS plant_store.tokens (
  hash       bytea  NOT NULL PRIMARY KEY CHECK (length(hash) = 32),
  store      bigint NOT NULL,
  user_id    bigint NOT NULL,
  scopes     text   NOT NULL,
  label      text   NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint,
  revoked_at bigint
);

CREATE INDEX IF NOT EXISTS tokens_by_store ON plant_store.tokens (store, hash);

-- The owner is no foreign key, because checking it would be a quarter of the cost of an insert. The storage
-- has found the user before, and users are never deleted.
CREATE TABLE IF NOT EXISTS plant_store.plants (
  store bigint NOT NULL,
  id    bigint NOT NULL CHECK (id BETWEEN 1 AND 9007199254740991),
  owner bigint NOT NULL,
  tag   text   COLLATE "C" NOT NULL,
  name  text   NOT NULL,
  PRIMARY KEY (store, id)
);

-- Each list reads one range of an index, in the order of the response.
CREATE INDEX IF NOT EXISTS plants_by_owner     ON plant_store.plants (store, owner, id);
CREATE INDEX IF NOT EXISTS plants_by_tag       ON plant_store.plants (store, tag, id);
CREATE INDEX IF NOT EXISTS plants_by_owner_tag ON plant_store.plants (store, owner, tag, id);
