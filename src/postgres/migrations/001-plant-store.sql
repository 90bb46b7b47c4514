-- Older versions: refused
-- On Citus, each statement is its own transaction and can be repeated, and every table is distributed by its first
-- column (citus.ts), so the rows of one store are on one node.
--
-- Indexed text has the collation "C", the order of its bytes. Other collations come from a library of the
-- operating system. After an update of that library, an index can miss rows.

CREATE TABLE IF NOT EXISTS plant_store.migrations (
  id      integer NOT NULL PRIMARY KEY CHECK (id = 1),
  -- The number of the schema (migrations.ts).
  version integer NOT NULL,
  -- Identifies a cluster: from another machine, the name of a node can lead to a node of another cluster.
  cluster text    NOT NULL
);

INSERT INTO plant_store.migrations (id, version, cluster)
VALUES (1, 0, gen_random_uuid()::text) ON CONFLICT DO NOTHING;

CREATE TABLE IF NOT EXISTS plant_store.stores (
  store     bigint NOT NULL PRIMARY KEY,
  name      text   NOT NULL,
  -- The largest id that the store has ever held: the next plant without an id gets the one after it.
  last_id   bigint NOT NULL DEFAULT 0,
  last_user bigint NOT NULL DEFAULT 0,
  -- That of the last change (src/log/change-log.ts), and the writer of the last group of changes to plants.
  position  bigint NOT NULL DEFAULT 0,
  writer    text   NOT NULL DEFAULT '',
  -- The number of plants after the last group, if that had a quota for it.
  plants    bigint,
  -- Each change of a token, a role or a share sets a new random number.
  grants    bigint NOT NULL DEFAULT 0
);

-- The key is a hash of the name (names.ts), and the number of a new store unless another has it.
CREATE TABLE IF NOT EXISTS plant_store.named_stores (
  key   bigint NOT NULL,
  name  text   COLLATE "C" NOT NULL,
  store bigint NOT NULL,
  PRIMARY KEY (key, name)
);

CREATE INDEX IF NOT EXISTS named_stores_by_name ON plant_store.named_stores (name, store);

-- A removed user keeps the row, because a write in progress can refer to it.
CREATE TABLE IF NOT EXISTS plant_store.users (
  store            bigint NOT NULL REFERENCES plant_store.stores (store),
  id               bigint NOT NULL,
  name             text   COLLATE "C" NOT NULL,
  -- NULL for a removed user, who keeps the row, because a write in progress can refer to it.
  role             text   CHECK (role IN ('member', 'manager')),
  -- The time of the last removal: a JWT from before is refused, whoever has the name since.
  removed_at       bigint,
  -- The position of the store at the removal: a later user of the name must not restore what was deleted before.
  removed_position bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (store, id),
  UNIQUE (store, name)
);

-- To find out whether a manager is the last one.
CREATE INDEX IF NOT EXISTS managers ON plant_store.users (store, id) WHERE role = 'manager';

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
  -- The latest expiry of tokens that are created with it. NULL for its own; of an invitation, for no limit.
  renewable_until bigint,
  -- Random. What is derived from the token depends on it (src/access/token.ts).
  salt         text   NOT NULL DEFAULT '',
  -- How many tokens an invitation can still create. NULL for any other token.
  uses         bigint,
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
  store    bigint NOT NULL,
  id       bigint NOT NULL CHECK (id BETWEEN 1 AND 9007199254740991),
  owner    bigint NOT NULL,
  tag      text   NOT NULL,
  name     text   NOT NULL,
  -- That of its last change. 0 if another program has added it.
  position bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (store, id)
);

-- Each list without a tag reads one range of an index, in the order of the response. A list by tag scans the plants in
-- reach (decision 7).
CREATE INDEX IF NOT EXISTS plants_by_owner ON plant_store.plants (store, owner, id);

-- Who changed what, in the order of the commits (src/log/change-log.ts). No column is a foreign key, because the log can
-- outlive what it describes.
CREATE TABLE IF NOT EXISTS plant_store.changes (
  store    bigint   NOT NULL,
  position bigint   NOT NULL,
  -- The position of the change to the plant before. NULL for its creation.
  previous bigint,
  event    smallint NOT NULL,
  at       bigint   NOT NULL,
  -- Who made it. NULL for a command of the operator.
  user_id  bigint,
  token    bytea,
  request  bytea,
  plant    bigint,
  -- What was there before, or which share, token or role.
  owner    bigint,
  name     text,
  tag      text,
  -- 1 for a deletion whose plant can be restored: its id was not used again.
  is_restorable smallint NOT NULL,
  PRIMARY KEY (store, position)
);

-- For lists of deleted plants, and to find the deletion of one.
CREATE INDEX IF NOT EXISTS restorable_changes
  ON plant_store.changes (store, position) WHERE is_restorable = 1;
CREATE INDEX IF NOT EXISTS restorable_plants
  ON plant_store.changes (store, plant) WHERE is_restorable = 1;

-- The latest time at which the clock of a process was right, and since when one is ahead of it (src/log/retention.ts).
CREATE TABLE IF NOT EXISTS plant_store.retention (
  id           integer NOT NULL PRIMARY KEY CHECK (id = 1),
  confirmed_at bigint  NOT NULL,
  ahead_since  bigint,
  -- Differs in each database, and after a restore: the cursors of another one are refused (src/log/feed.ts).
  epoch        bigint  NOT NULL
);

INSERT INTO plant_store.retention (id, confirmed_at, epoch)
VALUES (1, extract(epoch FROM clock_timestamp()) * 1000, floor(random() * 281474976710655))
ON CONFLICT DO NOTHING;

-- The keys of creates of the last 24 hours (src/plants/idempotency.ts).
CREATE TABLE IF NOT EXISTS plant_store.idempotency_keys (
  store       bigint NOT NULL,
  key_hash    text   COLLATE "C" NOT NULL,
  user_id     bigint NOT NULL,
  fingerprint text   NOT NULL,
  plant       bigint NOT NULL,
  -- That of the create. A later user of the same name does not get the key.
  position    bigint NOT NULL,
  at          bigint NOT NULL,
  PRIMARY KEY (store, key_hash, user_id)
);

CREATE INDEX IF NOT EXISTS idempotency_keys_by_time ON plant_store.idempotency_keys (store, at);

-- Endpoints that get the changes a user can read (src/webhooks/webhook.ts).
CREATE TABLE IF NOT EXISTS plant_store.webhooks (
  store   bigint NOT NULL,
  user_id bigint NOT NULL,
  id      text   COLLATE "C" NOT NULL,
  -- Each write compares and replaces it: of two processes that have read the row, one continues.
  version bigint NOT NULL,
  -- When to send its message. 0 without one, and NULL if nothing is sent any more.
  due_at  bigint,
  -- The position of the store up to which all is sent.
  sent    bigint NOT NULL,
  -- The rest, as JSON, with the secret of the signatures.
  state   text   NOT NULL,
  PRIMARY KEY (store, user_id, id)
);
-- For the search in all stores, without the rows.
CREATE INDEX IF NOT EXISTS webhooks_due
  ON plant_store.webhooks (due_at, id, store, user_id, sent);
