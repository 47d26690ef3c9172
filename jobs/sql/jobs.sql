-- name: without_occurrence
-- Recurring jobs of some shards, neither paused nor archived, that have no scheduled run that has not ended, with the
-- time of their last up to now; a page after a given id, since jobs past their end date are among them for ever.
SELECT j.id, greatest(coalesce(j.schedule_since, j.created_at), (
    SELECT max(greatest(e.scheduled_for, e.catch_up_until)) FROM executions_execution e
    WHERE e.job_id = j.id AND e.trigger IN ('schedule', 'catchup', 'moved') AND e.scheduled_for <= %s
      AND NOT (e.state = 'Cancelled' AND e.reason = 'rescheduled')))
FROM jobs_job j
WHERE j.shard = ANY(%s) AND j.schedule ?| %s AND j.paused_at IS NULL AND j.archived_at IS NULL AND j.id > %s AND NOT EXISTS (
    SELECT FROM executions_execution e
    WHERE e.job_id = j.id AND e.finished_at IS NULL
      AND (e.trigger = 'schedule' AND (e.state <> 'Active' OR j.overlap IN ('forbid', 'queue'))
           OR e.trigger = 'catchup' AND j.overlap = 'queue'))
ORDER BY j.id
LIMIT %s

-- name: usual_length
-- How long a job's latest completed runs took, in the median; NULL where there is none since the given id.
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY latest.length)
FROM (
    SELECT e.finished_at - e.started_at AS length FROM executions_execution e
    WHERE e.job_id = %s AND e.id >= %s AND e.state = %s AND e.started_at IS NOT NULL
    ORDER BY e.id DESC
    LIMIT %s) latest

-- name: keep_unsettled
-- Keeps jobs from being settled (which locks them FOR UPDATE) until the transaction ends; editing them goes on.
SELECT id FROM jobs_job WHERE id = ANY(%s) ORDER BY id FOR KEY SHARE

-- name: chains_alive
-- Those of some jobs, whose next run is made when one ends, of whose chain a run has not ended.
SELECT DISTINCT e.job_id
FROM executions_execution e JOIN jobs_job j ON j.id = e.job_id
WHERE e.job_id = ANY(%s) AND e.finished_at IS NULL AND e.state IN ('Waiting', 'Active')
  AND (e.trigger = 'schedule' OR e.trigger = 'catchup' AND j.overlap = 'queue')

-- name: keep_chains
-- Held to the end of the transaction: the ends of two runs of one job wait for each other.
SELECT id FROM jobs_job WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE

-- name: latest_of_chains
-- The planned time of the latest run of each job's chain that was not cancelled (an edit cancels fires to come): from
-- the index on (job, id), newest partition first.
SELECT job.id, latest.scheduled_for
FROM unnest(%s::uuid[]) AS job (id)
CROSS JOIN LATERAL (
    SELECT e.scheduled_for FROM executions_execution e
    WHERE e.job_id = job.id AND e.trigger IN ('schedule', 'catchup') AND e.state <> 'Cancelled'
    ORDER BY e.id DESC
    LIMIT 1) latest

-- name: unsettled
-- The jobs of some shards whose changes have not been carried out; first those with a run that is due soonest (of the
-- runs planned between two times, as bounds of their ids).
SELECT j.id FROM jobs_job j
WHERE j.shard = ANY(%s) AND j.revision <> j.settled_revision
ORDER BY (
    SELECT min(e.check_at) FROM executions_execution e
    WHERE e.job_id = j.id AND e.finished_at IS NULL AND e.state = 'Waiting' AND e.id BETWEEN %s AND %s), j.id
LIMIT %s

-- name: settle_alone
-- Of those who would settle a job one does; the others wait.
SELECT pg_advisory_lock(hashtextextended(%s, 0))

-- name: settled
-- Undoes settle_alone.
SELECT pg_advisory_unlock(hashtextextended(%s, 0))

-- name: last_rows
-- The latest rows of a job that its schedule made, with the last missed fire that is made after one; not what a change
-- of the schedule took away. From the index on (job, id), newest partition first.
SELECT e.id, e.scheduled_for, e.catch_up_until, e.missed, e.finished_at FROM executions_execution e
WHERE e.job_id = %s AND e.trigger IN ('schedule', 'catchup', 'moved')
  AND NOT (e.state = 'Cancelled' AND e.reason = 'rescheduled')
ORDER BY e.id DESC
LIMIT %s

-- name: taken_ids
-- Which of some fires have a row, by their ids and the least and greatest of those.
SELECT e.job_id, e.scheduled_for FROM executions_execution e WHERE e.id = ANY(%s) AND e.id >= %s AND e.id <= %s

-- name: taken_times
-- Which of some fires (job, planned time, between two ids) have a row that the schedule made; not one that a change of
-- the schedule took away. OFFSET 0: each is looked up by the index on (job, id).
SELECT f.job_id, f.planned
FROM unnest(%s::uuid[], %s::timestamptz[], %s::uuid[], %s::uuid[]) AS f(job_id, planned, first_id, end_id)
CROSS JOIN LATERAL (
    SELECT FROM executions_execution e
    WHERE e.job_id = f.job_id AND e.id >= f.first_id AND e.id < f.end_id AND e.scheduled_for = f.planned
      AND e.trigger IN ('schedule', 'catchup', 'moved') AND NOT (e.state = 'Cancelled' AND e.reason = 'rescheduled')
    OFFSET 0) found

-- name: taken_from
-- The same of one job, from a planned time on (and an id, as a bound).
SELECT e.scheduled_for, e.trigger, e.state, e.missed, e.finished_at FROM executions_execution e
WHERE e.job_id = %s AND e.id >= %s AND e.scheduled_for >= %s
  AND e.trigger IN ('schedule', 'catchup', 'moved') AND NOT (e.state = 'Cancelled' AND e.reason = 'rescheduled')

-- name: blocks
-- The rows of some jobs that stand for many skipped fires, from the few before a span of time to its end (as bounds of
-- their ids): from the index on (job, id), newest partition first.
SELECT span.job_id, near.scheduled_for, near.trigger, near.state, near.missed, near.finished_at
FROM unnest(%s::uuid[], %s::uuid[], %s::uuid[]) AS span(job_id, first_id, end_id)
CROSS JOIN LATERAL (
    (SELECT e.scheduled_for, e.trigger, e.state, e.reason, e.missed, e.finished_at FROM executions_execution e
     WHERE e.job_id = span.job_id AND e.id < span.first_id ORDER BY e.id DESC LIMIT %s)
    UNION ALL
    SELECT e.scheduled_for, e.trigger, e.state, e.reason, e.missed, e.finished_at FROM executions_execution e
    WHERE e.job_id = span.job_id AND e.id >= span.first_id AND e.id < span.end_id) near
WHERE near.missed > 1 AND near.trigger IN ('schedule', 'catchup', 'moved') AND near.reason <> 'rescheduled'

-- name: take_turns
-- Held to the end of the transaction: whoever brings the jobs in line with files does so alone.
SELECT pg_advisory_xact_lock(%s)

-- name: latest_runs
-- The latest run of each job that is more than planned: from the index on (job, id), newest partition first.
SELECT latest.id
FROM unnest(%s::uuid[]) AS job (id)
CROSS JOIN LATERAL (
    SELECT e.id FROM executions_execution e
    WHERE e.job_id = job.id AND (e.state NOT IN ('Waiting', 'Paused') OR e.attempt > 1)
    ORDER BY e.id DESC
    LIMIT 1) latest
