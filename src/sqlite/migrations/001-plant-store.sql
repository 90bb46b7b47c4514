-- Older versions: refused
-- Stores and users have small numbers, because these are part of every key below.

CREATE TABLE stores (
  -- Counts the stores of this file. The number of a store itself can have 48 bits, if it was copied.
  number    INTEGER PRIMARY KEY CHECK (number < 1 << 20),
  store     INTEGER NOT NULL UNIQUE,
  name      TEXT    NOT NULL UNIQUE,
  -- The largest id the store has ever held; the next plant without an id gets the one above.
  last_id   INTEGER NOT NULL DEFAULT 0 CHECK (last_id BETWEEN 0 AND 9007199254740991),
  last_user INTEGER NOT NULL DEFAULT 0,
  -- That of the last change (src/log/change-log.ts).
  position  INTEGER NOT NULL DEFAULT 0 CHECK (position < (1 << 42) - 1)
) STRICT;

CREATE TABLE users (
  store            INTEGER NOT NULL REFERENCES stores (store),
  id               INTEGER NOT NULL,
  name             TEXT    NOT NULL,
  -- NULL for a removed user, who keeps the row, because a write in progress can refer to it.
  role             TEXT    CHECK (role IN ('member', 'manager')),
  -- The time of the last removal: a JWT from before is refused, whoever has the name since.
  removed_at       INTEGER,
  -- The position of the store at the removal: a later user of the name must not restore what was deleted before.
  removed_position INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (store, id),
  UNIQUE (store, name)
) STRICT, WITHOUT ROWID;

-- To find out whether a manager is the last one.
CREATE INDEX managers ON users (store, id) WHERE role = 'manager';

CREATE TABLE tokens (
  store        INTEGER NOT NULL,
  hash         BLOB    NOT NULL CHECK (length(hash) = 32),
  user_id      INTEGER NOT NULL,
  scopes       TEXT    NOT NULL,
  label        TEXT    NOT NULL,
  created_at   INTEGER NOT NULL,
  expires_at   INTEGER,
  revoked_at   INTEGER,
  -- Written once a minute.
  last_used_at INTEGER,
  -- The ids of the tokens from which this one descends. NULL for a token that an operator created.
  family       TEXT,
  -- The latest expiry of tokens that are created with it. NULL for its own; of an invitation, for no limit.
  renewable_until INTEGER,
  -- Random. What is derived from the token depends on it (src/access/token.ts).
  salt         TEXT    NOT NULL DEFAULT '',
  -- How many tokens an invitation can still create. NULL for any other token.
  uses         INTEGER,
  PRIMARY KEY (store, hash),
  FOREIGN KEY (store, user_id) REFERENCES users
) STRICT, WITHOUT ROWID;

CREATE INDEX tokens_by_user ON tokens (store, user_id, hash);

-- Each list without a tag is a range of one index, in the order of its response. Managers read the table itself.
-- The index by owner also covers name and tag, so that a member's page is one range too. No index has tags: each create
-- would update it (docs/decisions/0007-indexes.md).
CREATE TABLE plants (
  store    INTEGER NOT NULL,
  id       INTEGER NOT NULL CHECK (id BETWEEN 1 AND 9007199254740991),
  owner    INTEGER NOT NULL,
  tag      TEXT    NOT NULL,
  name     TEXT    NOT NULL,
  -- That of its last change. 0 if another program has added it.
  position INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (store, id),
  FOREIGN KEY (store, owner) REFERENCES users
) STRICT, WITHOUT ROWID;

CREATE INDEX plants_by_owner ON plants (store, owner, id, tag, name);

-- A share names the user who receives it, because that user can be created later.
CREATE TABLE shares (
  store     INTEGER NOT NULL,
  owner     INTEGER NOT NULL,
  user_name TEXT    NOT NULL,
  access    TEXT    NOT NULL CHECK (access IN ('read', 'write')),
  since     INTEGER NOT NULL,
  PRIMARY KEY (store, owner, user_name),
  FOREIGN KEY (store, owner) REFERENCES users
) STRICT, WITHOUT ROWID;

CREATE INDEX shares_by_user ON shares (store, user_name, since, owner, access);

-- Counts the changes that make a cached grant stale, such as a revocation or a new role. After a commit,
-- a process reads this one number instead of every cached grant.
CREATE TABLE grant_changes (count INTEGER NOT NULL) STRICT;
INSERT INTO grant_changes VALUES (0);

