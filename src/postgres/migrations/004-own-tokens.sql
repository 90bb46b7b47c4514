-- Older versions: continue
-- A removed user keeps the row, because a write in progress can refer to it.
ALTER TABLE plant_store.users ADD COLUMN IF NOT EXISTS removed_at bigint;

-- The id of the token that an operator created, from which this one descends. NULL for that one itself.
ALTER TABLE plant_store.tokens ADD COLUMN IF NOT EXISTS family text;

-- Written once a minute.
ALTER TABLE plant_store.tokens ADD COLUMN IF NOT EXISTS last_used_at bigint;

CREATE INDEX CONCURRENTLY IF NOT EXISTS tokens_by_user ON plant_store.tokens (store, user_id, hash);
