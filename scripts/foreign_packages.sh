#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Unpacks Debian packages of another architecture into FOLDER/sysroot and does not install them: the system gets no foreign architecture, and
# no package that another one conflicts with. What is there already stays. usage: foreign_packages.sh ARCHITECTURE FOLDER PACKAGE...
set -eu
architecture=$1
work=$2
shift 2
[ ! -e "$work/sysroot/complete" ] || exit 0
mkdir -p "$work/lists/partial" "$work/archives/partial"
# apt with lists, cache and status of its own, for which all packages are of that architecture
foreign() {
    apt-get -qq -o APT::Architecture="$architecture" -o APT::Architectures="$architecture" -o APT::Sandbox::User=root \
        -o Dir::State::status=/dev/null -o Dir::State::lists="$work/lists" -o Dir::Cache="$work" "$@"
}
echo "downloading libraries for $architecture"
foreign update || echo "some package lists could not be read; trying with the others" >&2
(
    cd "$work/archives"
    rm -f ./*.deb
    foreign download "$@"
)
rm -rf "$work/sysroot"
for package in "$work"/archives/*.deb; do dpkg -x "$package" "$work/sysroot"; done
# /lib beside /usr/lib, as packages of Debian 12 have it, is one folder with it; links that begin with / would lead to this system's files.
for folder in "$work"/sysroot/lib/*-linux-*; do [ ! -d "$folder" ] || cp -a "$folder/." "$work/sysroot/usr/lib/$(basename "$folder")/"; done
find "$work/sysroot/usr/lib" -type l -lname '/*' | while read -r link; do
    target=$work/sysroot$(readlink "$link")
    [ -e "$target" ] || target=$work/sysroot/usr$(readlink "$link")
    ln -sf "$(realpath --relative-to="$(dirname "$link")" -s "$target")" "$link"
done
touch "$work/sysroot/complete"
