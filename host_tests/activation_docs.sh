#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every activation of the list is in the documents that list them all. usage: activation_docs.sh SOURCE-FOLDER
cd "$1" || exit 1
bad=0
names=$(sed -n 's/^ *A([A-Z0-9_]*, *[0-9]*, *\([a-z0-9_]*\),.*/\1/p' cl/common/activation_list.h)
[ "$(echo "$names" | wc -l)" -ge 15 ] || { echo "activation_list.h has other rows than this script reads" && bad=1; }
# The first column of semantics.md's table: "| clamp(a, b), relu6 | ...".
table=$(sed -n '/^| activation /,/^$/s/^| *\([^|]*\) *|.*/\1/p' docs/semantics.md)
for name in $names; do
    echo "$table" | grep -qwe "$name" || { echo "docs/semantics.md has no activation $name" && bad=1; }
    [ "$name" = none ] || grep -q "\"$name\"" python/tconv_cl/_convolution.py || { echo "python/tconv_cl/_convolution.py does not explain activation \"$name\"" && bad=1; }
done
count=$(($(echo "$names" | wc -l) - 1))
grep -o '[0-9][0-9]* activations' README.md | grep -vx "$count activations" && echo "README.md: there are $count activations" && bad=1
exit $bad
