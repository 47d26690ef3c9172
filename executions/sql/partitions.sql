-- name: list_partitions
-- The partitions of a table, without the default one, with their names in order of time.
SELECT c.relname FROM pg_inherits i
JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = %s::regclass AND c.relname <> %s
ORDER BY c.relname

-- name: strays
-- The days (UTC) for which the default partition of executions holds rows up to a bound.
SELECT DISTINCT scheduled_for_day FROM (
    SELECT to_timestamp(('x' || substr(replace({column}::text, '-', ''), 1, 12))::bit(48)::bigint / 1000.0)
        AT TIME ZONE 'UTC' AS due
    FROM {default} WHERE {column} < %s
) d, LATERAL (SELECT d.due::date AS scheduled_for_day) AS day
ORDER BY 1

-- name: unfinished
-- Whether a partition holds executions that have not ended.
SELECT EXISTS (SELECT FROM {partition} WHERE state IN ('Waiting', 'Active', 'Paused'))
