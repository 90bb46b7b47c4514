-- Older versions: continue
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

CREATE TRIGGER share_added AFTER INSERT ON shares BEGIN
  UPDATE grant_changes SET count = count + 1;
END;
CREATE TRIGGER share_changed AFTER UPDATE ON shares BEGIN
  UPDATE grant_changes SET count = count + 1;
END;
CREATE TRIGGER share_ended AFTER DELETE ON shares BEGIN
  UPDATE grant_changes SET count = count + 1;
END;
