#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A parent project that takes the library by add_subdirectory: it gets targets, and cache variables TCONV_*; its own cache,
# installation and packages stay what they were. usage: subproject.sh SOURCE-FOLDER C-COMPILER
set -eu
source=$1
compiler=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "FAILED: $*"
    exit 1
}

cat >"$work/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(parent VERSION 7.8.9 LANGUAGES C)
find_package(OpenCL REQUIRED) # these two are in any cache
find_package(Threads REQUIRED)
add_executable(app app.c)
if(TCONV)
    add_subdirectory("${TCONV}" inner)
    target_link_libraries(app PRIVATE tconv_cl::tconv_cl)
    target_compile_definitions(app PRIVATE WITH)
    get_target_property(type tconv_cl TYPE)
    message(STATUS "type: ${type}")
    get_property(tests DIRECTORY "${TCONV}" PROPERTY TESTS)
    message(STATUS "tests: ${tests}.")
endif()
install(TARGETS app)
if(PACKAGE)
    set(CPACK_PACKAGE_CONTACT "parent <parent@example.org>")
    include(CPack)
endif()
END
cat >"$work/app.c" <<'END'
#ifdef WITH
#include <tconv_cl/tconv_cl.h>
int main(void)
{
    tconv_problem problem = TCONV_PROBLEM_INIT;
    tconv_geometry geometry = TCONV_GEOMETRY_INIT;
    problem.data = (tconv_shape){3, {1, 1, 2}};
    problem.filter = (tconv_shape){3, {1, 1, 3}};
    return tconv_resolve(&problem, &geometry, 0) == TCONV_OK && geometry.output[0] == 4 ? 0 : 1;
}
#else
int main(void) { return 0; }
#endif
END

# Configures anew; options follow.
configure() {
    rm -rf "$work/build"
    cmake -S "$work" -B "$work/build" -DCMAKE_C_COMPILER="$compiler" "$@" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
}

# The cache without the library's own variables and a count of CMake's.
cache() {
    grep -E '^[^#/]+=' "$work/build/CMakeCache.txt" | grep -vE '^(TCONV|tconv_cl_|CMAKE_NUMBER_OF_MAKEFILES)'
}

with=-DTCONV="$source"
configure -DPACKAGE=ON
cache >"$work/cache"
cp "$work/build/CPackConfig.cmake" "$work/package"
configure -DPACKAGE=ON "$with"
cache | diff "$work/cache" - || fail "the parent's cache is another one"
diff "$work/package" "$work/build/CPackConfig.cmake" || fail "the parent's package is another one"
grep -q 'type: STATIC_LIBRARY' "$work/log" || fail "not static, as CMake's libraries are"
grep -q 'tests: \.' "$work/log" || fail "tests are added"
configure "$with" -DTCONV_INSTALL=ON
[ ! -e "$work/build/CPackConfig.cmake" ] || fail "a package appears"
configure "$with" -DBUILD_SHARED_LIBS=ON
grep -q 'type: SHARED_LIBRARY' "$work/log" || fail "BUILD_SHARED_LIBS=ON makes no shared library"
configure "$with" -DBUILD_SHARED_LIBS=ON -DTCONV_LIBRARY_TYPE=STATIC
grep -q 'type: STATIC_LIBRARY' "$work/log" || fail "TCONV_LIBRARY_TYPE=STATIC makes no static library"
configure "$with" -DTCONV_LIBRARY_TYPE=SHARED
grep -q 'type: SHARED_LIBRARY' "$work/log" || fail "TCONV_LIBRARY_TYPE=SHARED makes no shared library"

configure "$with"
cmake --build "$work/build" --parallel "$(nproc)" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
"$work/build/app" || fail "the application does not work"
cmake --install "$work/build" --prefix "$work/prefix" >"$work/log"
[ "$(cd "$work/prefix" && find . -type f)" = ./bin/app ] || fail "more than the application is installed: $(find "$work/prefix")"
cmake -DTCONV_INSTALL=ON "$work/build" >"$work/log"
cmake --build "$work/build" --parallel "$(nproc)" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
cmake --install "$work/build" --prefix "$work/prefix" >"$work/log"
for file in libtconv_cl.a tconv_clConfig.cmake tconv_cl.pc tconv_cl.h; do
    find "$work/prefix" -name $file | grep -q . || fail "TCONV_INSTALL=ON installs no $file"
done
echo "a parent project keeps its cache, its installation and its package"
