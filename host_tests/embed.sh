#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A kernel file that includes a missing file fails the build. usage: embed.sh CMAKE EMBED.CMAKE
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
root="$folder/a folder"
mkdir -p "$root/part"
echo '/* nothing */' >"$root/part/there.clh"
embed() {
    printf '%s\n' "$1" 'int one;' >"$root/kernel.cl"
    "$cmake" "-DOUTPUT=$folder/out.c" -DPREFIX=table "-DROOT=$root" \
        "-DFILES=$root/kernel.cl;$root/part/there.clh" -P "$script" >"$folder/log" 2>&1
}
cmake=$1 script=$2 bad=0
embed '#include "part/there.clh"' || { cat "$folder/log" && bad=1; }
grep -q '"part/there.clh"' "$folder/out.c" || { echo "a file's name is not its path" && bad=1; }
embed '#include <stdint.h>' || { cat "$folder/log" && bad=1; }
for missing in part/gone.clh there.clh; do
    embed "#include \"$missing\"" && echo "a missing $missing is not noticed" && bad=1
    # CMake wraps its messages.
    tr -s '\n ' ' ' <"$folder/log" | grep -q "includes $missing, which is not below" || { cat "$folder/log" && bad=1; }
done
exit $bad
