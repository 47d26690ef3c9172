# Purpose: run one command within its limits, and tell the shim its group and its exit code.
# Started in a session of its own, which the command shares, with: fd 1 the output file, fd 2
# nowhere, fd 8 the pipe to the shim.
# Arguments: address space in KiB or '', cgroup folders separated by ':', working folder, then
# the command.
address_space=$1 groups=$2 folder=$3
shift 3
# A signal to the group is for the command. A trap, unlike an ignored signal, is not inherited.
trap : HUP INT TERM
echo $$ >&8
(
    exec 2>&1 8>&-
    IFS=:
    for group in $groups; do
        echo 0 >"$group/cgroup.procs" || exit 125
    done
    [ -z "$address_space" ] || ulimit -v "$address_space" || exit 125
    cd "$folder" || exit 125
    unset IFS OLDPWD
    exec "$@"
)
echo $? >&8
