-- Older versions: refused
-- 1 if the text of the token does not name its store, as in older versions. 2 if it does (decision 37).
ALTER TABLE tokens ADD COLUMN format INTEGER NOT NULL DEFAULT 1 CHECK (format IN (1, 2));

-- The order of all lists of tokens.
CREATE INDEX tokens_by_store ON tokens (store, hash);
