-- name: without_occurrence
-- Recurring jobs of some shards, neither paused nor archived, that have no scheduled run that has not ended, with the
-- planned time of their last up to now; a page after a given id, since jobs past their end date are among them for ever.
SELECT j.id, coalesce(
    (SELECT max(e.scheduled_for) FROM executions_execution e WHERE e.job_id = j.id AND e.trigger IN ('schedule', 'catchup', 'moved')
        AND e.scheduled_for <= %s),
    j.created_at)
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

-- name: last_planned
-- The planned time of the last occurrence of a job up to now.
SELECT max(scheduled_for) FROM executions_execution
WHERE job_id = %s AND trigger IN ('schedule', 'catchup', 'moved') AND scheduled_for <= %s

-- name: spent
-- The planned times of a job after a given one that no run is to be planned for again: they were moved, or have ended
-- before their time, as runs of the given triggers. What another schedule took away may come back.
SELECT scheduled_for FROM executions_execution
WHERE job_id = %s AND scheduled_for > %s AND trigger = ANY(%s) AND (finished_at IS NOT NULL OR trigger = 'moved')
  AND NOT (state = 'Cancelled' AND reason = 'rescheduled')

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
