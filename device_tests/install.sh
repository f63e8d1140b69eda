#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the build into an empty folder and uses it as an outsider: the example application through find_package, the README's
# example and the tutorials through pkg-config, the installed tool and the links of the installed documents. usage: install.sh BUILD-FOLDER SOURCE-FOLDER C-COMPILER
set -eu
build=$1
source=$2
compiler=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/prefix" >"$work/log"
cmake -S "$source/examples/consumer" -B "$work/consumer" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_C_COMPILER="$compiler" >>"$work/log"
cmake --build "$work/consumer" >>"$work/log"
"$work/consumer/upsampler"
"$work/consumer/layer"

# The first C block of the README is a whole program.
sed -n '/^```c$/,/^```$/p' "$source/README.md" | sed '1d;/^```$/,$d' >"$work/readme.c"
[ -s "$work/readme.c" ] || { echo "the README has no C example"; exit 1; }
[ "$(wc -l <"$work/readme.c")" -le 40 ] || { echo "the README's example is long"; exit 1; }
libs=$(dirname "$(find "$work/prefix" -name 'tconv_cl.pc')")
flags=$(PKG_CONFIG_PATH="$libs" pkg-config --cflags --libs tconv_cl)
"$compiler" -std=c11 -Wall -Wextra -Wpedantic -Werror "$work/readme.c" -o "$work/readme" $flags -Wl,-rpath,"$(dirname "$libs")"
"$work/readme"
for page in host_arrays own_queue; do
    sh "$source/device_tests/tutorial.sh" "$source/docs/tutorials/$page.md" "$compiler" "$flags -Wl,-rpath,$(dirname "$libs")"
done

"$work/prefix/bin/tconv-cl" --version

# Pages and completion know each option that --help prints.
for command in bench run tune; do
    page=$work/prefix/share/man/man1/tconv-cl-$command.1
    for option in $("$work/prefix/bin/tconv-cl" "$command" --help | grep -oE '^ +(-., )?--[a-z-]+' | grep -oE -e '--[a-z-]+'); do
        grep -qF -e "$(printf '%s' "$option" | sed 's/-/\\-/g')" "$page" || { echo "$page lacks $option"; exit 1; }
        grep -qE " $option[ \"]" "$work/prefix/share/bash-completion/completions/tconv-cl" ||
            { echo "the completion lacks $option"; exit 1; }
    done
done
grep -q "tconv..cl..tune" "$work/prefix/share/man/man1/tconv-cl.1"
if command -v bash >/dev/null; then
    found=$(bash -c '. "$1"; COMP_WORDS=(tconv-cl tune --bud); COMP_CWORD=2; _tconv_cl; echo "${COMPREPLY[@]}"' - \
        "$work/prefix/share/bash-completion/completions/tconv-cl")
    [ "$found" = --budget ] || { echo "completion of --bud: $found"; exit 1; }
fi
sh "$source/device_tests/links.sh" "$(dirname "$(find "$work/prefix" -name CONTRIBUTING.md)")"
