#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The rooms of src/ and the arrows between them: an include may only point down. usage: arrows.sh SOURCE-FOLDER
cd "$1" || exit 1
bad=0
# room: the rooms that it may include
allowed() {
    case $1 in
    base) echo base common ;;
    geometry) echo base geometry ;;
    algorithm) echo base geometry algorithm algorithm/cost common ;;
    algorithm/cost) echo base geometry algorithm algorithm/cost algorithm/any ;;
    algorithm/any) echo base geometry algorithm algorithm/cost algorithm/any common any ;;
    algorithm/cpu) echo base geometry algorithm algorithm/cost algorithm/any algorithm/cpu cpu ;;
    algorithm/gpu) echo base geometry algorithm algorithm/cost algorithm/any algorithm/gpu gpu ;;
    store) echo base store ;;
    device) echo base store device ;;
    plan) echo base geometry algorithm algorithm/cost store device plan common ;;
    layer) echo base geometry device plan layer ;;
    oracle) echo base oracle common ;;
    tool | tool/io | tool/system) echo base oracle tool tool/io tool/system common ;;
    tool/bench) echo base oracle tool tool/io tool/system tool/bench ;;
    tool/cli | tool/commands) echo base oracle tool tool/io tool/system tool/bench tool/cli tool/commands common ;;
    *) echo "" ;;
    esac
}
for file in $(find src -name "*.[ch]"); do
    room=$(dirname "${file#src/}")
    for include in $(sed -n 's/^#include "\([a-z0-9_/]*\)\/.*/\1/p' "$file"); do
        [ "$include" = tconv_cl ] && continue
        case " $(allowed "$room") " in
        *" $include "*) ;;
        *) echo "$file includes $include/, which $room may not" && bad=1 ;;
        esac
    done
    # Only these rooms know OpenCL.
    case $room in
    base | geometry | algorithm* | store | oracle)
        grep -nE 'CL/cl|tconv_cl/(plan|layer|recording|tuning|trace|tconv_cl)\.h' "$file" | grep -v CL/cl_half && echo "$file knows OpenCL" && bad=1
        ;;
    esac
    # The library never prints or aborts, and reads the environment through base/os.h.
    case $room in
    tool*) ;;
    *)
        grep -nE '\b(printf|fprintf|puts|abort|exit)\(' "$file" && echo "$file prints or aborts" && bad=1
        case $file in
        src/base/os_*.c) ;;
        *) grep -n 'getenv' "$file" && echo "$file reads the environment" && bad=1 ;;
        esac
        ;;
    esac
    # What systems do differently stands behind base/os.h and the tool's system.h.
    case $file in
    src/base/os_*.[ch] | src/tool/system/*) ;;
    *) grep -nE '#include <(unistd|fcntl|dirent|dlfcn|io|locale|sched|signal|spawn|windows|sys/.*)\.h>' "$file" && echo "$file asks which system it is on" && bad=1 ;;
    esac
    [ "$(head -1 "$file")" = "/* SPDX-License-Identifier: Apache-2.0 */" ] || { echo "$file has no licence line" && bad=1; }
done
# Texts of the library do not depend on the application's locale: base/number.c writes and reads decimals, base/text.c knows capital letters.
# The tool leaves the locale "C" that every program begins with.
decimal='%[-+#0]*([0-9]+|\*)?(\.([1-9][0-9]*|\*))?[efgaEFGA]'
asks='(strto(f|d|ld)|atof|[a-z]*locale(conv)?|to(lower|upper)|is(alnum|alpha|lower|upper|space|print|punct)|strn?casecmp|strcoll)'
grep -rnE --include='*.[ch]' --exclude-dir=tool --exclude=number.c "$decimal|\b$asks\(" src && echo "these lines depend on the locale" && bad=1
grep -rnE --include='*.[ch]' --include='*.[ch]pp' --exclude-dir=tests "$decimal" adapters include && echo "these lines depend on the locale" && bad=1
grep -rnwE 'setlocale|uselocale' src/tool && echo "the tool's numbers would depend on the locale" && bad=1
# The model that geometry is compared with may share a header of the library's with it, but no code.
grep -n '#include "' fuzz/exact.[ch] | grep -vE '"(exact|tconv_cl/problem)\.h"' && echo "fuzz/exact.c is not independent" && bad=1
exit $bad
