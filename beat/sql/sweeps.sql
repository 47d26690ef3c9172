-- name: load
-- The waiting runs of some shards that become due in a span and have not been queued, in order: shard, due time in
-- ms (rounded up), member of the window (as executions/entries.py has it), id of the RunSpec.
SELECT e.shard, ceil(extract(epoch FROM e.check_at) * 1000)::bigint,
       uuid_send(e.id) || substring(uuid_send(e.spec_id) FOR 8) || substring(int2send(e.attempt::int2) FROM 2)
       || substring(int4send(e.generation) FROM 3) || '\x00'::bytea,
       uuid_send(e.spec_id)
FROM executions_execution e
WHERE e.shard = ANY(%s) AND e.check_at > %s AND e.check_at <= %s
  AND e.state = 'Waiting' AND e.queued_at IS NULL AND mod(e.generation, 2) = 0
ORDER BY e.check_at, e.id

-- name: overdue
-- Whatever the scheduler should have looked at by now, after a given place in the order; but not what is being
-- changed (executions/redirection.py), unless that takes too long.
SELECT e.id, e.spec_id, e.attempt, e.check_at, e.generation, e.state, e.cancel_requested_at,
       e.job_id, e.scheduled_for, e.trigger = 'schedule' AND e.attempt = 1 AND e.queued_at IS NULL AND e.state = 'Waiting',
       e.queued_at
FROM executions_execution e
WHERE e.shard = ANY(%s) AND e.check_at <= %s AND (e.check_at, e.id) > (%s, %s)
  AND (mod(e.generation, 2) = 0 OR e.state <> 'Waiting' OR e.check_at <= %s)
ORDER BY e.check_at, e.id
LIMIT %s

-- name: highest_shard
-- The highest shard of a run that has not ended.
SELECT max(shard) FROM executions_execution WHERE check_at IS NOT NULL
