/* SPDX-License-Identifier: Apache-2.0 */
/* Compares two .npy files of f32: equal shapes, and equal elements or, with a third file, elements
 * that differ by no more than the third file's. usage: compare_npy GOT.npy WANTED.npy
 * [BOUND.npy] */
#include "tool/io/npy.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    struct npy got, wanted, bound = {.values = NULL};
    if (argc < 3 || npy_read("got", argv[1], &got) != EXIT_DONE ||
        npy_read("wanted", argv[2], &wanted) != EXIT_DONE ||
        (argc > 3 && npy_read("bound", argv[3], &bound) != EXIT_DONE))
        return 2;
    size_t count = 1;
    int result = got.shape.rank == wanted.shape.rank && got.type == TCONV_F32 &&
                         wanted.type == TCONV_F32
                     ? 0
                     : 1;
    for (int i = 0; i < got.shape.rank && result == 0; i++) {
        result = got.shape.dim[i] != wanted.shape.dim[i];
        count *= (size_t)got.shape.dim[i];
    }
    if (result != 0) fprintf(stderr, "%s and %s differ in shape or type\n", argv[1], argv[2]);
    const float *a = got.values, *b = wanted.values, *c = bound.values;
    for (size_t i = 0; i < count && result == 0; i++)
        if (!(fabs((double)a[i] - (double)b[i]) <= (c == NULL ? 0 : (double)c[i]))) {
            fprintf(stderr, "%s: element %zu is %.9g, not %.9g\n", argv[1], i, (double)a[i],
                    (double)b[i]);
            result = 1;
        }
    npy_free(&got);
    npy_free(&wanted);
    npy_free(&bound);
    return result;
}
