-- Older versions: refused
-- A member's list by tag walks over the member's plants (decision 7): one tree less for each create.

DROP INDEX IF EXISTS plant_store.plants_by_owner_tag;
