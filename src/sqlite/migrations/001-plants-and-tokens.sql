-- Older versions: refused
-- Stores and users have small numbers, because these are part of every key below.

CREATE TABLE stores (
  store   INTEGER PRIMARY KEY,
  name    TEXT    NOT NULL UNIQUE,
  -- The largest id the store has ever held; the next plant without an id gets the one above.
  last_id INTEGER NOT NULL DEFAULT 0 CHECK (last_id BETWEEN 0 AND 9007199254740991)
) STRICT;

CREATE TABLE users (
  store INTEGER NOT NULL REFERENCES stores,
  user  INTEGER NOT NULL,
  name  TEXT    NOT NULL,
  role  TEXT    NOT NULL CHECK (role IN ('member', 'manager')),
  PRIMARY KEY (store, user),
  UNIQUE (store, name)
) STRICT, WITHOUT ROWID;

-- Looked up by hash only. The first bytes of the hash are the token's id.
CREATE TABLE tokens (
  hash       BLOB    NOT NULL PRIMARY KEY CHECK (length(hash) = 32),
  store      INTEGER NOT NULL,
  user       INTEGER NOT NULL,
  scopes     TEXT    NOT NULL,
  label      TEXT    NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER,
  FOREIGN KEY (store, user) REFERENCES users
) STRICT, WITHOUT ROWID;

CREATE INDEX tokens_by_user ON tokens (store, user);

-- Each list is a range of one index, in the order of its response. Managers read the table itself.
-- The index by owner also covers name and tag, so that a member's page is one range too.
CREATE TABLE plants (
  store INTEGER NOT NULL,
  id    INTEGER NOT NULL CHECK (id BETWEEN 1 AND 9007199254740991),
  owner INTEGER NOT NULL,
  tag   TEXT    NOT NULL,
  name  TEXT    NOT NULL,
  PRIMARY KEY (store, id),
  FOREIGN KEY (store, owner) REFERENCES users
) STRICT, WITHOUT ROWID;

CREATE INDEX plants_by_owner     ON plants (store, owner, id, tag, name);
CREATE INDEX plants_by_tag       ON plants (store, tag, id);
CREATE INDEX plants_by_owner_tag ON plants (store, owner, tag, id);
