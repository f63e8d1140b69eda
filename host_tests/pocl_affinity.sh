#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# scripts/pocl_affinity.sh asks for pinned threads only where they fill what the process may use.
# usage: pocl_affinity.sh SOURCES
set -eu
script=$1/scripts/pocl_affinity.sh
unset POCL_AFFINITY POCL_MAX_PTHREAD_COUNT
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
group=$root/sys/fs/cgroup
mkdir -p "$root/proc/self" "$root/sys/devices/system/cpu" "$group/cpu" "$group/docker/a" "$group/cpu/docker/a"

# machine ALLOWED ONLINE: a system whose processors are these.
machine() {
    printf 'Cpus_allowed:\tff\nCpus_allowed_list:\t%s\n' "$1" >"$root/proc/self/status"
    echo "$2" >"$root/sys/devices/system/cpu/online"
}

# expect WANTED WHAT [THREADS]
expect() {
    got=$(env ${3:+POCL_MAX_PTHREAD_COUNT=$3} sh "$script" "$root")
    [ "$got" = "$1" ] || { echo "$2, ${3:-all} threads: $got, not $1"; exit 1; }
}

# WANTED ALLOWED ONLINE [THREADS]
while read -r wanted allowed online threads; do
    machine "$allowed" "$online"
    expect "$wanted" "processors $allowed of $online" "$threads"
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
1 0-1 0-3 2
0 0-1,3 0-3 2
0 0-63 0-63 2
0 0-1 0-1 1
0 0-3,8-11 0-11
0 0-2,4 0-2,4
0 0-1 0-1 4
0 0-1 0-1 two
end

# A quota of a control group. WANTED THREADS QUOTA PERIOD VERSION GROUP: GROUP is the process's, as it says; the quota is of GROUP
# or of what contains it. "docker run --cpus 2" is 200000 of 100000.
machine 0-3 0-3
while read -r wanted threads quota period version own limited; do
    rm -f "$group"/cpu.max "$group"/*/cpu.* "$group"/*/*/cpu.* "$group"/cpu/docker/a/cpu.*
    if [ "$version" = 2 ]; then
        echo "$quota $period" >"$group$limited/cpu.max"
        echo "0::$own" >"$root/proc/self/cgroup"
    else
        echo "$quota" >"$group/cpu$limited/cpu.cfs_quota_us"
        echo "$period" >"$group/cpu$limited/cpu.cfs_period_us"
        printf '5:memory:/\n4:cpu,cpuacct:%s\n0::/\n' "$own" >"$root/proc/self/cgroup"
    fi
    [ "$threads" != all ] || threads=
    expect "$wanted" "$quota of $period in $limited (version $version)" "$threads"
done <<'end'
1 all max 100000 2 / /
0 all 200000 100000 2 / /
0 2 200000 100000 2 / /
1 all 400000 100000 2 / /
1 all 800000 100000 2 / /
0 all 399999 100000 2 / /
1 all 200000 50000 2 / /
0 all 200000 100000 2 /docker/a /docker/a
0 all 200000 100000 2 /docker/a /docker
1 all 200000 100000 2 / /docker
1 all -1 100000 1 / /
0 all 200000 100000 1 / /
0 all 200000 100000 1 /docker/a /docker/a
0 all 200000 100000 1 /docker/a /
1 all 400000 100000 1 /docker/a /
end

[ "$(POCL_AFFINITY=1 sh "$script")" = 1 ] && [ "$(POCL_AFFINITY=0 sh "$script")" = 0 ] || { echo "what is set is replaced"; exit 1; }
[ "$(sh "$script" "$root/none")" = 0 ] || { echo "an unknown system is pinned"; exit 1; }

if command -v taskset >/dev/null && [ "$(cat /sys/devices/system/cpu/online)" != 0 ] && taskset -c 0 true 2>/dev/null; then
    [ "$(taskset -c 0 sh "$script")" = 0 ] || { echo "a process that may use one processor is pinned to others"; exit 1; }
fi
