-- name: database_names
-- Every database of the server, whether or not one may enter it.
SELECT datname FROM pg_database ORDER BY datname
