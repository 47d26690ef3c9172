-- name: create
-- Raises a job's revision whenever its row changes, by whatever route, and tells the beats (LISTEN jobs_changed).
-- What only the settling of a change writes does not count. A revision can be raised by hand ("settle this again"),
-- but never lowered.
CREATE FUNCTION jobs_revise() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    settling constant text[] := ARRAY['revision', 'settled_revision', 'problem', 'on_resume'];
BEGIN
    NEW.revision := greatest(NEW.revision, OLD.revision);
    IF NEW.revision = OLD.revision AND to_jsonb(NEW) - settling <> to_jsonb(OLD) - settling THEN
        NEW.revision := OLD.revision + 1;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER job_revised BEFORE UPDATE ON jobs_job FOR EACH ROW EXECUTE FUNCTION jobs_revise();

CREATE FUNCTION jobs_notify() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('jobs_changed', NEW.shard::text);
    RETURN NULL;
END $$;
CREATE TRIGGER job_changed AFTER INSERT OR UPDATE ON jobs_job
    FOR EACH ROW WHEN (NEW.revision <> NEW.settled_revision) EXECUTE FUNCTION jobs_notify();

-- A job that is deleted by whatever route stays, archived, so that its runs are ended and its history has a name.
-- What is archived already, and settled, may go.
CREATE FUNCTION jobs_archive() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.archived_at IS NOT NULL AND OLD.revision = OLD.settled_revision THEN
        RETURN OLD;
    END IF;
    UPDATE jobs_job SET archived_at = clock_timestamp() WHERE id = OLD.id AND archived_at IS NULL;
    RETURN NULL;
END $$;
CREATE TRIGGER job_deleted BEFORE DELETE ON jobs_job FOR EACH ROW EXECUTE FUNCTION jobs_archive();

CREATE FUNCTION jobs_revise_of_task() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE jobs_job SET revision = revision + 1 WHERE task_id = NEW.id AND archived_at IS NULL;
    RETURN NULL;
END $$;
CREATE TRIGGER task_changed AFTER UPDATE ON jobs_task
    FOR EACH ROW WHEN (NEW IS DISTINCT FROM OLD) EXECUTE FUNCTION jobs_revise_of_task();

-- name: drop
-- Undoes create.
DROP TRIGGER task_changed ON jobs_task;
DROP TRIGGER job_deleted ON jobs_job;
DROP TRIGGER job_changed ON jobs_job;
DROP TRIGGER job_revised ON jobs_job;
DROP FUNCTION jobs_revise_of_task;
DROP FUNCTION jobs_archive;
DROP FUNCTION jobs_notify;
DROP FUNCTION jobs_revise;
