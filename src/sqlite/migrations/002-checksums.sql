-- Older versions: continue
-- A checksum of what the change left of the plant (leftCrc in src/log/change-log.ts). NULL if it left none, for other changes, and
-- for changes by versions without this column.
ALTER TABLE changes ADD COLUMN left_crc INTEGER;
