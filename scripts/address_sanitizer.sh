#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# All tests of a build with TCONV_SANITIZE=address,undefined,..., with the settings that PoCL needs.
# usage: address_sanitizer.sh FOLDER-OF-THE-BUILD
set -eu
cd "$(dirname "$0")/.."
folder=$1
# PoCL's LLVM gives the thread of the first call a signal stack of its own, which the sanitizer would unmap as its own.
export ASAN_OPTIONS=use_sigaltstack=0 LSAN_OPTIONS="suppressions=$PWD/.ci/lsan.supp:print_suppressions=0"
log=$folder/sanitizer.log
tests() {
    ctest --test-dir "$folder" --output-on-failure --parallel "$(nproc)" "$@" >"$log" 2>&1
}
tests && status=0 || status=$?
cat "$log"
# The search for leaks itself can crash, when it looks at a thread that is just ending (github.com/google/sanitizers/issues/1353).
# It has reported nothing then: those tests are run again, up to three times. A leak, a wrong access and a failed test are said in
# other words.
for again in 1 2 3; do
    if [ "$status" = 0 ] || ! grep -q 'LeakSanitizer has encountered a fatal error' "$log"; then break; fi
    echo "the search for leaks crashed: the failed tests are run again ($again)"
    tests --rerun-failed && status=0 || status=$?
    cat "$log"
done
exit "$status"
