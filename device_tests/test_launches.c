/* SPDX-License-Identifier: Apache-2.0 */
/* Work that is expected to take long becomes several launches: the algorithms that divide theirs,
 * in few pieces and in as many as there are work-groups, against the f64 oracle. */
#include "algorithm/cost/machine.h"
#include "device/device.h"
#include "plan/plan_internal.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static tconv_problem problem_of(bool last, int64_t batch, int64_t groups, int64_t in, int64_t out,
                                const int64_t x[2], const int64_t k[2])
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    p.operation = TCONV_ONEAPI_CONV_BACKPROP;
    p.data_format = last ? TCONV_NXC : TCONV_NCX;
    p.filter_format = TCONV_OIX;
    p.groups = groups;
    if (last)
        set_shape(&p.data, 4, (int64_t[]){batch, x[0], x[1], groups * in});
    else
        set_shape(&p.data, 4, (int64_t[]){batch, groups * in, x[0], x[1]});
    set_shape(&p.filter, 4, (int64_t[]){groups * in, out, k[0], k[1]});
    return p;
}

/* Runs a problem with an algorithm on a device that expects each launch to be short enough for so
 * many pieces. Returns whether there were several. */
static bool run_in_pieces(const struct device *d, const tconv_problem *problem,
                          const char *algorithm, int pieces, struct tensors *t)
{
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    tconv_plan *plan = NULL;
    tconv_error error;
    options.math = TCONV_MATH_FAST;
    options.algorithm = algorithm;
    if (tconv_plan_create(d->device, problem, &options, &plan, NULL) != TCONV_OK) return false;
    const double ms = tconv_machine_ms(&plan->request.machine, plan->candidate.cost);
    tconv_plan_release(plan);
    plan = NULL;
    d->device->launch_ms = ms / pieces;
    assert_int_equal(tconv_plan_create(d->device, problem, &options, &plan, NULL), TCONV_OK);
    const struct tconv_kernel_plan *k = &plan->kernel_plan;
    const bool divided = k->run[0].pieces > 1 || k->run[k->run_count - 1].pieces > 1;
    tconv_plan_release(plan);
    if (run_guarded(d, problem, algorithm, false, t, &error) != TCONV_OK)
        failed("%s in pieces: %s", algorithm, error.message);
    compare_with_oracle(d, problem, algorithm, false, t);
    d->device->launch_ms = -1;
    return divided;
}

static void launches_in_pieces(void **state)
{
    (void)state;
    enum { NAMES = 5, FEW = 3, MANY = 3000 };
    static const char *const names[NAMES] = {"tiled_group", "matrix_group", "direct_group",
                                             "gather_group", "reference"};
    int divided[NAMES] = {0};
    uint64_t largest_group[NAMES] = {0}; /* of the devices that run the algorithm */
    for (int i = 0; i < 4; i++) {
        const bool last = i % 2 == 1, several_tiles = i < 2;
        tconv_problem p;
        if (several_tiles) {
            p = problem_of(last, 2, 1, 19, 37, (int64_t[]){9, 21}, (int64_t[]){4, 4});
            set_list(&p.strides, 2, (int64_t[]){2, 2});
            set_list(&p.pads_begin, 2, (int64_t[]){1, 1});
            set_list(&p.pads_end, 2, (int64_t[]){1, 1});
        } else {
            p = problem_of(last, 1, 2, 5, 3, (int64_t[]){5, 7}, (int64_t[]){3, 2});
            set_list(&p.strides, 2, (int64_t[]){2, 3});
            set_list(&p.pads_begin, 2, (int64_t[]){0, 1});
            set_list(&p.pads_end, 2, (int64_t[]){1, 0});
            set_list(&p.output_padding, 2, (int64_t[]){0, 1});
        }
        struct tensors t;
        make_tensors(&p, SMALL_INTEGERS, 6000 + (unsigned)i / 2, &t);
        t.math = TCONV_MATH_FAST;
        for (int n = 0; n < NAMES * device_count; n++) {
            const struct device *d = &devices[n / NAMES];
            divided[n % NAMES] += run_in_pieces(d, &p, names[n % NAMES], FEW, &t);
            divided[n % NAMES] += run_in_pieces(d, &p, names[n % NAMES], MANY, &t);
            if (!never_runs(d, names[n % NAMES]) &&
                d->info->work_group_limit > largest_group[n % NAMES])
                largest_group[n % NAMES] = d->info->work_group_limit;
        }
        free_tensors(&t);
    }
    for (int n = 0; n < NAMES; n++)
        if (divided[n] == 0 && largest_group[n] >= 32) failed("%s was never divided", names[n]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(launches_in_pieces)};
    return cmocka_run_group_tests_name("launches", tests, open_all_devices, close_all_devices);
}
