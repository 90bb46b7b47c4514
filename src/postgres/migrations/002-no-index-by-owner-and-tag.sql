-- Older versions: refused
-- A member's list by tag scans the member's plants (decision 7). Each create then updates one index less.

DROP INDEX IF EXISTS plant_store.plants_by_owner_tag;
