/* SPDX-License-Identifier: Apache-2.0 */
/* Problems that do not repeat: what the library holds after each is the programs that it keeps, a
 * bounded number. What the process grows by besides is the OpenCL implementation's; it is printed.
 * The environment variable TCONV_CL_TEST_PROBLEMS says how many. */
#include "device/device.h"
#include "device/lane.h"
#include "faults.h"
#include "percent.h"
#include "smoke.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { BLOCKS_OF_A_PROGRAM = 1 /* its place in the list, with its key */ };

static void report(const char *when, const long alive[KINDS])
{
    print_message("%s: %ld programs, %ld other blocks; process: %zu MiB resident\n", when,
                  alive[PROGRAMS], alive[BLOCKS] - BLOCKS_OF_A_PROGRAM * alive[PROGRAMS],
                  resident_kib() >> 10);
}

/* A layer whose program other layers hardly share. */
static tconv_problem distinct_problem(unsigned *seed)
{
    tconv_problem p = TCONV_PROBLEM_INIT;
    const int64_t in = random_between(seed, 1, 24), out = random_between(seed, 1, 24);
    set_shape(&p.data, 4,
              (int64_t[]){1, in, random_between(seed, 3, 24), random_between(seed, 3, 40)});
    set_shape(&p.filter, 4,
              (int64_t[]){in, out, random_between(seed, 1, 7), random_between(seed, 1, 7)});
    set_list(&p.strides, 2, (int64_t[]){random_between(seed, 1, 4), random_between(seed, 1, 5)});
    set_list(&p.dilations, 2, (int64_t[]){random_between(seed, 1, 2), random_between(seed, 1, 3)});
    return p;
}

static void run(tconv_device *opened, const tconv_problem *p, unsigned seed)
{
    struct tensors t;
    tconv_error error;
    make_tensors(p, SMALL_INTEGERS, seed, &t);
    const tconv_tensors arrays = arrays_of(&t);
    if (compute_once(opened, p, NULL, &arrays, NULL, &error) != TCONV_OK)
        failed("problem %u: %s", seed, error.message);
    free_tensors(&t);
}

static void distinct_problems_leave_only_kept_programs(void **state)
{
    (void)state;
    enum { REPORTS = 6 };
    const char *wanted = getenv("TCONV_CL_TEST_PROBLEMS");
    const int problems = wanted != NULL ? atoi(wanted) : scaled(smoke_suffices() ? 60 : 300);
    for (int d = 0; d < device_count; d++) {
        long before[KINDS], now[KINDS];
        tconv_device *opened;
        tconv_error error;
        unsigned seed = 1;
        fault_alive(before);
        report("before", before);
        assert_int_equal(tconv_device_open(devices[d].number, &opened, &error), TCONV_OK);
        tconv_problem p = distinct_problem(&seed);
        run(opened, &p, 0); /* what the opened keeps for itself */
        long first[KINDS];
        fault_alive(first);
        for (int i = 1; i <= problems; i++) {
            p = distinct_problem(&seed);
            run(opened, &p, (unsigned)i);
            fault_alive(now);
            const long more = now[PROGRAMS] - first[PROGRAMS];
            assert_true(now[PROGRAMS] <= before[PROGRAMS] + TCONV_MOST_PROGRAMS);
            assert_true(now[BLOCKS] <= first[BLOCKS] + BLOCKS_OF_A_PROGRAM * more);
            for (int kind = 0; kind < KINDS; kind++)
                if (kind == BUFFERS) /* those of a lane, which stay */
                    assert_true(now[kind] < first[kind] + TCONV_ROLES);
                else if (kind != PROGRAMS && kind != BLOCKS)
                    assert_int_equal(now[kind], first[kind]);
            char when[40];
            snprintf(when, sizeof when, "problem %d", i);
            if (i % (problems / REPORTS + 1) == 0 || i == problems) report(when, now);
        }
        tconv_device_release(opened);
        fault_alive(now);
        report("released", now);
        for (int kind = 0; kind < KINDS; kind++) assert_int_equal(now[kind], before[kind]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distinct_problems_leave_only_kept_programs)};
    return cmocka_run_group_tests_name("growth", tests, open_all_devices, close_all_devices);
}
