-- Older versions: refused
-- Each statement is a transaction of its own and may be repeated. On engines that span machines every
-- table is distributed by its first column (citus.ts): the rows of one store are together.
--
-- Text that is in an index is in the order of its bytes. Any other order comes from a library of the
-- system, and an index whose rows are found by it loses some when that library is updated.

-- A name is unique over all stores, which no table that is distributed by store could say.
CREATE TABLE IF NOT EXISTS plant_store.store_names (
  name  text   COLLATE "C" NOT NULL PRIMARY KEY,
  store bigint NOT NULL
);

CREATE TABLE IF NOT EXISTS plant_store.stores (
  store     bigint NOT NULL PRIMARY KEY,
  name      text   NOT NULL,
  -- The next plant without an id gets the number above; the last ones may have found none left.
  last_id   bigint NOT NULL DEFAULT 0,
  last_user bigint NOT NULL DEFAULT 0,
  -- Counts the groups of changes to plants, and who made the last one.
  version   bigint NOT NULL DEFAULT 0,
  writer    text   NOT NULL DEFAULT '',
  -- Another number at random after each change of a token or a role.
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

-- Found by the hash alone, before anybody knows the store.
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

-- Owners are users that the storage has found, and users are never deleted: to have every insert of a
-- plant ask for its owner again would be a quarter of what it costs.
CREATE TABLE IF NOT EXISTS plant_store.plants (
  store bigint NOT NULL,
  id    bigint NOT NULL CHECK (id BETWEEN 1 AND 9007199254740991),
  owner bigint NOT NULL,
  tag   text   COLLATE "C" NOT NULL,
  name  text   NOT NULL,
  PRIMARY KEY (store, id)
);

-- Each list is a range of one index in the order of its answer.
CREATE INDEX IF NOT EXISTS plants_by_owner     ON plant_store.plants (store, owner, id);
CREATE INDEX IF NOT EXISTS plants_by_tag       ON plant_store.plants (store, tag, id);
CREATE INDEX IF NOT EXISTS plants_by_owner_tag ON plant_store.plants (store, owner, tag, id);
