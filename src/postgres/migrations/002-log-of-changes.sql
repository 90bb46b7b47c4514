-- Older versions: refused
-- An older version would change plants without a trace in the log.

-- The version of the store when the user was removed: a later user of the name must not restore what was deleted before.
ALTER TABLE plant_store.users ADD COLUMN IF NOT EXISTS removed_version bigint NOT NULL DEFAULT 0;

-- Who changed what, in the order of the commits (src/log/change-log.ts). No column is a foreign key, because the log can
-- outlive what it describes.
CREATE TABLE IF NOT EXISTS plant_store.changes (
  store   bigint  NOT NULL,
  version bigint  NOT NULL,
  number  integer NOT NULL,
  event   text    NOT NULL,
  at      bigint  NOT NULL,
  -- Who made it. NULL for a command of the operator.
  user_id bigint,
  token   text,
  request text,
  plant   bigint,
  -- What was there before, or which share or token.
  owner   bigint,
  name    text,
  tag     text,
  -- 1 for a deletion whose plant can be restored: its id was not used again.
  is_restorable smallint NOT NULL,
  PRIMARY KEY (store, version, number)
);

CREATE INDEX IF NOT EXISTS changes_by_plant
  ON plant_store.changes (store, plant, version, number) WHERE plant IS NOT NULL;

-- For lists of deleted plants.
CREATE INDEX IF NOT EXISTS restorable_changes
  ON plant_store.changes (store, version, number) WHERE is_restorable = 1;

-- The latest time at which the clock of a process was right, and since when one is ahead of it (src/log/retention.ts).
CREATE TABLE IF NOT EXISTS plant_store.retention (
  id           integer NOT NULL PRIMARY KEY CHECK (id = 1),
  confirmed_at bigint  NOT NULL,
  ahead_since  bigint
);

INSERT INTO plant_store.retention (id, confirmed_at)
VALUES (1, extract(epoch FROM clock_timestamp()) * 1000) ON CONFLICT DO NOTHING;

-- The keys of creates of the last 24 hours (src/plants/idempotency.ts).
CREATE TABLE IF NOT EXISTS plant_store.idempotency_keys (
  store       bigint NOT NULL,
  key_hash    text   COLLATE "C" NOT NULL,
  user_id     bigint NOT NULL,
  fingerprint text   NOT NULL,
  plant       bigint NOT NULL,
  -- That of the store. A later user of the same name does not get the key.
  version     bigint NOT NULL,
  at          bigint NOT NULL,
  PRIMARY KEY (store, key_hash, user_id)
);

CREATE INDEX IF NOT EXISTS idempotency_keys_by_time ON plant_store.idempotency_keys (store, at);
