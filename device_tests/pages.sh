#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that reads beyond a tensor are reported even if they do not change the result, where the device has pages for it
# (pages.h).
# usage: pages.sh TEST-LAUNCHES FOLDER-OF-KERNELS      ends with 77 where no device has them
set -eu
program=$1
kernels=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# found PATTERN BESIDE WORDS: puts a read of BESIDE in front of what the pattern matches; the report has the words. A
# comparison keeps the read: rusticl leaves out one whose result is not used.
found() {
    rm -rf "$work/cl"
    cp -R "$kernels" "$work/cl"
    sed -i.bak "s/$1/sum += *(volatile $2) == 12345, &/" "$work/cl/any/reference.cl"
    if cmp -s "$work/cl/any/reference.cl" "$kernels/any/reference.cl"; then echo "reference.cl has no $1"; exit 1; fi
    if TCONV_CL_KERNEL_DIR="$work/cl" TCONV_CL_CACHE=off "$program" >"$work/log" 2>&1; then
        if grep -q '^skipped: inaccessible pages' "$work/log" && ! grep -q 'Portable Computing Language' "$work/log"; then
            grep '^skipped' "$work/log"
            exit 77
        fi
        echo "it is not found that reference.cl reads $2"
        exit 1
    fi
    grep -q "$3" "$work/log" || { tail -n 20 "$work/log"; exit 1; }
    grep "$3" "$work/log"
}

data='x + (ci)*table[REF_DATA_CHANNEL_STEP]'
weight='w + (ci)*out_channels * table[REF_KERNEL_POINTS]'
sum='sum = MULTIPLY_ADD(READ_DATA(x'
found "$sum" "__global const data_t *)($data + 1" 'reference reads or writes 0 bytes behind the end of data '
found "$sum" "__global const data_t *)($data - 1" 'reference reads or writes 4 bytes in front of data '
found "$sum" "__global const packed_t *)($weight - 1" 'reference reads or writes 4 bytes in front of packed filter '
found 'put_one(f, affine_one(f, sum' '__global output_t *)(f->output + at + 1' 'reference reads or writes 0 bytes behind the end of output '
