#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every family of GPUs has its row in docs/gpus.md. usage: family_docs.sh SOURCE-FOLDER
cd "$1" || exit 1
bad=0
names=$(sed -n 's/^ *A([A-Z0-9_]*, *"\([^"]*\)",.*/\1/p' src/base/architectures.h)
[ "$(echo "$names" | wc -l)" -ge 7 ] || { echo "architectures.h has other rows than this script reads" && bad=1; }
echo "$names" | { # a name may have blanks
    while read -r name; do
        sed -n '/^| family /,/^$/p' docs/gpus.md | grep -q "^| $name |" || { echo "docs/gpus.md has no row of the family $name" && bad=1; }
    done
    exit $bad
}
