-- name: planned
-- What Punctual knows of the runs of this chaos: job, planned time, state, and what was lost on the way.
SELECT j.name, e.scheduled_for, e.state, e.reason, e.attempt, e.losses, e.id::text
FROM executions_execution e
JOIN jobs_job j ON j.id = e.job_id

-- name: ended
-- How many runs Punctual knows to have ended.
SELECT count(finished_at) FROM executions_execution

-- name: history
-- The history of one run, for whoever must explain what became of it.
SELECT type, attempt, at::text, recorded_at::text, worker, reason, message
FROM executions_executionevent
WHERE execution_id = %s
ORDER BY at, attempt

-- name: recorder_gap
-- The longest time, in seconds, in which no recorder made a following run; each beginning makes one.
SELECT coalesce(max(extract(epoch FROM gap)), 0)::float
FROM (SELECT created_at - lag(created_at) OVER (ORDER BY created_at) AS gap
      FROM executions_execution WHERE created_at BETWEEN %s AND %s) gaps

-- name: auditor_gap
-- The longest time, in seconds, in which no auditor wrote history.
SELECT coalesce(max(extract(epoch FROM gap)), 0)::float
FROM (SELECT recorded_at - lag(recorded_at) OVER (ORDER BY recorded_at) AS gap
      FROM executions_executionevent WHERE recorded_at BETWEEN %s AND %s) gaps
