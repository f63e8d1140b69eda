# SPDX-License-Identifier: Apache-2.0
# Begins a script that changes a copy of the sources: read by toy_activation.sh, toy_algorithm.sh, toy_member.sh and toy_option.sh.
# Copies what a build needs, and the files and folders in $more, to $work/before and $work/tree, and goes to the latter.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT # by itself dash would end without the trap above
trap 'exit 143' TERM
mkdir "$work/before"
(cd "$root" && tar --exclude __pycache__ -cf "$work/tree.tar" CMakeLists.txt LICENSE README.md CHANGELOG.md cmake src cl include bench docs $more)
tar -xf "$work/tree.tar" -C "$work/before"
cp -R "$work/before" "$work/tree"
cd "$work/tree"

# Fails if more than MOST files were changed, added or removed. WHAT is what was added.
count_files() { # WHAT MOST
    touched=$(diff -rq "$work/before" . | wc -l)
    echo "files touched for $1: $touched"
    [ "$touched" -le "$2" ] || { diff -rq "$work/before" .; echo "more than $2"; exit 1; }
}
