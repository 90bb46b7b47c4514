-- Older versions: continue
-- A removed user keeps the row, because a write in progress can refer to it.
ALTER TABLE users ADD COLUMN removed_at INTEGER;

DROP TRIGGER user_changed;
CREATE TRIGGER user_changed AFTER UPDATE ON users
WHEN new.role <> old.role OR new.removed_at IS NOT old.removed_at BEGIN
  UPDATE grant_changes SET count = count + 1;
END;

-- The id of the token that an operator created, from which this one descends. NULL for that one itself.
ALTER TABLE tokens ADD COLUMN family TEXT;

-- Written once a minute. It makes no cached grant stale, so the trigger ignores it.
ALTER TABLE tokens ADD COLUMN last_used_at INTEGER;

DROP TRIGGER token_changed;
CREATE TRIGGER token_changed AFTER UPDATE ON tokens
WHEN new.last_used_at IS old.last_used_at BEGIN
  UPDATE grant_changes SET count = count + 1;
END;
