#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs, builds, and runs the tests: those on the host, and those on every OpenCL device that the loader finds. In the end it prints
# which tests took the time, how many programs each compiled, and CTest's summary. Arguments go to ctest, for example -L host, or
# -R algorithms. It is a short run, with a sample of the problems; scripts/nightly.sh has all of them. Cases of kernels that have passed
# are not run again while nothing has changed that they depend on (device_tests/support/verdicts.h).
# usage: test.sh [--all] [ARGUMENTS-OF-CTEST...]
#   --all   run them all, also those that have passed
set -eu
cd "$(dirname "$0")/.."
if [ "${1:-}" = --all ]; then
    shift
    TCONV_CL_TEST_VERDICTS=off
fi
export TCONV_CL_TEST_VERDICTS="${TCONV_CL_TEST_VERDICTS:-$PWD/build/verdicts}"
sh scripts/packages.sh python3 # with which tests read CSV and JSON
sh scripts/build.sh
echo "device tests draw ${TCONV_CL_TEST_PERCENT:-2} % of their problems with TCONV_CL_TEST_SEED=${TCONV_CL_TEST_SEED:-1}"
export TCONV_CL_TEST_REPORT="$PWD/build/test_report"
rm -f "$TCONV_CL_TEST_REPORT" build/tests.xml
[ "$TCONV_CL_TEST_VERDICTS" = off ] || mkdir -p "$TCONV_CL_TEST_VERDICTS"
{
    code=0
    # One more than there are processors: some tests wait for the time to pass.
    ctest --test-dir build --no-tests=error --output-on-failure --parallel "$(($(nproc) + 1))" --output-junit tests.xml "$@" || code=$?
    echo "$code" >build/test_code
} | tee build/tests.log

[ -e build/tests.xml ] || exit "$(cat build/test_code)" # ctest -N

# name, seconds, programs, seconds of compiling; tests without a line in the report compile nothing, or in other processes
sed -n 's/.*<testcase name="\([^"]*\)".* time="\([^"]*\)".*/\1 \2/p' build/tests.xml |
    awk -v report="$TCONV_CL_TEST_REPORT" '
        BEGIN { while ((getline line < report) > 0) { split(line, f, " "); programs[f[1]] = f[2]; compiling[f[1]] = f[3] } }
        { key = $1; sub(/^device\./, "test_", key)
          printf "%-24s %8.1f %9s %10s\n", $1, $2, key in programs ? programs[key] : "-", key in compiling ? compiling[key] : "-"
          n++; seconds += $2; all += programs[key]; compile += compiling[key] }
        END { printf "%-24s %8.1f %9d %10.1f\n", "all", seconds, all, compile }' |
    sort -k2 -rn >build/test_times
echo
printf '%-24s %8s %9s %10s\n' "test, slowest first" seconds programs compiling
cat build/test_times
awk '/^[0-9]+\/[0-9]+ Test: / { name = $3 } / passed before and were not run again/ { print name ": " $0 }' build/Testing/Temporary/LastTest.log
echo
sed -n '/tests passed/,$p' build/tests.log
exit "$(cat build/test_code)"
