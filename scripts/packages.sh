#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs those of the given Debian packages that are missing: as root, or with sudo. Says what it does.
# usage: packages.sh PACKAGE...
set -eu
missing=
for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" = 0 ]; then
    as_root=
elif command -v sudo >/dev/null; then
    as_root=sudo
else
    echo "these packages are missing, and neither root nor sudo is there to install them:$missing" >&2
    exit 1
fi
echo "installing:$missing"
$as_root apt-get update -qq
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
