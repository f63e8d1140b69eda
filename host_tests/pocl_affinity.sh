#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# scripts/pocl_affinity.sh asks for pinned threads only where a process may use their processors.
# usage: pocl_affinity.sh SOURCES
set -eu
script=$1/scripts/pocl_affinity.sh
unset POCL_AFFINITY POCL_MAX_PTHREAD_COUNT

# WANTED ALLOWED ONLINE [THREADS]
while read -r wanted allowed online threads; do
    got=$(env ${threads:+POCL_MAX_PTHREAD_COUNT=$threads} sh "$script" "$allowed" "$online")
    [ "$got" = "$wanted" ] || { echo "processors $allowed of $online, ${threads:-all} threads: $got, not $wanted"; exit 1; }
done <<'end'
1 0-1 0-1
1 0 0
1 0-63 0-63
1 0-127 0-63
1 0-3,8-11 0-3
0 1 0-1
0 0 0-1
1 0 0-1 1
0 1 0-1 1
0 2-3 0-3
0 2-3 0-1
0 0,2-3 0-3
1 0-1,3 0-3 2
0 0-3,8-11 0-11
0 0-1 0-1 4
end
[ "$(POCL_AFFINITY=1 sh "$script" 1 0-1)" = 1 ] && [ "$(POCL_AFFINITY=0 sh "$script" 0-1 0-1)" = 0 ] || { echo "what is set is replaced"; exit 1; }
[ "$(sh "$script" '' '')" = 0 ] || { echo "an unknown system is pinned"; exit 1; }

if command -v taskset >/dev/null && [ "$(cat /sys/devices/system/cpu/online)" != 0 ] && taskset -c 0 true 2>/dev/null; then
    [ "$(taskset -c 0 sh "$script")" = 0 ] || { echo "a process that may use one processor is pinned to others"; exit 1; }
fi
