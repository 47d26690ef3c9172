#!/bin/sh
# Heartbeat of the machine: free space of the working folder's disk, available memory, load; one line.
# Exit codes: 0 well; 1 less free space than PARAM_MIN_FREE_MB (megabytes, default 100); 2 a bad parameter.
set -eu

min_free_mb=${PARAM_MIN_FREE_MB:-100}
case $min_free_mb in
    '' | *[!0-9]*)
        echo "error: PARAM_MIN_FREE_MB='$min_free_mb' is not a whole number of megabytes, for example 100" >&2
        exit 2
        ;;
esac

# df -P: one line a file system, columns as POSIX has them; the 4th is the free space, the 5th what is used.
disk=$(df -P -k . | awk 'NR == 2 { printf "%d %s", $4 / 1024, $5 }')
free_mb=${disk% *}
line="disk: $free_mb MB free (${disk#* } used)"

# Linux only; elsewhere the line ends with the disk.
if [ -r /proc/meminfo ]; then
    line="$line; memory: $(awk '/^MemAvailable:/ { printf "%d", $2 / 1024 }' /proc/meminfo) MB available"
fi
if [ -r /proc/loadavg ]; then
    line="$line; load: $(cut -d ' ' -f 1 /proc/loadavg)"
fi
echo "$line"

if [ "$free_mb" -lt "$min_free_mb" ]; then
    echo "error: the disk has $free_mb MB free, less than $min_free_mb MB: remove old logs and data" >&2
    exit 1
fi
