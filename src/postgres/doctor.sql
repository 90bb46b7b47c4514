-- Checks of a server of PostgreSQL, in the form of ../sql/doctor.sql. What a server does not know or show is skipped.

-- version: whether this version of PostgreSQL still gets fixes
SELECT
  CASE WHEN number < 150000 AND version() LIKE 'PostgreSQL %' AND version() NOT LIKE '%-YB-%'
       THEN 'warn' ELSE 'ok' END,
  'version ' || current_setting('server_version'),
  'Upgrade to PostgreSQL 15 or later with pg_upgrade.'
FROM (SELECT CAST(current_setting('server_version_num') AS integer) AS number) AS version;

-- settings: whether a standby that commits wait for has them on its disk (connecting checks the others)
SELECT
  CASE WHEN standbys <> '' AND commits IN ('local', 'remote_write') THEN 'warn' ELSE 'ok' END,
  'synchronous_commit is ' || commits ||
    CASE WHEN standbys = '' THEN '' ELSE ', with synchronous standbys' END,
  'ALTER SYSTEM SET synchronous_commit = on; SELECT pg_reload_conf();'
FROM (
  SELECT current_setting('synchronous_commit') AS commits,
         current_setting('synchronous_standby_names') AS standbys
) AS settings;

-- connections: how many connections are left
SELECT
  CASE WHEN used > 0.9 * allowed THEN 'warn' ELSE 'ok' END,
  used || ' of ' || allowed || ' are in use',
  'Stop what needs them, or raise max_connections and restart the server.'
FROM (
  SELECT count(*) AS used, CAST(current_setting('max_connections') AS integer) AS allowed
  FROM pg_stat_activity WHERE backend_type = 'client backend'
) AS connections;

-- standbys: standbys that lag behind, or that commits wait for
SELECT
  CASE WHEN hidden > 0 THEN 'skipped'
       WHEN current_setting('synchronous_standby_names') <> '' AND synchronous = 0 THEN 'fail'
       WHEN lag > 1073741824 THEN 'warn' ELSE 'ok' END,
  CASE WHEN hidden > 0 THEN 'the user cannot see them without the role pg_monitor'
       WHEN current_setting('synchronous_standby_names') <> '' AND synchronous = 0
       THEN 'each change waits for a standby, and none of synchronous_standby_names is connected'
       ELSE connected || ' connected' || coalesce(', up to ' || lag / 1048576 || ' MiB behind', '') END,
  'Start the standby, or look at its log. To do without it: ALTER SYSTEM SET synchronous_standby_names = ''''; SELECT pg_reload_conf();'
FROM (
  SELECT
    count(*) AS connected,
    count(*) FILTER (WHERE state IS NULL) AS hidden,
    count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')) AS synchronous,
    CAST(max(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)) AS bigint) AS lag
  FROM pg_stat_replication
) AS standbys;

-- slots: replication slots that nobody reads, for which the server keeps its WAL
SELECT
  CASE WHEN count(*) > 0 THEN 'warn' ELSE 'ok' END,
  coalesce('the server keeps WAL for ' || min(slot_name) || ', which nobody reads', 'none without a reader'),
  'Start its standby, or: SELECT pg_drop_replication_slot(''' || min(slot_name) || ''');'
FROM pg_replication_slots
WHERE NOT active AND pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) > 1073741824;

-- citus: nodes and shards of a Citus cluster that are inactive
SELECT
  CASE WHEN count(*) > 0 THEN 'fail' ELSE 'ok' END,
  coalesce(min(name) || ' is inactive', 'all nodes and placements are active'),
  'SELECT citus_activate_node(''HOST'', PORT); or SELECT replicate_reference_tables();'
FROM (
  SELECT nodename || ':' || nodeport AS name FROM pg_dist_node WHERE noderole = 'primary' AND NOT isactive
  UNION ALL
  SELECT 'the placement of shard ' || shardid FROM pg_dist_placement WHERE shardstate <> 1
) AS inactive;
