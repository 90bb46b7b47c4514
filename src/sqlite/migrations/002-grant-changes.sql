-- Older versions: refused
-- Counts what changes a grant that somebody may know already: a revocation, a new role. Who keeps
-- grants in memory asks for this one number after a commit, and not for each grant again.

CREATE TABLE grant_changes (count INTEGER NOT NULL) STRICT;
INSERT INTO grant_changes VALUES (0);

CREATE TRIGGER token_changed AFTER UPDATE ON tokens BEGIN
  UPDATE grant_changes SET count = count + 1;
END;
CREATE TRIGGER token_deleted AFTER DELETE ON tokens BEGIN
  UPDATE grant_changes SET count = count + 1;
END;
CREATE TRIGGER user_changed AFTER UPDATE ON users WHEN new.role <> old.role BEGIN
  UPDATE grant_changes SET count = count + 1;
END;
