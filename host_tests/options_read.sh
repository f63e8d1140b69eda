#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The tool reads the value of every option that it takes: a row without such code would be a silent option. usage: options_read.sh SOURCE-FOLDER
cd "$1" || exit 1
bad=0
members=$(sed -n 's/^ *O([A-Z_]*, *[A-Z]*, *\([a-z_]*\),.*/\1/p' src/tool/option_list.h)
[ "$(echo "$members" | wc -l)" -ge 50 ] || { echo "option_list.h has other rows than this script reads" && bad=1; }
# The options of the problem's members are read by their rows.
rows=$(sed -n 's/^ *P([A-Z]*, *\([a-z_]*\),.*/\1/p' src/base/members.h)
for member in $members; do
    echo "$rows" | grep -qx "$member" && continue
    grep -rqE "options(\.|->)$member\b" --include='*.c' src/tool || { echo "no file in src/tool reads options.$member" && bad=1; }
done
exit $bad
