# Purpose: outlive the worker that started a run, hold its lock, and leave behind how it ended.
# Started in a session of its own, apart from the command's, so that whatever the command kills,
# itself with its whole group included, there is somebody left to say so.
# With: fd 0 the end of the pipe that command.sh writes to, fd 9 the lock whose holder is, by
# definition, the running attempt. Argument: the run's folder.
run=$1
umask 077
read -r group || exit 1 # the launcher died before it started the command: nothing has run
echo "$group" >"$run/group"
echo $$ >"$run/pid"
# No code: command.sh was killed, by the command (kill 0, kill $PPID) or by whoever stops the run.
read -r code || code=137
# One short write; a reader takes it only with its newline.
echo "$code" >"$run/exit"
# As with the first process of a container: when it ends, what it left behind ends.
kill -KILL -"$group"
