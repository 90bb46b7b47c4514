-- Older versions: refused
-- An older version would change plants without a trace in the log.

-- Counts the groups of changes of the store.
ALTER TABLE stores ADD COLUMN version INTEGER NOT NULL DEFAULT 0;

-- The version of the store when the user was removed: a later user of the name must not restore what was deleted before.
ALTER TABLE users ADD COLUMN removed_version INTEGER NOT NULL DEFAULT 0;

-- Who changed what, in the order of the commits (src/log/change-log.ts). No column is a foreign key, because the log can
-- outlive what it describes.
CREATE TABLE changes (
  store   INTEGER NOT NULL,
  version INTEGER NOT NULL,
  number  INTEGER NOT NULL,
  event   TEXT    NOT NULL,
  at      INTEGER NOT NULL,
  -- Who made it. NULL for a command of the operator.
  user    INTEGER,
  token   TEXT,
  request TEXT,
  plant   INTEGER,
  -- What was there before, or which share or token.
  owner   INTEGER,
  name    TEXT,
  tag     TEXT,
  -- 1 for a deletion whose plant can be restored: its id was not used again.
  is_restorable INTEGER NOT NULL,
  PRIMARY KEY (store, version, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX changes_by_plant ON changes (store, plant, version, number) WHERE plant IS NOT NULL;

-- For lists of deleted plants: has what is needed to skip old deletions, and the plants of other owners.
CREATE INDEX restorable_changes ON changes (store, version, number, owner, plant, at)
  WHERE is_restorable = 1;

-- The latest time at which the clock of a process was right, and since when one is ahead of it (src/log/retention.ts).
CREATE TABLE retention (confirmed_at INTEGER NOT NULL, ahead_since INTEGER) STRICT;
INSERT INTO retention (confirmed_at) VALUES (CAST(unixepoch('subsec') * 1000 AS INTEGER));

-- The keys of creates of the last 24 hours (src/plants/idempotency.ts).
CREATE TABLE idempotency_keys (
  store       INTEGER NOT NULL,
  key_hash    TEXT    NOT NULL,
  user        INTEGER NOT NULL,
  fingerprint TEXT    NOT NULL,
  plant       INTEGER NOT NULL,
  -- That of the store. A later user of the same name does not get the key.
  version     INTEGER NOT NULL,
  at          INTEGER NOT NULL,
  PRIMARY KEY (store, key_hash, user)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_keys_by_time ON idempotency_keys (store, at);
