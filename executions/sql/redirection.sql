-- name: live_runs
-- The runs of a job that have not ended.
SELECT e.id, e.job_id, e.spec_id, e.trigger, e.state, e.attempt, e.generation, e.scheduled_for, e.check_at, e.queued_at, e.moved_to
FROM executions_execution e
WHERE e.job_id = %s AND e.finished_at IS NULL
ORDER BY e.id

-- name: live_run
-- One run, if it has not ended.
SELECT e.id, e.job_id, e.spec_id, e.trigger, e.state, e.attempt, e.generation, e.scheduled_for, e.check_at, e.queued_at, e.moved_to
FROM executions_execution e
WHERE e.id = %s AND e.finished_at IS NULL

-- name: raise_generations
-- Gives waiting runs their next odd generation: they are being changed. Returns those that (still) wait.
UPDATE executions_execution e SET generation = e.generation + 1 + mod(e.generation, 2)
WHERE e.id = ANY(%s) AND e.state = 'Waiting'
RETURNING e.id, e.attempt, e.generation

-- name: let_go
-- Ends the change of runs that had begun.
UPDATE executions_execution e SET generation = e.generation + 1
WHERE e.id = ANY(%s) AND mod(e.generation, 2) = 1

-- name: redirect_runs
-- What waiting and paused runs are to be from now on, where nobody else has changed them. Returns the ids won.
-- One that is moved leaves its schedule or its backfill; what somebody asked for by hand belongs to neither. For what
-- it waited in a line (executions/pools.py) is over.
UPDATE executions_execution e
SET generation = e.generation + mod(e.generation, 2), spec_id = v.spec_id, check_at = v.check_at,
    owner_id = coalesce(v.owner_id, e.owner_id), queued_at = NULL, moved_to = coalesce(v.moved_to, e.moved_to),
    reason = coalesce(v.reason, CASE WHEN e.reason IN ('pool_full', 'no_room') THEN '' ELSE e.reason END),
    message = coalesce(v.message, CASE WHEN e.reason IN ('pool_full', 'no_room') THEN '' ELSE e.message END),
    trigger = CASE WHEN v.moved_to IS NULL OR e.trigger = 'manual' THEN e.trigger ELSE 'moved' END
FROM unnest(
    %s::uuid[], %s::smallint[], %s::integer[], %s::uuid[], %s::timestamptz[], %s::integer[], %s::text[], %s::text[],
    %s::timestamptz[]
) AS v(id, attempt, generation, spec_id, check_at, owner_id, reason, message, moved_to)
WHERE e.id = v.id AND e.state IN ('Waiting', 'Paused') AND e.attempt = v.attempt AND e.generation = v.generation
RETURNING e.id
