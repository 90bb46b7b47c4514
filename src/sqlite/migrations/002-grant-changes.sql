-- Older versions: refused
-- Counts the changes that make a cached grant stale, such as a revocation or a new role. After a commit,
-- a process reads this one number instead of every cached grant.

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
