-- Older versions: refused
-- A member's list by tag filters the member's plants instead: each create updates one index less
-- (docs/decisions/0007-indexes.md).

DROP INDEX plants_by_owner_tag;
