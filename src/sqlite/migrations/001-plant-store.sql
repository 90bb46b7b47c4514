-- Older versions: refused
-- Stores and users have small numbers, because these are part of every key below.

CREATE TABLE stores (
  store   INTEGER PRIMARY KEY,
  name    TEXT    NOT NULL UNIQUE,
  -- The largest id the store has ever held; the next plant without an id gets the one above.
  last_id INTEGER NOT NULL DEFAULT 0 CHECK (last_id BETWEEN 0 AND 9007199254740991)
) STRICT;

CREATE TABLE users (
  store      INTEGER NOT NULL REFERENCES stores,
  user       INTEGER NOT NULL,
  name       TEXT    NOT NULL,
  role       TEXT    NOT NULL CHECK (role IN ('member', 'manager')),
  -- A removed user keeps the row, because a write in progress can refer to it.
  removed_at INTEGER,
  PRIMARY KEY (store, user),
  UNIQUE (store, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE tokens (
  hash         BLOB    NOT NULL PRIMARY KEY CHECK (length(hash) = 32),
  store        INTEGER NOT NULL,
  user         INTEGER NOT NULL,
  scopes       TEXT    NOT NULL,
  label        TEXT    NOT NULL,
  created_at   INTEGER NOT NULL,
  expires_at   INTEGER,
  revoked_at   INTEGER,
  -- Written once a minute.
  last_used_at INTEGER,
  -- The ids of the tokens from which this one descends. NULL for a token that an operator created.
  family       TEXT,
  FOREIGN KEY (store, user) REFERENCES users
) STRICT, WITHOUT ROWID;

CREATE INDEX tokens_by_user ON tokens (store, user);
-- The order of all lists of tokens.
CREATE INDEX tokens_by_store ON tokens (store, hash);

-- Each list without a tag is a range of one index, in the order of its response. Managers read the table itself.
-- The index by owner also covers name and tag, so that a member's page is one range too. No index has tags: each create
-- would update it (docs/decisions/0007-indexes.md).
CREATE TABLE plants (
  store INTEGER NOT NULL,
  id    INTEGER NOT NULL CHECK (id BETWEEN 1 AND 9007199254740991),
  owner INTEGER NOT NULL,
  tag   TEXT    NOT NULL,
  name  TEXT    NOT NULL,
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
WHEN new.role <> old.role OR new.removed_at IS NOT old.removed_at BEGIN
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
