-- Checks of what a database contains, on both engines. `-- name: what it is about` begins one. It returns a status, a
-- detail and a fix. $1 is the time in milliseconds.

-- tokens: tokens that never expire, and were not used for 180 days
-- The first token of a service never expires, so only those that nobody uses count.
SELECT
  CASE WHEN unused > 0 THEN 'warn' ELSE 'ok' END,
  'active tokens: ' || active || '; that never expire and were not used for 180 days: ' || unused,
  'npx plant-store token list; npx plant-store token revoke ID'
FROM (
  SELECT
    count(*) AS active,
    count(CASE WHEN expires_at IS NULL AND coalesce(last_used_at, created_at) < CAST($1 AS bigint) - 15552000000
          THEN 1 END) AS unused
  FROM plant_store.tokens
  WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > CAST($1 AS bigint))
) AS counted;

-- managers: stores with three or more users and no manager
-- One or two can do without.
SELECT
  CASE WHEN min(name) IS NULL THEN 'ok' ELSE 'warn' END,
  coalesce('store ' || min(name) || ' has none, so only commands can manage its users',
           'no store with three or more users lacks one'),
  'npx plant-store token create USER --store ''' || min(name) || ''' --role manager'
FROM (
  SELECT stores.name
  FROM plant_store.stores JOIN plant_store.users ON users.store = stores.store
  WHERE users.role IS NOT NULL
  GROUP BY stores.store, stores.name
  HAVING count(*) > 2 AND min(users.role) = 'member'
) AS unmanaged;

-- clock: whether the clock is behind the last use of the database
SELECT
  CASE WHEN confirmed_at > CAST($1 AS bigint) + 300000 THEN 'fail' ELSE 'ok' END,
  CASE WHEN confirmed_at > CAST($1 AS bigint) + 300000
       THEN 'it is ' || ((confirmed_at - CAST($1 AS bigint)) / 60000) || ' minutes behind the last use of the database'
       ELSE 'it is not behind the last use of the database' END,
  'timedatectl set-ntp true'
FROM plant_store.retention WHERE id = 1;
