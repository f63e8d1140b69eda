#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks the recipes in packaging/: that their versions are the library's, that Conan creates a static and a shared package and runs a
# program with each, that vcpkg's port builds and installs what it names, and that rattler-build reads conda's recipe and hadolint has
# nothing to say of the Dockerfile. Neither ConanCenter nor vcpkg is asked: the packages that
# the library needs are Debian's, under the names that they have in ConanCenter, and vcpkg's functions are those of CMake behind them.
# Debian 12, as root or with sudo. usage: recipes.sh
set -eu
cd "$(dirname "$0")/.."
sh scripts/packages.sh gcc libc6-dev cmake make ocl-icd-opencl-dev opencl-c-headers libxxhash-dev python3-venv
work=$PWD/build/recipes
rm -rf "$work"
mkdir -p "$work"
log=$work/log

version=$(sed -n 's/^#define TCONV_VERSION_STRING "\(.*\)"/\1/p' include/tconv_cl/version.h)
python3 - "$version" <<'END_OF_PROGRAM'
import json, sys
manifest = json.load(open("packaging/vcpkg/tconv-cl/vcpkg.json"))
if manifest["version"] != sys.argv[1]:
    sys.exit("packaging/vcpkg/tconv-cl/vcpkg.json has the version %s, the library %s" % (manifest["version"], sys.argv[1]))
END_OF_PROGRAM

# ---- Conan ----
[ -x build/conan-venv/bin/python ] || python3 -m venv build/conan-venv
build/conan-venv/bin/pip install --quiet --requirement packaging/conan/requirements.txt
export CONAN_HOME="$work/conan"
conan=$PWD/build/conan-venv/bin/conan
"$conan" profile detect >"$log" 2>&1
"$conan" remote disable '*' >>"$log" 2>&1
printf '\n[platform_tool_requires]\ncmake/%s\n' "$(cmake --version | sed -n 's/^cmake version //p')" >>"$CONAN_HOME/profiles/default"
debian() { # NAME VERSION LIBRARY
    mkdir -p "$work/$1"
    cat >"$work/$1/conanfile.py" <<END_OF_RECIPE
from conan import ConanFile


class Debian(ConanFile):
    name, version = "$1", "$2"

    def package_info(self):
        self.cpp_info.includedirs = self.cpp_info.libdirs = self.cpp_info.bindirs = []
        if "$3":
            self.cpp_info.system_libs = ["$3"]
            self.cpp_info.set_property("cmake_find_mode", "both")
            self.cpp_info.set_property("cmake_module_file_name", "OpenCL")
            self.cpp_info.set_property("cmake_target_name", "OpenCL::OpenCL")
END_OF_RECIPE
    "$conan" create "$work/$1" >>"$log" 2>&1 || { tail -n 20 "$log"; exit 1; }
}
debian opencl-headers 2023.12.14 ""
debian opencl-icd-loader 2023.12.14 OpenCL
debian xxhash 0.8.1 ""
for shared in False True; do
    "$conan" create packaging/conan -o "tconv-cl/*:shared=$shared" -c "tools.cmake.cmake_layout:test_folder=$work/test_package" \
        -c "tools.cmake.cmaketoolchain:user_presets=" >>"$log" 2>&1 || { tail -n 40 "$log"; exit 1; }
done
[ "$(grep -c "^tconv-cl $version: 80 x 120" "$log")" = 2 ] || { echo "Conan: the programs did not run"; exit 1; }
echo "Conan: static and shared packages of $version, and a program with each"

# ---- conda and Docker ----
[ -x build/conda-venv/bin/python ] || python3 -m venv build/conda-venv
build/conda-venv/bin/pip install --quiet --requirement packaging/conda/requirements.txt
build/conda-venv/bin/python packaging/conda/check.py "$version" packaging/conda/recipe.yaml
build/conda-venv/bin/hadolint packaging/docker/Dockerfile

# ---- vcpkg ----
cat >"$work/vcpkg.cmake" <<'END_OF_FILE'
cmake_minimum_required(VERSION 3.25)
function(run)
    execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
endfunction()
function(vcpkg_cmake_configure)
    cmake_parse_arguments(arg "" "SOURCE_PATH" "OPTIONS" ${ARGN})
    run("${CMAKE_COMMAND}" -S "${arg_SOURCE_PATH}" -B "${WORK}/vcpkg-build" -DBUILD_SHARED_LIBS=OFF -DCMAKE_BUILD_TYPE=Release
        "-DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR}" -DCMAKE_INSTALL_LIBDIR=lib ${arg_OPTIONS})
endfunction()
function(vcpkg_cmake_install)
    run("${CMAKE_COMMAND}" --build "${WORK}/vcpkg-build" --parallel "${JOBS}" --target install)
endfunction()
function(vcpkg_cmake_config_fixup)
    cmake_parse_arguments(arg "" "PACKAGE_NAME;CONFIG_PATH" "" ${ARGN})
    file(RENAME "${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}" "${CURRENT_PACKAGES_DIR}/share/${arg_PACKAGE_NAME}")
endfunction()
function(vcpkg_fixup_pkgconfig)
    file(READ "${CURRENT_PACKAGES_DIR}/lib/pkgconfig/tconv_cl.pc" text)
endfunction()
function(vcpkg_install_copyright)
    cmake_parse_arguments(arg "" "" "FILE_LIST" ${ARGN})
    file(INSTALL ${arg_FILE_LIST} DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
endfunction()
include("${PORTFILE}")
END_OF_FILE
cmake -DJOBS="$(nproc)" -DWORK="$work" -DPORT=tconv-cl -DCURRENT_PACKAGES_DIR="$work/packages" -DPORTFILE="$PWD/packaging/vcpkg/tconv-cl/portfile.cmake" \
    -P "$work/vcpkg.cmake" >"$log" 2>&1 || { tail -n 40 "$log"; exit 1; }
for file in lib/libtconv_cl.a include/tconv_cl/tconv_cl.h share/tconv_cl/tconv_clConfig.cmake share/tconv-cl/usage share/tconv-cl/LICENSE; do
    [ -e "$work/packages/$file" ] || { echo "vcpkg: the port installs no $file"; exit 1; }
done
[ ! -e "$work/packages/share/doc" ] || { echo "vcpkg: the port leaves documents"; exit 1; }
echo "vcpkg: the port installs library, headers, CMake package and license"
