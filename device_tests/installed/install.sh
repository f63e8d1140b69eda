#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the build into an empty folder and uses it as an outsider: the example application through find_package, the README's
# example and the tutorials through pkg-config, the installed tool and the links of the installed documents; and one version
# throughout. usage: install.sh BUILD-FOLDER SOURCE-FOLDER C-COMPILER
set -eu
build=$1
source=$(cd "$2" && pwd)
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
export PKG_CONFIG_PATH="$libs"
# Whoever links the static library also links what it calls; the shared one brings that along.
static=$(pkg-config --static --libs tconv_cl)
for flag in -pthread -ldl -lOpenCL; do
    case " $static " in *" $flag "*) ;; *) echo "pkg-config --static lacks $flag: $static"; exit 1 ;; esac
done
case $(pkg-config --libs tconv_cl) in *pthread* | *-ldl*) echo "pkg-config links what only the static library needs"; exit 1 ;; esac
flags=$(pkg-config --cflags --libs tconv_cl)
[ -e "$libs/../libtconv_cl.so" ] || flags="$(pkg-config --cflags tconv_cl) $static"
"$compiler" -std=c11 -Wall -Wextra -Wpedantic -Werror "$work/readme.c" -o "$work/readme" $flags -Wl,-rpath,"$(dirname "$libs")"
"$work/readme"
# The API page's example of two layers, with a program around it.
sed -n '/^static tconv_status decode(/,/^}$/p' "$source/docs/api.md" >"$work/decode.h"
[ "$(wc -l <"$work/decode.h")" -le 30 ] || { echo "the example of docs/api.md is long"; exit 1; }
"$compiler" -std=c11 -Wall -Wextra -Wpedantic -Werror -I "$work" "$source/device_tests/installed/decode.c" -o "$work/decode" $flags \
    -Wl,-rpath,"$(dirname "$libs")"
"$work/decode"
for page in host_arrays own_queue slices; do
    sh "$source/device_tests/installed/tutorial.sh" "$source/docs/tutorials/$page.md" "$compiler" "$flags -Wl,-rpath,$(dirname "$libs")"
done

# The header's version is that of the tool, the pkg-config file, the CMake package and the library, in its code, file name and soname.
version=$(sed -n 's/^#define TCONV_VERSION_STRING "\(.*\)"/\1/p' "$work/prefix/include/tconv_cl/version.h")
same() { [ "$2" = "$3" ] || { echo "$1 is $2, and should be $3"; exit 1; }; }
same "the tool's version" "$("$work/prefix/bin/tconv-cl" --version)" "tconv-cl $version"
same "the version of pkg-config" "$(pkg-config --modversion tconv_cl)" "$version"
mkdir "$work/exact"
cat >"$work/exact/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(exact LANGUAGES C)
find_package(tconv_cl $version EXACT REQUIRED)
add_executable(exact "$source/packaging/conan/test_package/resolve.c")
target_link_libraries(exact PRIVATE tconv_cl::tconv_cl)
END
cmake -S "$work/exact" -B "$work/exact" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_C_COMPILER="$compiler" >>"$work/log"
cmake --build "$work/exact" >>"$work/log"
same "what the library prints" "$("$work/exact/exact")" "tconv-cl $version: 80 x 120"
library=$(dirname "$libs")/libtconv_cl.so
if [ -e "$library" ]; then
    same "the library" "$(basename "$(readlink -f "$library")")" "libtconv_cl.so.$version"
    same "the soname" "$(readelf --dynamic "$library" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')" "libtconv_cl.so.${version%.*}"
fi

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
sh "$source/device_tests/installed/links.sh" "$(dirname "$(find "$work/prefix" -name CONTRIBUTING.md)")"
