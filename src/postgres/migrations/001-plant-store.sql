-- Older versions: refused
-- On Citus, each statement is its own transaction and can be repeated, and every table is distributed by its first
-- column (citus.ts), so the rows of one store are on one node.
--
-- Indexed text has the collation "C", the order of its bytes. Other collations come from a library of the
-- operating system. After an update of that library, an index can miss rows.

CREATE TABLE IF NOT EXISTS plant_store.stores (
  store     bigint NOT NULL PRIMARY KEY,
  name      text   NOT NULL,
  -- The largest id that the store has ever held: the next plant without an id gets the one after it.
  last_id   bigint NOT NULL DEFAULT 0,
  last_user bigint NOT NULL DEFAULT 0,
  -- The number of groups of changes to plants, and the writer of the last group.
  version   bigint NOT NULL DEFAULT 0,
  writer    text   NOT NULL DEFAULT '',
  -- The number of plants after the last group, if that had a quota for it.
  plants    bigint,
  -- Each change of a token, a role or a share sets a new random number.
  grants    bigint NOT NULL DEFAULT 0
);

-- The key is a hash of the name (names.ts). A new store gets a number that is on the same machine as the key.
CREATE TABLE IF NOT EXISTS plant_store.named_stores (
  key   bigint NOT NULL,
  name  text   COLLATE "C" NOT NULL,
  store bigint NOT NULL,
  PRIMARY KEY (key, name)
);

CREATE INDEX IF NOT EXISTS named_stores_by_name ON plant_store.named_stores (name, store);

-- A removed user keeps the row, because a write in progress can refer to it.
CREATE TABLE IF NOT EXISTS plant_store.users (
  store      bigint NOT NULL REFERENCES plant_store.stores (store),
  id         bigint NOT NULL,
  name       text   COLLATE "C" NOT NULL,
  role       text   NOT NULL CHECK (role IN ('member', 'manager')),
  removed_at bigint,
  PRIMARY KEY (store, id),
  UNIQUE (store, name)
);

CREATE TABLE IF NOT EXISTS plant_store.tokens (
  store        bigint NOT NULL,
  hash         bytea  NOT NULL CHECK (length(hash) = 32),
  user_id      bigint NOT NULL,
  scopes       text   NOT NULL,
  label        text   NOT NULL,
  created_at   bigint NOT NULL,
  expires_at   bigint,
  revoked_at   bigint,
  -- Written once a minute.
  last_used_at bigint,
  -- The ids of the tokens from which this one descends (own-tokens.ts). NULL for a token of an operator.
  family       text,
  PRIMARY KEY (store, hash)
);

CREATE INDEX IF NOT EXISTS tokens_by_user ON plant_store.tokens (store, user_id, hash);

-- A share names the user who receives it, because that user can be created later.
CREATE TABLE IF NOT EXISTS plant_store.shares (
  store     bigint NOT NULL,
  owner     bigint NOT NULL,
  user_name text   COLLATE "C" NOT NULL,
  access    text   NOT NULL CHECK (access IN ('read', 'write')),
  since     bigint NOT NULL,
  PRIMARY KEY (store, owner, user_name)
);

CREATE INDEX IF NOT EXISTS shares_by_user ON plant_store.shares (store, user_name, since, owner);

-- The owner is no foreign key, because checking it would be a quarter of the cost of an insert. The storage
-- has found the user before, and users are never deleted.
CREATE TABLE IF NOT EXISTS plant_store.plants (
  store bigint NOT NULL,
  id    bigint NOT NULL CHECK (id BETWEEN 1 AND 9007199254740991),
  owner bigint NOT NULL,
  tag   text   NOT NULL,
  name  text   NOT NULL,
  PRIMARY KEY (store, id)
);

-- Each list without a tag reads one range of an index, in the order of the response. A list by tag scans the plants in
-- reach (decision 7).
CREATE INDEX IF NOT EXISTS plants_by_owner ON plant_store.plants (store, owner, id);
