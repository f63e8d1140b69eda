#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes everything that a release publishes, of the last commit, in dist/ with SHA256SUMS: the sources, wheels, sdist, the sources of what
# the wheels' tool is linked with, Debian packages, and recipes for Conan, vcpkg, conda and Docker. Then it compiles the sources as conda's
# recipe says, and in a bare Debian 12 it installs the Debian packages and the wheel, and computes layers with each.
# For Debian 12 on amd64, as root or with sudo. The next step is in docs/publishing.md.
# usage: dist.sh [--no-build]
#   --no-build   take wheels and Debian packages as scripts/wheels.sh, debian.sh and recipes.sh have just made and checked them
set -eu
cd "$(dirname "$0")/.."
build=yes
case ${1:-} in
'') ;;
--no-build) build= ;;
*) echo "usage: dist.sh [--no-build]" >&2; exit 2 ;;
esac
sh scripts/packages.sh git xz-utils python3-venv gcc libc6-dev cmake make
[ -z "$(git status --porcelain)" ] || { echo "dist.sh: commit first: it publishes what git has" >&2; exit 1; }
version=$(sed -n 's/^#define TCONV_VERSION_STRING "\(.*\)"/\1/p' include/tconv_cl/version.h)
grep -q "^## $version, [0-9]" CHANGELOG.md || { echo "dist.sh: CHANGELOG.md has no date for $version" >&2; exit 1; }
name=tconv-cl-$version
out=$PWD/dist
work=$PWD/build/dist
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) # archives of the same commit are the same, byte by byte
export SOURCE_DATE_EPOCH
rm -rf "$out" "$work"
mkdir -p "$out" "$work"

if [ -n "$build" ]; then
    sh scripts/wheels.sh
    sh scripts/debian.sh
    sh scripts/recipes.sh
fi
for made in build/wheels/tconv_cl-"$version"-*-win_amd64.whl build/debian/tconv-cl_"$version"_*.changes build/cross/sources/complete build/recipes; do
    [ -e "$made" ] || { echo "dist.sh: there is no $made; run it without --no-build" >&2; exit 1; }
done

# usage: archive FILE FOLDER NAME...: files of a folder, compressed
archive() {
    file=$1
    folder=$2
    shift 2
    # no pipe: a file that is missing ends this
    tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -C "$folder" -cf "$work/archive.tar" "$@"
    xz -T1 <"$work/archive.tar" >"$out/$file"
    rm "$work/archive.tar"
}

echo "== sources"
git archive --prefix="$name/" --output "$work/archive.tar" HEAD
gzip -9n <"$work/archive.tar" >"$out/$name.tar.gz"
rm "$work/archive.tar"
tar -xzf "$out/$name.tar.gz" -C "$work"
sum=$(sha256sum "$out/$name.tar.gz" | cut -d ' ' -f 1)

echo "== wheels, sdist, Debian packages"
build/wheels-venv/bin/python -m build --sdist --no-isolation --outdir "$out" "$work/$name" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
cp build/wheels/*-"$version"-*.whl "$out"
build/wheels-venv/bin/python -m twine check --strict "$out"/*.whl "$out"/tconv_cl-*.tar.gz >"$work/log" || { cat "$work/log"; exit 1; }
archive "tconv_cl-$version-libraries.tar.xz" build/cross/sources complete cmocka expat jansson libcsv popt
cp build/debian/*_"$version"[._]* "$out"

echo "== recipes"
mkdir -p "$work/recipes"
cp -r "$work/$name/packaging" "$work/recipes/"
for part in debian wheels; do rm -r "$work/recipes/packaging/$part"; done
# Conda's reads the tarball beside the recipes; whoever publishes it writes its address there.
sed -i -e "s|^  path: ../..$|  path: ../../$name.tar.gz\n  sha256: $sum|" -e '/^  use_gitignore/d' "$work/recipes/packaging/conda/recipe.yaml"
grep -q "$sum" "$work/recipes/packaging/conda/recipe.yaml"
build/conda-venv/bin/python packaging/conda/check.py "$version" "$work/recipes/packaging/conda/recipe.yaml"
archive "$name-recipes.tar.xz" "$work/recipes" packaging

(cd "$out" && sha256sum -- * >SHA256SUMS)

echo "== the sources, compiled as conda's recipe says"
build/conda-venv/bin/python -c 'import sys, rattler_build
variant, = rattler_build.Stage0Recipe.from_file(sys.argv[1]).render()
print(*variant.recipe.to_dict()["build"]["script"], sep="\n")' packaging/conda/recipe.yaml >"$work/conda.sh"
(cd "$work/$name" && PREFIX="$work/conda" CPU_COUNT=$(nproc) sh -e "$work/conda.sh") >"$work/log" 2>&1 || { tail -n 30 "$work/log"; exit 1; }
cmake -S packaging/conan/test_package -B "$work/program" -DCMAKE_PREFIX_PATH="$work/conda" >"$work/log"
cmake --build "$work/program" >>"$work/log"
"$work/program/resolve"

echo "== a bare Debian 12"
system=$PWD/build/bookworm
. scripts/other_system.sh
make_system bookworm python3-venv
mkdir -p "$work/wheels"
build/wheels-venv/bin/pip download --quiet --dest "$work/wheels" --no-build-isolation "$out"/*manylinux2014_x86_64.whl # NumPy
# --no-build may be a second time: what is installed goes first.
inside "dpkg --purge tconv-cl tconv-cl-dbgsym tconv-cl-doc libtconv-cl-dev libtconv-cl0.1-dbgsym libtconv-cl0.1 >/dev/null 2>&1 || true
    rm -rf /venv
    apt-get update -qq
    apt-get install -qq --no-install-recommends ./dist/*.deb pocl-opencl-icd >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }
    tconv-cl check --data-shape 1,8,8,8 --filter-shape 8,8,3,3
    dpkg --purge tconv-cl tconv-cl-dbgsym >/dev/null
    python3 -m venv /venv
    /venv/bin/pip install --quiet --no-index --find-links build/dist/wheels tconv_cl
    /venv/bin/tconv-cl devices
    /venv/bin/tconv-cl check --data-shape 1,8,8,8 --filter-shape 8,8,3,3
    /venv/bin/python -c 'import numpy, tconv_cl
ones = numpy.ones((1, 1, 4, 4), \"f4\")
assert tconv_cl.conv_transpose(ones, ones, strides=4).sum() == 256'"
(cd "$out" && sha256sum --check --quiet SHA256SUMS && ls -l)
echo "dist/: $(find "$out" -type f | wc -l) files of $version; publish them as docs/publishing.md says"
