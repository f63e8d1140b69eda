#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the POCL_AFFINITY with which a process of this shell runs best: that of the environment, else 1 if the process may use the
# processors 0 to n - 1, to which PoCL pins its n threads, else 0. docs/benchmarks.md has the reasons.
# usage: pocl_affinity.sh [ALLOWED ONLINE]     lists of processors as the kernel writes them, for tests; else this process's and the machine's
set -eu
if [ -n "${POCL_AFFINITY:-}" ]; then
    echo "$POCL_AFFINITY"
    exit
fi
allowed=${1-$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status 2>/dev/null || true)} # Linux only
online=${2-$(cat /sys/devices/system/cpu/online 2>/dev/null || true)}
last=${online##*[-,]}
threads=${POCL_MAX_PTHREAD_COUNT:-$((${last:--1} + 1))}
range=${allowed%%,*} # the first one, from 0 or not
case $range in
0-*) most=${range#0-} ;;
0) most=0 ;;
*) most=-1 ;;
esac
if [ "$threads" -ge 1 ] && [ "$most" -ge $((threads - 1)) ]; then echo 1; else echo 0; fi
