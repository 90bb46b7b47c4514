-- Older versions: continue
-- A share names the user who receives it, because that user can be created later.

CREATE TABLE IF NOT EXISTS plant_store.shares (
  store     bigint NOT NULL,
  owner     bigint NOT NULL,
  user_name text   COLLATE "C" NOT NULL,
  access    text   NOT NULL CHECK (access IN ('read', 'write')),
  since     bigint NOT NULL,
  PRIMARY KEY (store, owner, user_name)
);

CREATE INDEX IF NOT EXISTS shares_by_user ON plant_store.shares (store, user_name, since, owner);
