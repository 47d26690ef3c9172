-- name: into_container
-- Limits of tasks move from columns of their own into what they say of their containers. Their jobs are revised by
-- the trigger task_changed, so that their next runs have the limits as before.
UPDATE jobs_task SET container = jsonb_build_object('resources', jsonb_strip_nulls(jsonb_build_object(
    'memory', CASE WHEN memory_bytes IS NOT NULL THEN jsonb_build_object('limit', memory_bytes) END,
    'cpu', CASE WHEN cpus IS NOT NULL THEN
        jsonb_build_object('limit', trim_scale(round(least(cpus, 1024)::numeric, 3))) END)))
WHERE memory_bytes IS NOT NULL OR cpus IS NOT NULL

-- name: out_of_container
-- Undoes into_container, as far as columns hold it: a size with a unit is not taken back.
UPDATE jobs_task SET
    memory_bytes = CASE WHEN jsonb_typeof(container #> '{resources,memory,limit}') = 'number'
        THEN (container #> '{resources,memory,limit}')::bigint END,
    cpus = CASE WHEN jsonb_typeof(container #> '{resources,cpu,limit}') = 'number'
        THEN (container #> '{resources,cpu,limit}')::float8 END
