-- Older versions: refused
-- Numbers of 6 bytes, each 0 if it is missing: the first is raised by every change of the store's plants, the
-- others by those of one owner (stores.ts). Whoever caches pages compares them after a commit.

ALTER TABLE stores ADD COLUMN versions BLOB NOT NULL DEFAULT x'';
