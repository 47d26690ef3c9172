# Purpose: run one command, outlive the worker that started it, and leave behind how it ended.
# Started in a session of its own with: fd 1 the output file, fd 2 nowhere, fd 9 the lock
# whose holder is, by definition, the running attempt.
# Arguments: run folder, address space in KiB or '', cgroup folders separated by ':', working
# folder, then the command.
run=$1 address_space=$2 groups=$3 folder=$4
shift 4
# A signal to the group is for the command. A trap, unlike an ignored signal, is not inherited.
trap : HUP INT TERM
echo $$ >"$run/pid"
(
    exec 2>&1 9>&-
    IFS=:
    for group in $groups; do
        echo 0 >"$group/cgroup.procs" || exit 125
    done
    [ -z "$address_space" ] || ulimit -v "$address_space" || exit 125
    cd "$folder" || exit 125
    unset IFS OLDPWD
    exec "$@"
)
# One short write; a reader takes it only with its newline.
echo $? >"$run/exit"
# As with the first process of a container: when it ends, what it left behind ends.
kill -KILL 0
