#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Unpacks libclc for clang 14 into build/libclc-14, for scripts/offline_gate.py. It is not installed, because Debian 12 has one
# libclc at a time, and Mesa needs a later one.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
place=$root/build/libclc-14
[ ! -e "$place/done" ] || exit 0
mkdir -p "$place"
cd "$place"
download() { apt-get -qq -o APT::Sandbox::User=root download libclc-14; }
download || { apt-get -qq update && download; }
dpkg -x libclc-14_*.deb .
rm libclc-14_*.deb
touch done
