-- name: append_events
-- Appends to the history, and counts what is new in it; the same statement made twice is one row, and counts once
-- (executions/tallies.py says what is counted). A run is due once, however often it is sent; when it would be late
-- nobody can say of what catches up, or is spread over a time (jitter). A retry is due when it is asked for. The rows of a connection are its own
-- (docs/adr/0025): so two that count at once never wait for each other. OFFSET 0: each run is looked up by its key,
-- also where a batch speaks of runs that lie weeks apart.
WITH new AS (
    INSERT INTO executions_executionevent (execution_id, id, type, attempt, at, worker, reason, message, exit_code)
    SELECT * FROM unnest(
        %(execution_id)s::uuid[], %(id)s::uuid[], %(type)s::text[], %(attempt)s::smallint[], %(at)s::timestamptz[],
        %(worker)s::text[], %(reason)s::text[], %(message)s::text[], %(exit_code)s::integer[])
    ON CONFLICT DO NOTHING
    RETURNING execution_id, id, type, attempt, at, reason
), fact AS MATERIALIZED (
    SELECT new.at, new.reason, run.owner_id, run.job_id, new.execution_id, run.due,
        CASE WHEN new.type = 'JOB_STARTED' AND new.attempt = 1 AND run.due IS NOT NULL AND (
            SELECT coalesce((s.body ->> 'jitter_s')::float8, 0) = 0 FROM executions_runspec s WHERE s.id = run.spec_id
        ) THEN extract(epoch FROM new.at - run.due)::float8 END AS late_s,
        CASE new.type
            WHEN 'JOB_QUEUED' THEN 'due'
            WHEN 'JOB_STARTED' THEN 'started'
            WHEN 'JOB_COMPLETED' THEN 'completed'
            WHEN 'JOB_CANCELLED' THEN 'cancelled'
            WHEN 'JOB_SKIPPED' THEN 'skipped'
            WHEN 'JOB_RETRYING' THEN 'undone'
            ELSE 'failed' END AS what
    FROM new CROSS JOIN LATERAL (
        SELECT e.owner_id, e.job_id, e.spec_id, e.generation,
            CASE WHEN e.trigger = ANY(%(timely)s)
                THEN coalesce(e.moved_to, CASE WHEN e.retry_of IS NULL THEN e.scheduled_for ELSE e.created_at END) END AS due
        FROM executions_execution e
        WHERE e.id = new.execution_id AND e.id >= %(first)s AND e.id <= %(last)s
        OFFSET 0) run
    WHERE new.type NOT IN ('JOB_PAUSED', 'JOB_RESUMED')
      AND NOT (new.type = 'JOB_STARTED' AND new.reason = 'reattached')
      AND (new.type <> 'JOB_QUEUED' OR new.attempt = 1 AND new.reason = '' AND (run.generation = 0 OR NOT EXISTS (
            SELECT FROM executions_executionevent h
            WHERE h.execution_id = new.execution_id AND h.execution_id >= %(first)s AND h.execution_id <= %(last)s
              AND h.type = 'JOB_QUEUED' AND h.attempt = 1 AND h.reason = ''
            OFFSET 0)))
), entry AS (
    SELECT * FROM fact
    UNION ALL
    SELECT at, reason, owner_id, job_id, execution_id, due, NULL, 'undone' FROM fact
    WHERE what = 'cancelled' AND reason = ANY(%(losses)s)
), trouble AS (
    INSERT INTO executions_trouble (hour, job_id, what, reason, writer, owner_id, count, undone, worst_s, latest)
    SELECT date_trunc('hour', at), job_id, CASE what WHEN 'started' THEN 'late' ELSE 'failed' END,
        CASE what WHEN 'started' THEN '' ELSE reason END, pg_backend_pid(), min(owner_id),
        count(*) FILTER (WHERE what <> 'undone'), count(*) FILTER (WHERE what = 'undone'),
        coalesce(max(late_s), 0), (array_agg(execution_id ORDER BY at DESC))[1]
    FROM entry
    WHERE what IN ('failed', 'undone') OR late_s > %(late_s)s
    GROUP BY 1, 2, 3, 4
    ON CONFLICT (hour, job_id, what, reason, writer) DO UPDATE SET
        count = executions_trouble.count + excluded.count, undone = executions_trouble.undone + excluded.undone,
        worst_s = greatest(executions_trouble.worst_s, excluded.worst_s), latest = excluded.latest
), counted AS (
    SELECT date_trunc('minute', CASE what WHEN 'due' THEN coalesce(due, at) ELSE at END) AS minute, owner_id, what,
        0 AS bucket
    FROM entry
    UNION ALL
    SELECT date_trunc('minute', at), owner_id, 'lateness', width_bucket(late_s, %(bounds_s)s::float8[])
    FROM entry
    WHERE late_s IS NOT NULL
)
INSERT INTO executions_minute (minute, owner_id, what, bucket, writer, count)
SELECT minute, owner_id, what, bucket, pg_backend_pid(), count(*)
FROM counted
GROUP BY minute, owner_id, what, bucket
ON CONFLICT (minute, owner_id, what, bucket, writer) DO UPDATE SET count = executions_minute.count + excluded.count

-- name: minutes
-- What was counted in each minute of a span, of all teams or of some (an array of their ids, or NULL).
SELECT minute, what, bucket, sum(count) FROM executions_minute
WHERE minute >= %(since)s AND minute < %(until)s AND (%(teams)s::integer[] IS NULL OR owner_id = ANY(%(teams)s))
GROUP BY minute, what, bucket

