#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every relative link of the Markdown files in a folder leads to a file, and to a heading where it names one.
# usage: links.sh FOLDER
set -eu
cd "$1"
links=$(find . -name '*.md' -exec grep -oH '](\([^)]*\))' {} + | grep -vE ']\((https?|mailto):')
[ -n "$links" ] || { echo "$1 has no links"; exit 1; }
# The headings of file $1 as GitHub names them.
headings() {
    sed -n '/^```/,/^```/d; s/^##* //p' "$1" | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9_\n-'
}
bad=$(printf '%s\n' "$links" | while IFS=: read -r file link; do
    link=${link#??}
    link=${link%?}
    target=${link%%#*}
    [ -n "$target" ] && target=$(dirname "$file")/$target || target=$file
    if [ ! -e "$target" ]; then
        echo "$file: $link does not exist"
    elif [ "$link" != "${link%#*}" ] && ! headings "$target" | grep -qxF -- "${link##*#}"; then
        echo "$file: $link names no heading"
    fi
done)
[ -z "$bad" ] || { printf '%s\n' "$bad"; exit 1; }
echo "$(printf '%s\n' "$links" | wc -l) links lead somewhere"
