/* SPDX-License-Identifier: Apache-2.0 */
/* The output shape of a layer, and the version: header and library fit each other. No device is
 * needed. */
#include <stdio.h>
#include <tconv_cl/tconv_cl.h>

int main(void)
{
    tconv_problem problem = TCONV_PROBLEM_INIT;
    problem.data = (tconv_shape){4, {1, 16, 40, 60}};
    problem.filter = (tconv_shape){4, {16, 8, 4, 4}};
    problem.strides = (tconv_list){2, {2, 2}};
    problem.pads_begin = problem.pads_end = (tconv_list){2, {1, 1}};
    tconv_geometry geometry = TCONV_GEOMETRY_INIT;
    tconv_error error;
    if (tconv_resolve(&problem, &geometry, &error) != TCONV_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    printf("tconv-cl %s: %d x %d\n", tconv_version(), (int)geometry.output[0],
           (int)geometry.output[1]);
    return tconv_version_number() == TCONV_VERSION && geometry.output[1] == 120 ? 0 : 1;
}