-- name: trouble
-- The jobs that failed most often since an hour, for each reason, with the latest run that did.
SELECT job_id, reason, sum(count), sum(undone), max(worst_s), (array_agg(latest ORDER BY hour DESC))[1]
FROM executions_trouble
WHERE hour >= %(since)s AND what = 'failed' AND (%(teams)s::integer[] IS NULL OR owner_id = ANY(%(teams)s))
GROUP BY job_id, reason
ORDER BY sum(count) DESC, job_id, reason
LIMIT %(limit)s

-- name: late
-- The jobs that most often were late since an hour, the late starts and what is due now and has not begun: how many, how
-- many of them have not begun, the greatest lateness, the latest run. What is late on purpose (catching up, jitter) does
-- not count. At most so many that have not begun are counted.
WITH waiting AS (
    SELECT w.job_id, w.id, extract(epoch FROM %(until)s::timestamptz - w.due)::float8 AS late_s FROM (
        SELECT e.job_id, e.id, e.spec_id,
            coalesce(e.moved_to, CASE WHEN e.retry_of IS NULL THEN e.scheduled_for ELSE e.created_at END) AS due
        FROM executions_execution e
        WHERE e.shard = ANY(%(shards)s) AND e.check_at > %(since)s AND e.check_at <= %(soon)s
          AND e.state = 'Waiting' AND (e.queued_at IS NOT NULL OR e.check_at <= %(until)s)
          AND e.attempt = 1 AND e.trigger = ANY(%(timely)s)
          AND (%(teams)s::integer[] IS NULL OR e.owner_id = ANY(%(teams)s))
        LIMIT %(limit)s) w
    JOIN executions_runspec s ON s.id = w.spec_id
    WHERE coalesce((s.body ->> 'jitter_s')::float8, 0) = 0
), entry AS (
    SELECT job_id, count, 0 AS unbegun, worst_s, latest, hour FROM executions_trouble
    WHERE hour >= %(hour)s AND what = 'late' AND (%(teams)s::integer[] IS NULL OR owner_id = ANY(%(teams)s))
    UNION ALL
    SELECT job_id, 1, 1, late_s, id, 'infinity'::timestamptz FROM waiting WHERE late_s > %(late_s)s
)
SELECT job_id, '', sum(count), sum(unbegun), max(worst_s), (array_agg(latest ORDER BY hour DESC, latest DESC))[1]
FROM entry
GROUP BY job_id
ORDER BY sum(count) DESC, job_id
LIMIT %(most)s

-- name: unsent
-- When the runs are due that should have been sent by now and have not been (not those that wait for leave); at most so
-- many are counted.
SELECT date_trunc('minute', late.check_at), count(*) FROM (
    SELECT e.check_at FROM executions_execution e
    WHERE e.shard = ANY(%(shards)s) AND e.check_at > %(since)s AND e.check_at <= %(until)s
      AND e.state = 'Waiting' AND e.queued_at IS NULL
      AND (%(teams)s::integer[] IS NULL OR e.owner_id = ANY(%(teams)s))
    LIMIT %(limit)s) late
GROUP BY 1

-- name: unstarted
-- The runs that are due and have not begun, sent or not, by the queue that they are for: how many, and since when the first
-- of them is due or was sent. Who waits in a pool's line waits for its place, and has no such time. At most so many are counted.
SELECT coalesce(s.body->>'queue', %(default)s), sum(r.runs)::bigint, min(r.since) FROM (
    SELECT w.spec_id, count(*) AS runs, min(w.since) AS since FROM (
        SELECT e.spec_id, CASE WHEN e.reason <> 'pool_full' THEN coalesce(e.queued_at, e.check_at) END AS since
        FROM executions_execution e
        WHERE e.shard = ANY(%(shards)s) AND e.check_at > %(since)s AND e.check_at <= %(soon)s
          AND e.state = 'Waiting' AND (e.queued_at IS NOT NULL OR e.check_at <= %(until)s)
          AND (%(teams)s::integer[] IS NULL OR e.owner_id = ANY(%(teams)s))
        LIMIT %(limit)s) w
    GROUP BY w.spec_id) r
JOIN executions_runspec s ON s.id = r.spec_id
GROUP BY 1 ORDER BY 2 DESC, 1

-- name: fold_minutes
-- Makes one row of what several connections have counted in the minutes before a time; what one of them is changing
-- waits for the next round.
WITH taken AS (
    DELETE FROM executions_minute m USING (
        SELECT minute, owner_id, what, bucket, writer FROM executions_minute
        WHERE minute < %(before)s AND minute >= %(since)s AND writer <> 0
        FOR UPDATE SKIP LOCKED) old
    WHERE (m.minute, m.owner_id, m.what, m.bucket, m.writer) = (old.minute, old.owner_id, old.what, old.bucket, old.writer)
    RETURNING m.*
)
INSERT INTO executions_minute (minute, owner_id, what, bucket, writer, count)
SELECT minute, owner_id, what, bucket, 0, sum(count) FROM taken GROUP BY minute, owner_id, what, bucket
ON CONFLICT (minute, owner_id, what, bucket, writer) DO UPDATE SET count = executions_minute.count + excluded.count

-- name: forget_minutes
-- Drops what was counted before a time.
DELETE FROM executions_minute WHERE minute < %s

-- name: forget_trouble
-- The same of failures and late starts.
DELETE FROM executions_trouble WHERE hour < %s
