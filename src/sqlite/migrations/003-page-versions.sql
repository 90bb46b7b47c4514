-- Older versions: refused
-- Versions of 6 bytes each, 0 if missing. Every change to the store's plants increments the first one, and the
-- one of the plant's owner (stores.ts). Processes with cached pages compare them after a commit.

ALTER TABLE stores ADD COLUMN versions BLOB NOT NULL DEFAULT x'';
