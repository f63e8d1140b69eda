#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the POCL_AFFINITY with which a process of this shell runs best: that of the environment, else 1 if PoCL's n threads fill all that
# the process may use: the processors 0 to n - 1, and no others, without a quota of less time than theirs. Else 0: the rest is for
# other processes, and those that pin threads would all go to the processors from 0 on. docs/benchmarks.md has the reasons.
# usage: pocl_affinity.sh [ROOT]     ROOT/proc and ROOT/sys are read in place of /proc and /sys, for tests
set -eu
if [ -n "${POCL_AFFINITY:-}" ]; then
    echo "$POCL_AFFINITY"
    exit
fi
proc=${1:-}/proc/self sys=${1:-}/sys

answer() {
    echo "$1"
    exit
}

allowed=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' "$proc/status" 2>/dev/null || true) # Linux only
online=$(cat "$sys/devices/system/cpu/online" 2>/dev/null || true)
[ -n "$allowed" ] && [ -n "$online" ] || answer 0
last=${online##*[-,]}
threads=${POCL_MAX_PTHREAD_COUNT:-$((last + 1))}

# The processors from 0 on must be the process's, as many as there are threads; no other one that is online may be.
range=${allowed%%,*}
case $range in
0 | 0-*) end=${range#0-} ;;
*) answer 0 ;;
esac
[ "$end" -le "$last" ] || end=$last
case $threads in
*[!0-9]*) answer 0 ;;
esac
[ "$end" = $((threads - 1)) ] || answer 0
case $allowed in
*,*)
    next=${allowed#*,}
    [ "${next%%[-,]*}" -gt "$last" ] || answer 0
    ;;
esac

# limits FOLDER: false if a control group's quota, in microseconds for each period, is less than the time of the threads' processors.
limits() {
    quota=max period=100000
    if [ -r "$1/cpu.max" ]; then
        read -r quota period <"$1/cpu.max"
    elif [ -r "$1/cpu.cfs_quota_us" ]; then # version 1 of control groups; -1: none
        read -r quota <"$1/cpu.cfs_quota_us"
        read -r period <"$1/cpu.cfs_period_us"
    fi
    case $quota in
    max | -1) ;;
    *) [ "$quota" -ge $((threads * period)) ] ;;
    esac
}

# The process's own group and those around it. In a container the outermost that can be seen is its own.
[ -r "$proc/cgroup" ] || answer 1
while IFS=: read -r number kinds path; do
    case $number,$kinds, in
    0,,) folder=$sys/fs/cgroup ;;
    *,cpu,*) folder=$sys/fs/cgroup/cpu ;;
    *) continue ;;
    esac
    while :; do
        limits "$folder${path%/}" || answer 0
        case $path in
        */?*) path=${path%/*} ;;
        *) break ;;
        esac
    done
done <"$proc/cgroup"
answer 1
