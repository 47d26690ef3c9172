-- name: insert_executions
-- New Waiting (or already skipped) executions; what exists already stays as it is. Returns the ids that are new.
INSERT INTO executions_execution
    (id, job_id, spec_id, owner_id, shard, trigger, scheduled_for, state, reason, message, missed, finished_at, check_at,
     catch_up_until, most_active, retry_of)
SELECT * FROM unnest(
    %s::uuid[], %s::uuid[], %s::uuid[], %s::integer[], %s::smallint[], %s::text[], %s::timestamptz[],
    %s::text[], %s::text[], %s::text[], %s::integer[], %s::timestamptz[], %s::timestamptz[],
    %s::timestamptz[], %s::smallint[], %s::uuid[])
ON CONFLICT (id) DO NOTHING
RETURNING id

-- name: lock_runs
-- The rows that a batch of events speaks of, locked in the order of their ids so that two recorders cannot deadlock.
SELECT e.id, e.state, e.attempt, e.failures, e.losses, e.reason, e.message, e.worker, e.exit_code,
       e.queued_at, e.started_at, e.first_started_at, e.finished_at, e.check_at, e.cancel_requested_at IS NOT NULL, e.generation,
       e.job_id, e.spec_id, e.trigger, e.scheduled_for, e.catch_up_until, s.body
FROM executions_execution e JOIN executions_runspec s ON s.id = e.spec_id
WHERE e.id = ANY(%s) AND e.id >= %s AND e.id <= %s
ORDER BY e.id
FOR UPDATE OF e

-- name: update_runs
-- Writes back folded rows, only where state and attempt are still those that were folded from. Returns the ids won.
UPDATE executions_execution e
SET state = v.state, attempt = v.attempt, failures = v.failures, losses = v.losses, reason = v.reason,
    message = v.message, worker = v.worker, exit_code = v.exit_code, queued_at = v.queued_at,
    started_at = v.started_at, first_started_at = v.first_started_at, finished_at = v.finished_at, check_at = v.check_at
FROM unnest(
    %s::uuid[], %s::text[], %s::smallint[],
    %s::text[], %s::smallint[], %s::smallint[], %s::smallint[], %s::text[], %s::text[], %s::text[], %s::integer[],
    %s::timestamptz[], %s::timestamptz[], %s::timestamptz[], %s::timestamptz[], %s::timestamptz[]
) AS v(id, old_state, old_attempt,
    state, attempt, failures, losses, reason, message, worker, exit_code,
    queued_at, started_at, first_started_at, finished_at, check_at)
WHERE e.id = v.id AND e.id >= %s AND e.id <= %s AND e.state = v.old_state AND e.attempt = v.old_attempt
RETURNING e.id

-- name: request_cancel
-- Notes that somebody wants a run ended, and why where that is not plain. Returns its state and attempt, and whether it
-- may be on its way to a worker; the sweep looks at such a one at once, until it is known what became of it.
UPDATE executions_execution
SET cancel_requested_at = %(now)s, reason = %(reason)s, message = %(message)s,
    check_at = CASE WHEN state = 'Waiting' AND (queued_at IS NOT NULL OR check_at <= %(soon)s)
               THEN least(check_at, %(now)s) ELSE check_at END
WHERE id = %(id)s AND finished_at IS NULL
RETURNING state, attempt, state = 'Waiting' AND (queued_at IS NOT NULL OR check_at <= %(soon)s)

-- name: skip_missed
-- Ends waiting runs that were never sent, as the skipped ones that each stands for. Returns the ids won.
UPDATE executions_execution e
SET state = 'Cancelled', reason = v.reason, message = v.message, missed = v.missed, finished_at = %s, check_at = NULL
FROM unnest(%s::uuid[], %s::text[], %s::text[], %s::integer[]) AS v(id, reason, message, missed)
WHERE e.id = v.id AND e.id >= %s AND e.id <= %s AND e.state = 'Waiting' AND e.queued_at IS NULL AND e.attempt = 1
RETURNING e.id

-- name: hold_missed
-- Lets waiting runs that were never sent stand for missed fires: they catch up when they are given leave. Returns the ids won.
UPDATE executions_execution e SET trigger = 'catchup', check_at = v.check_at, catch_up_until = v.catch_up_until
FROM unnest(%s::uuid[], %s::timestamptz[], %s::timestamptz[]) AS v(id, check_at, catch_up_until)
WHERE e.id = v.id AND e.id >= %s AND e.id <= %s AND e.state = 'Waiting' AND e.queued_at IS NULL AND e.attempt = 1
RETURNING e.id

-- name: postpone_checks
-- Moves the next look at rows, only where nobody else has moved it meanwhile. Returns the ids won.
UPDATE executions_execution e SET check_at = v.next
FROM unnest(%s::uuid[], %s::timestamptz[], %s::timestamptz[]) AS v(id, seen, next)
WHERE e.id = v.id AND e.check_at = v.seen AND e.state IN ('Waiting', 'Active')
RETURNING e.id
