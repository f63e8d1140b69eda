/* SPDX-License-Identifier: Apache-2.0 */
/* Several names of the OpenCL loader: the first library that is there is used, also if it hides its
 * calls. */
#include "device/opencl_loader.h"
#include "tconv_cl/tconv_cl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void the_library_that_is_there_is_used(void **state)
{
    (void)state;
    cl_uint count = 7;
    assert_null(tconv_opencl_missing());
    assert_int_equal(clGetPlatformIDs(0, NULL, &count), CL_SUCCESS); /* it was enabled once */
    assert_int_equal(count, 0);
}

static void calls_that_it_hides_are_found(void **state)
{
    (void)state;
    void (*call)(void) = NULL;
    assert_true(tconv_opencl_find("clSVMAlloc", &call));
    assert_non_null(call);
    assert_false(tconv_opencl_find("vkCreateInstance", &call));
}

static void errors_are_about_devices(void **state)
{
    (void)state;
    tconv_error error;
    cl_device_id id = NULL;
    assert_int_equal(tconv_device_at(0, NULL, &id, &error), TCONV_ERROR_NO_DEVICE);
    assert_null(strstr(error.message, "cannot be opened"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_library_that_is_there_is_used),
        cmocka_unit_test(calls_that_it_hides_are_found),
        cmocka_unit_test(errors_are_about_devices),
    };
    return cmocka_run_group_tests_name("loaders", tests, NULL, NULL);
}
