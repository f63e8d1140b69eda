# SPDX-License-Identifier: Apache-2.0
# What scripts that run programs in another Debian share; they read this file. $system: the folder of that system.
if [ "$(id -u)" = 0 ]; then as_root=; else as_root=sudo; fi

# Makes a system with as few packages as possible, and those named. usage: make_system RELEASE PACKAGE,...
make_system() {
    sh scripts/packages.sh debootstrap util-linux
    [ ! -e "$system/made" ] || return 0
    $as_root rm -rf "$system"
    mkdir -p build
    mirror=$(sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] \)*\([^ ]*\) .*/\2/p' /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null | head -n 1)
    $as_root debootstrap --variant=minbase --include="$2" "$1" "$system" "${mirror:-http://deb.debian.org/debian}" >"$system.log" ||
        { tail -n 5 "$system.log" >&2; exit 1; }
    $as_root touch "$system/made"
}

# Runs a command in that system, with this folder in the same place. usage: inside COMMAND [VARIABLE=VALUE...]
inside() {
    command=$1
    shift
    $as_root unshare --mount sh -c 'mkdir -p "$1$2" && mount --bind "$2" "$1$2" && mount -t proc proc "$1/proc" && mount --bind /dev "$1/dev" &&
        mount --bind /sys "$1/sys" && system=$1 folder=$2 command=$3 && shift 3 &&
        exec chroot "$system" env -i HOME=/tmp PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@" sh -ec "cd \"$folder\"; $command"' \
        sh "$system" "$PWD" "$command" "POCL_AFFINITY=$(sh scripts/pocl_affinity.sh)" "$@"
}