-- The last use of a token changes nothing that it grants.
CREATE TRIGGER token_changed AFTER UPDATE ON tokens
WHEN new.last_used_at IS old.last_used_at BEGIN
  UPDATE grant_changes SET count = count + 1;
END;
CREATE TRIGGER token_deleted AFTER DELETE ON tokens BEGIN
  UPDATE grant_changes SET count = count + 1;
END;
CREATE TRIGGER user_changed AFTER UPDATE ON users
WHEN new.role IS NOT old.role BEGIN
  UPDATE grant_changes SET count = count + 1;
END;
CREATE TRIGGER share_added AFTER INSERT ON shares BEGIN
  UPDATE grant_changes SET count = count + 1;
END;
CREATE TRIGGER share_changed AFTER UPDATE ON shares BEGIN
  UPDATE grant_changes SET count = count + 1;
END;
CREATE TRIGGER share_ended AFTER DELETE ON shares BEGIN
  UPDATE grant_changes SET count = count + 1;
END;

-- Who changed what, in the order of the commits (src/log/change-log.ts). No column is a foreign key, because the log can
-- outlive what it describes.
CREATE TABLE changes (
  -- The number of its store in this file, and then 42 bits for the position (dialect.ts). SQLite appends to a table with
  -- such a key by writing one page, but to an index or a table WITHOUT ROWID by writing about three.
  key      INTEGER PRIMARY KEY,
  store    INTEGER NOT NULL,
  position INTEGER NOT NULL,
  -- The position of the change to the plant before. NULL for its creation.
  previous INTEGER,
  event    INTEGER NOT NULL,
  at       INTEGER NOT NULL,
  -- Who made it. NULL for a command of the operator.
  user_id  INTEGER,
  token    BLOB,
  request  BLOB,
  plant    INTEGER,
  -- What was there before, or which share, token or role.
  owner    INTEGER,
  name     TEXT,
  tag      TEXT,
  -- 1 for a deletion whose plant can be restored: its id was not used again.
  is_restorable INTEGER NOT NULL
) STRICT;

-- For lists of deleted plants.
CREATE INDEX restorable_changes ON changes (key) WHERE is_restorable = 1;
-- To find the deletion of a plant.
CREATE INDEX restorable_plants ON changes (store, plant) WHERE is_restorable = 1;

-- The latest time at which the clock of a process was right, and since when one is ahead of it (src/log/retention.ts).
CREATE TABLE retention (
  id           INTEGER PRIMARY KEY CHECK (id = 1),
  confirmed_at INTEGER NOT NULL,
  ahead_since  INTEGER,
  -- Differs in each database, and after a restore: the cursors of another one are refused (src/log/feed.ts).
  epoch        INTEGER NOT NULL
) STRICT;
INSERT INTO retention (id, confirmed_at, epoch)
VALUES (1, CAST(unixepoch('subsec') * 1000 AS INTEGER), abs(random() % (1 << 48)));

-- The keys of creates of the last 24 hours (src/plants/idempotency.ts).
CREATE TABLE idempotency_keys (
  store       INTEGER NOT NULL,
  key_hash    TEXT    NOT NULL,
  user_id     INTEGER NOT NULL,
  fingerprint TEXT    NOT NULL,
  plant       INTEGER NOT NULL,
  -- That of the create. A later user of the same name does not get the key.
  position    INTEGER NOT NULL,
  at          INTEGER NOT NULL,
  PRIMARY KEY (store, key_hash, user_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_keys_by_time ON idempotency_keys (store, at);

-- Endpoints that get the changes a user can read (src/webhooks/webhook.ts).
CREATE TABLE webhooks (
  store   INTEGER NOT NULL,
  user_id INTEGER NOT NULL,
  id      TEXT    NOT NULL,
  -- Each write compares and replaces it: of two processes that have read the row, one continues.
  version INTEGER NOT NULL,
  -- When to send its message. 0 without one, and NULL if nothing is sent any more.
  due_at  INTEGER,
  -- The position of the store up to which all is sent.
  sent    INTEGER NOT NULL,
  -- The rest, as JSON, with the secret of the signatures.
  state   TEXT    NOT NULL,
  PRIMARY KEY (store, user_id, id),
  FOREIGN KEY (store, user_id) REFERENCES users
) STRICT;
-- For the search in all stores, without the rows.
CREATE INDEX webhooks_due ON webhooks (due_at, id, store, user_id, sent);
