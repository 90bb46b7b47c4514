-- Older versions: refused
-- The order of all lists of tokens.
CREATE INDEX tokens_by_store ON tokens (store, hash);
