#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The tests of a build with TCONV_SANITIZE=address,undefined,..., with the settings that PoCL needs.
# usage: address_sanitizer.sh FOLDER-OF-THE-BUILD [ARGUMENT-OF-CTEST...]
set -eu
cd "$(dirname "$0")/.."
folder=$1
shift
# PoCL's LLVM gives the thread of the first call a signal stack of its own, which the sanitizer would unmap as its own.
# Up to GCC 13 the search for leaks takes some memory of a thread in a loaded library for one with a header of glibc before 2.25,
# reads an address from in front of it and crashes (github.com/google/sanitizers/issues/1322). Without this interception it does
# not look there; what only such memory pointed to would be reported as a leak.
export ASAN_OPTIONS=use_sigaltstack=0:intercept_tls_get_addr=0 LSAN_OPTIONS="suppressions=$PWD/.ci/lsan.supp:print_suppressions=0"
exec ctest --test-dir "$folder" --no-tests=error --output-on-failure --parallel "$(nproc)" "$@"
