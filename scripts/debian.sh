#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds Debian packages of library, headers, tool and documentation into build/debian, from packaging/debian and the files that git knows,
# and checks them: lintian without warnings, what the library depends on, and that a program compiles with them.
# For Debian 12, as root or with sudo. usage: debian.sh
set -eu
cd "$(dirname "$0")/.."
root=$PWD
out=$root/build/debian
sh scripts/packages.sh build-essential pkg-config git fakeroot debhelper lintian cmake ocl-icd-opencl-dev libxxhash-dev libjansson-dev libexpat1-dev libpopt-dev libcsv-dev pocl-opencl-icd
version=$(sed -n 's/^#define TCONV_VERSION_STRING "\(.*\)"/\1/p' include/tconv_cl/version.h)
rm -rf "$out"
mkdir -p "$out/tconv-cl-$version"
git ls-files -z >"$out/files"
tar --null --files-from="$out/files" --create --file "$out/files.tar" # no pipe: a file that is missing ends this
tar --extract --file "$out/files.tar" --directory "$out/tconv-cl-$version"
rm "$out/files" "$out/files.tar"
cp -r packaging/debian "$out/tconv-cl-$version/debian"
cd "$out/tconv-cl-$version"
[ "$(dpkg-parsechangelog --show-field Version)" = "$version" ] ||
    { echo "debian.sh: packaging/debian/changelog has another version than the library, $version" >&2; exit 1; }
dpkg-buildpackage --no-sign --build=full --jobs="$(nproc)" >"$out/log" 2>&1 || { tail -n 50 "$out/log"; exit 1; }
cd "$out"
lintian --fail-on=warning --tag-display-limit=0 --allow-root ./*.changes

# Installed beside the system: what the library needs, and a program that is compiled with it.
for package in ./*.deb; do dpkg -x "$package" installed; done
depends=$(dpkg-deb --field libtconv-cl0.1_*.deb Depends)
[ -z "$(echo "$depends" | tr ',' '\n' | grep -v '^ *libc6 \|^ *ocl-icd-libopencl1 ')" ] ||
    { echo "debian.sh: the library depends on $depends" >&2; exit 1; }
echo "the library depends on $depends"
sh "$root/device_tests/installed/links.sh" installed/usr/share/doc/tconv-cl-doc
multiarch=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
export PKG_CONFIG_PATH="$out/installed/usr/lib/$multiarch/pkgconfig" PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
gcc -std=c11 -o consumer "$root"/examples/consumer/*.c $(pkg-config --cflags --libs tconv_cl) -lm
export LD_LIBRARY_PATH="$out/installed/usr/lib/$multiarch"
./consumer
installed/usr/bin/tconv-cl version
ls -l ./*.deb
