-- name: create
-- The partitioned tables of executions and their events, with default partitions.
CREATE TABLE executions_execution (
    id uuid PRIMARY KEY,
    job_id uuid NOT NULL,
    spec_id uuid NOT NULL REFERENCES executions_runspec (id),
    owner_id integer NOT NULL,
    shard smallint NOT NULL,
    trigger text NOT NULL,
    scheduled_for timestamptz NOT NULL,
    state text NOT NULL DEFAULT 'Waiting',
    reason text NOT NULL DEFAULT '',
    message text NOT NULL DEFAULT '',
    attempt smallint NOT NULL DEFAULT 1,
    failures smallint NOT NULL DEFAULT 0,
    losses smallint NOT NULL DEFAULT 0,
    missed integer NOT NULL DEFAULT 0,
    worker text NOT NULL DEFAULT '',
    exit_code integer,
    queued_at timestamptz,
    started_at timestamptz,
    finished_at timestamptz,
    cancel_requested_at timestamptz,
    check_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    CONSTRAINT execution_state_known CHECK (state IN (
        'Waiting', 'Active', 'Completed Normally', 'Completed Abnormally', 'Paused', 'Cancelled')),
    CONSTRAINT execution_finished_iff_terminal CHECK (
        (state IN ('Completed Normally', 'Completed Abnormally', 'Cancelled')) = (finished_at IS NOT NULL)),
    CONSTRAINT execution_checked_iff_waiting_or_active CHECK (
        (state IN ('Waiting', 'Active')) = (check_at IS NOT NULL)),
    CONSTRAINT execution_attempt_counts CHECK (attempt >= 1)
) PARTITION BY RANGE (id);
CREATE INDEX execution_check ON executions_execution (shard, check_at) WHERE check_at IS NOT NULL;
CREATE INDEX execution_by_job ON executions_execution (job_id, id DESC);
CREATE INDEX execution_by_owner ON executions_execution (owner_id, id DESC);
CREATE TABLE executions_execution_default PARTITION OF executions_execution DEFAULT
    WITH (fillfactor = 70);

CREATE TABLE executions_executionevent (
    execution_id uuid NOT NULL,
    id uuid NOT NULL,
    type text NOT NULL,
    attempt smallint NOT NULL,
    at timestamptz NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    worker text NOT NULL DEFAULT '',
    reason text NOT NULL DEFAULT '',
    message text NOT NULL DEFAULT '',
    exit_code integer,
    PRIMARY KEY (execution_id, id)
) PARTITION BY RANGE (execution_id);
CREATE TABLE executions_executionevent_default PARTITION OF executions_executionevent DEFAULT;

CREATE FUNCTION executions_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'events are append-only: % of a single event is refused', lower(TG_OP)
        USING ERRCODE = 'restrict_violation',
              HINT = 'History goes away by whole partitions; see executions/partitions.py.';
END $$;
CREATE TRIGGER executionevent_append_only BEFORE UPDATE OR DELETE ON executions_executionevent
    FOR EACH ROW EXECUTE FUNCTION executions_refuse_change();

-- name: drop
-- Undoes create.
DROP TABLE executions_executionevent;
DROP TABLE executions_execution;
DROP FUNCTION executions_refuse_change;
