-- name: parked
-- The held next occurrences of some jobs, with the runs that each waits for.
SELECT n.id, n.spec_id, n.attempt, n.generation, n.job_id, n.scheduled_for, n.check_at, j.overlap, busy.runs, busy.unasked
FROM executions_execution n JOIN jobs_job j ON j.id = n.job_id
CROSS JOIN LATERAL (
    SELECT count(*) AS runs, array_agg(l.id) FILTER (WHERE l.cancel_requested_at IS NULL) AS unasked
    FROM executions_execution l
    WHERE l.job_id = n.job_id AND l.finished_at IS NULL AND l.id <> n.id AND l.check_at < %(first)s
      AND (l.trigger = 'catchup' OR l.trigger = 'schedule'
           AND (l.state = 'Active' OR l.queued_at IS NOT NULL OR l.attempt > 1))) busy
WHERE n.job_id = ANY(%(jobs)s) AND n.finished_at IS NULL
  AND n.trigger = 'schedule' AND n.state = 'Waiting' AND n.check_at >= %(first)s

-- name: parked_due
-- The held next occurrences of some shards that are due, with the runs that each waits for. They are looked for by
-- themselves: from the jobs' side it would be a look for each job.
WITH n AS MATERIALIZED (
    SELECT e.id, e.spec_id, e.attempt, e.generation, e.job_id, e.scheduled_for, e.check_at
    FROM executions_execution e
    WHERE e.shard = ANY(%(shards)s) AND e.check_at >= %(first)s AND e.check_at <= %(until)s
      AND e.trigger = 'schedule' AND e.state = 'Waiting'
)
SELECT n.id, n.spec_id, n.attempt, n.generation, n.job_id, n.scheduled_for, n.check_at, j.overlap, busy.runs, busy.unasked
FROM n JOIN jobs_job j ON j.id = n.job_id AND j.paused_at IS NULL AND j.archived_at IS NULL
CROSS JOIN LATERAL (
    SELECT count(*) AS runs, array_agg(l.id) FILTER (WHERE l.cancel_requested_at IS NULL) AS unasked
    FROM executions_execution l
    WHERE l.job_id = n.job_id AND l.finished_at IS NULL AND l.id <> n.id AND l.check_at < %(first)s
      AND (l.trigger = 'catchup' OR l.trigger = 'schedule'
           AND (l.state = 'Active' OR l.queued_at IS NOT NULL OR l.attempt > 1))) busy

-- name: next_waiting
-- The next occurrences of some jobs that wait for their time, and for nothing else.
SELECT n.id, n.job_id, n.spec_id, n.trigger, n.state, n.attempt, n.generation, n.scheduled_for, n.check_at, n.queued_at, n.moved_to
FROM executions_execution n
WHERE n.job_id = ANY(%(jobs)s) AND n.finished_at IS NULL
  AND n.trigger = 'schedule' AND n.state = 'Waiting' AND n.queued_at IS NULL AND n.check_at < %(first)s

-- name: keep_missed
-- Those of some occurrences that still wait and that nothing has started, settled or moved, held in the order of their ids
-- to the end of the transaction: of two who would settle one, the second finds what the first has made of it.
SELECT e.id FROM executions_execution e
WHERE e.id = ANY(%s) AND e.id >= %s AND e.id <= %s
  AND e.trigger = 'schedule' AND e.state = 'Waiting' AND e.queued_at IS NULL AND e.attempt = 1
ORDER BY e.id
FOR UPDATE

-- name: latest_planned
-- The planned time of the last run of each of some jobs that has not ended: the one that its chain goes on from.
SELECT e.job_id, max(e.scheduled_for) FROM executions_execution e
WHERE e.job_id = ANY(%(jobs)s) AND e.finished_at IS NULL AND e.trigger = 'schedule'
GROUP BY e.job_id

-- name: candidates
-- Held runs of some shards that are due, the longest due first, with what decides whether they may start:
-- those that catch up, and of each job as many of a backfill as its most_active leaves room for.
WITH due AS (
    SELECT e.id, e.spec_id, e.attempt, e.generation, e.job_id, e.trigger, e.scheduled_for, e.check_at,
           e.catch_up_until, e.turned_away_at, coalesce(e.most_active, 1) AS most_active,
           row_number() OVER (PARTITION BY e.job_id, e.trigger ORDER BY e.check_at, e.id) AS place
    FROM executions_execution e
    WHERE e.shard = ANY(%(shards)s) AND e.trigger IN ('catchup', 'backfill')
      AND e.check_at >= %(first)s AND e.check_at <= %(until)s AND e.state = 'Waiting'
), under_way AS (
    SELECT e.job_id, e.trigger, count(*) AS runs
    FROM executions_execution e
    WHERE e.shard = ANY(%(shards)s) AND e.trigger IN ('catchup', 'backfill') AND e.check_at < %(first)s
    GROUP BY e.job_id, e.trigger
), free AS (
    SELECT d.* FROM due d LEFT JOIN under_way u ON u.job_id = d.job_id AND u.trigger = d.trigger
    WHERE d.place + coalesce(u.runs, 0) <= d.most_active
    ORDER BY d.check_at, d.id
    LIMIT %(limit)s
)
SELECT f.id, f.spec_id, f.attempt, f.generation, f.job_id, f.trigger, f.check_at, j.overlap,
       j.archived_at IS NULL AND (j.paused_at IS NULL OR f.trigger = 'backfill'),
       EXISTS (
           SELECT FROM executions_execution l
           WHERE l.job_id = f.job_id AND l.finished_at IS NULL AND l.trigger = 'schedule' AND l.check_at < %(first)s
             AND (l.state = 'Active' OR l.queued_at IS NOT NULL OR l.attempt > 1
                  OR l.check_at <= %(soon)s AND (f.turned_away_at > %(impatient)s) IS NOT FALSE)),
       f.scheduled_for, f.catch_up_until, f.turned_away_at
FROM free f JOIN jobs_job j ON j.id = f.job_id
ORDER BY f.check_at, f.id

-- name: turn_away
-- Held runs that could not start, and when they are looked at again; the first time that regular runs were the reason
-- is kept, and said.
UPDATE executions_execution e
SET check_at = v.next, turned_away_at = coalesce(e.turned_away_at, v.since),
    message = CASE WHEN v.since IS NULL THEN e.message ELSE v.message END
FROM unnest(%s::uuid[], %s::timestamptz[], %s::timestamptz[], %s::timestamptz[], %s::text[])
    AS v(id, seen, next, since, message)
WHERE e.id = v.id AND e.check_at = v.seen AND e.state = 'Waiting'

-- name: under_way
-- How many runs of some shards have been given leave and have not ended; one that waits for a retry is not under way.
SELECT count(*) FROM executions_execution e
WHERE e.shard = ANY(%(shards)s) AND e.trigger IN ('catchup', 'backfill') AND e.check_at < %(first)s
  AND (e.state = 'Active' OR e.queued_at IS NOT NULL OR e.check_at <= %(soon)s)
