-- name: server
-- What the server is: version as a number and in words, whether it is a standby, takes no writes, its connections.
SELECT current_setting('server_version_num')::int AS version_number,
    current_setting('server_version') AS version,
    pg_is_in_recovery() AS standby,
    current_setting('transaction_read_only')::bool AS read_only,
    current_user AS role,
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS connections,
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int AS most_connections,
    current_setting('autovacuum')::bool AS autovacuum,
    pg_database_size(current_database()) AS bytes

-- name: rights
-- The tables of Punctual on which the role lacks a right, and which; maintenance has to own the partitioned ones.
SELECT c.relname AS table, array_remove(ARRAY[
        CASE WHEN NOT has_table_privilege(c.oid, 'SELECT') THEN 'SELECT' END,
        CASE WHEN NOT has_table_privilege(c.oid, 'INSERT') THEN 'INSERT' END,
        CASE WHEN NOT has_table_privilege(c.oid, 'UPDATE') THEN 'UPDATE' END,
        CASE WHEN NOT has_table_privilege(c.oid, 'DELETE') THEN 'DELETE' END,
        CASE WHEN c.relkind = 'p' AND NOT pg_has_role(c.relowner, 'USAGE') THEN 'OWNER' END
    ], NULL) AS lacking
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relname = ANY(%s)
ORDER BY 1

-- name: oldest_transaction
-- Who holds the oldest snapshot of this database, and for how many seconds: nothing younger can be vacuumed.
SELECT pid, coalesce(application_name, '') AS application, state, extract(epoch FROM clock_timestamp() - xact_start) AS seconds
FROM pg_stat_activity
WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid() AND backend_type = 'client backend'
ORDER BY xact_start
LIMIT 1

-- name: bloated
-- Tables in which more is dead than alive, and much: the autovacuum does not keep up.
SELECT relname AS table, n_dead_tup AS dead, n_live_tup AS alive, last_autovacuum
FROM pg_stat_user_tables
WHERE schemaname = current_schema() AND n_dead_tup > 100000 AND n_dead_tup > n_live_tup
ORDER BY n_dead_tup DESC
LIMIT 5

-- name: unsettled
-- How many jobs have a problem, and how many changes of jobs nobody has carried out for a minute.
SELECT count(*) FILTER (WHERE problem <> '') AS problems FROM jobs_job WHERE archived_at IS NULL
