-- Older versions: refused
-- Tokens and the name of a store are with its plants, and the text of a token names the store (decision 37).

-- Identifies a cluster: from another machine, the name of a node can lead to a node of another cluster.
ALTER TABLE plant_store.migrations ADD COLUMN IF NOT EXISTS cluster text;

UPDATE plant_store.migrations SET cluster = md5(now()::text) WHERE cluster IS NULL;

CREATE TABLE IF NOT EXISTS plant_store.store_tokens (
  store        bigint   NOT NULL,
  hash         bytea    NOT NULL CHECK (length(hash) = 32),
  user_id      bigint   NOT NULL,
  scopes       text     NOT NULL,
  label        text     NOT NULL,
  created_at   bigint   NOT NULL,
  expires_at   bigint,
  revoked_at   bigint,
  last_used_at bigint,
  family       text,
  PRIMARY KEY (store, hash)
);

CREATE INDEX IF NOT EXISTS store_tokens_by_user ON plant_store.store_tokens (store, user_id, hash);

DROP TABLE IF EXISTS plant_store.tokens;

-- Exists already, like the table of tokens.
CREATE TABLE IF NOT EXISTS plant_store.store_names (
  name  text   COLLATE "C" NOT NULL PRIMARY KEY,
  store bigint NOT NULL
);

-- The key is a hash of the name (names.ts). A new store gets a number that is on the same machine as the key.
CREATE TABLE IF NOT EXISTS plant_store.named_stores (
  key   bigint NOT NULL,
  name  text   COLLATE "C" NOT NULL,
  store bigint NOT NULL,
  PRIMARY KEY (key, name)
);

CREATE INDEX IF NOT EXISTS named_stores_by_name ON plant_store.named_stores (name, store);

INSERT INTO plant_store.named_stores (key, name, store)
SELECT ('x' || substr(encode(sha256(convert_to(name, 'UTF8')), 'hex'), 1, 12))::bit(48)::bigint, name, store
FROM plant_store.store_names
ON CONFLICT DO NOTHING;

DROP TABLE IF EXISTS plant_store.store_names;
