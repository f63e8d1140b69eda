#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a test, unless it has passed before with the same contents of all files on which its verdict depends. The environment variable
# TCONV_CL_TEST_VERDICTS names the folder of verdicts (device_tests/support/verdicts.h); without it, or if it is "off", the test runs.
# usage: unless_passed.sh NAME FILES... -- COMMAND...
set -eu
name=$1
shift
case ${TCONV_CL_TEST_VERDICTS:-off} in
off) key= ;;
*) key=start verdict=$TCONV_CL_TEST_VERDICTS/$name ;;
esac
while [ "$1" != -- ]; do
    [ -z "$key" ] || key=$(printf '%s %s' "$key" "$(sha256sum <"$1")" | sha256sum)
    shift
done
shift
if [ -n "$key" ] && [ "$(cat "$verdict" 2>/dev/null)" = "$key $*" ]; then
    echo "the test passed before and was not run again"
    exit 0
fi
"$@"
[ -z "$key" ] || { echo "$key $*" >"$verdict.part" && mv "$verdict.part" "$verdict"; }
