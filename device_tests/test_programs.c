/* SPDX-License-Identifier: Apache-2.0 */
/* A device object keeps a bounded number of programs, those that were used last; plans keep their
 * own. */
#include "device/program.h"
#include "setup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static int kept(const tconv_device *device)
{
    int count = 0;
    for (const struct tconv_entry *e = device->store.drawer[TCONV_STORED_PROGRAM].first; e != NULL;
         e = e->next)
        count++;
    return count;
}

/* Keeps a program under a name with that number. */
static void keep(tconv_device *device, cl_program program, int number)
{
    char key[20];
    tconv_error error;
    snprintf(key, sizeof key, "key %d", number);
    assert_int_equal(clRetainProgram(program), CL_SUCCESS); /* for the list */
    cl_program given = program;
    expect_ok(tconv_program_keep(device, key, &given, &error), &error);
    assert_ptr_equal(given, program);
    clReleaseProgram(given);
}

static bool has(tconv_device *device, int number)
{
    char key[20];
    snprintf(key, sizeof key, "key %d", number);
    const cl_program found = tconv_program_find(device, key);
    if (found != NULL) clReleaseProgram(found);
    return found != NULL;
}

static cl_uint owners_of(cl_program program)
{
    cl_uint owners = 0;
    assert_int_equal(
        clGetProgramInfo(program, CL_PROGRAM_REFERENCE_COUNT, sizeof owners, &owners, NULL),
        CL_SUCCESS);
    return owners;
}

static cl_program new_program(const struct device *device)
{
    const char *text = "__kernel void nothing(void) {}\n";
    cl_int code;
    const cl_program program = clCreateProgramWithSource(device->context, 1, &text, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    return program;
}

static void the_programs_used_last_are_kept(void **state)
{
    (void)state;
    tconv_device *device = NULL;
    tconv_error error;
    expect_ok(tconv_device_create(devices[0].context, id_of(&devices[0]), &device, &error), &error);
    const cl_program program = new_program(&devices[0]);
    for (int i = 0; i < TCONV_MOST_PROGRAMS; i++) keep(device, program, i);
    assert_int_equal(kept(device), TCONV_MOST_PROGRAMS);
    assert_true(has(device, 0)); /* used: it is number 1 that was not used for longest */
    for (int i = 0; i < 10; i++) keep(device, program, TCONV_MOST_PROGRAMS + i);
    assert_int_equal(kept(device), TCONV_MOST_PROGRAMS);
    assert_true(has(device, 0));
    for (int i = 1; i <= 10; i++) assert_false(has(device, i));
    for (int i = 11; i < TCONV_MOST_PROGRAMS + 10; i++) assert_true(has(device, i));
    assert_int_equal(owners_of(program), TCONV_MOST_PROGRAMS + 1);
    tconv_device_release(device);
    assert_int_equal(owners_of(program), 1);
    clReleaseProgram(program);
}

static void plans_keep_their_own(void **state)
{
    (void)state;
    for (int d = 0; d < device_count; d++) {
        const tconv_problem p = plane(1, 4, 3, 8, 4, 2, 1);
        const cl_program program = new_program(&devices[d]);
        struct setup s;
        set_up(&s, &devices[d], &p, "gather_group", true, SMALL_INTEGERS);
        for (int i = 0; i < TCONV_MOST_PROGRAMS; i++) keep(devices[d].device, program, i);
        for (int i = 0; i < TCONV_MOST_PROGRAMS; i++) assert_true(has(devices[d].device, i));
        pack(&s);
        enqueue(&s);
        download(&s, 0, NULL);
        compare_with_oracle(&devices[d], &p, "gather_group", true, &s.tensors);
        tear_down(&s);
        /* The same program again, which the device object has no more. */
        set_up(&s, &devices[d], &p, "gather_group", true, SMALL_INTEGERS);
        tear_down(&s);
        assert_int_equal(kept(devices[d].device), TCONV_MOST_PROGRAMS);
        clReleaseProgram(program);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_programs_used_last_are_kept),
        cmocka_unit_test(plans_keep_their_own),
    };
    return cmocka_run_group_tests_name("programs", tests, open_all_devices, close_all_devices);
}
