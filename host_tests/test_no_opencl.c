/* SPDX-License-Identifier: Apache-2.0 */
/* A computer without the OpenCL loader: the program is compiled with the name of a library that
 * nobody has. Calls fail with a sentence that says what to install, and none crashes. */
#include "tconv_cl/tconv_cl.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void expect_sentence(tconv_status status, const tconv_error *error)
{
    assert_int_equal(status, TCONV_ERROR_NO_DEVICE);
    if (strstr(error->message, TCONV_OPENCL_LIBRARY) == NULL ||
        strstr(error->message, "install") == NULL)
        fail_msg("the message is: %s", error->message);
}

static void there_is_no_device(void **state)
{
    (void)state;
    int count = -1;
    assert_int_equal(tconv_device_count(&count, NULL), TCONV_OK);
    assert_int_equal(count, 0);
}

static void errors_say_what_to_install(void **state)
{
    (void)state;
    tconv_error error;
    cl_device_id id = NULL;
    int number;
    tconv_device *opened = NULL;
    expect_sentence(tconv_device_at(0, NULL, &id, &error), &error);
    expect_sentence(tconv_device_find("gpu", &number, &error), &error);
    expect_sentence(tconv_device_open(TCONV_DEVICE_DEFAULT, &opened, &error), &error);
    assert_null(opened);
}

/* Such objects cannot be: no call gives one. */
static void objects_are_refused(void **state)
{
    (void)state;
    tconv_error error;
    tconv_device *device = NULL;
    tconv_device_info info = TCONV_DEVICE_INFO_INIT;
    int object = 0;
    assert_int_not_equal(tconv_device_create((cl_context)(void *)&object,
                                             (cl_device_id)(void *)&object, &device, &error),
                         TCONV_OK);
    assert_null(device);
    assert_int_not_equal(tconv_device_describe((cl_device_id)(void *)&object, &info, &error),
                         TCONV_OK);
}

static void *ask(void *wrong)
{
    int count = -1;
    *(int *)wrong = tconv_device_count(&count, NULL) != TCONV_OK || count != 0;
    return NULL;
}

static void threads_may_ask_at_once(void **state)
{
    (void)state;
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    int wrong[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask, &wrong[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(wrong[i], 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_may_ask_at_once), /* first: nobody has asked before */
        cmocka_unit_test(there_is_no_device),
        cmocka_unit_test(errors_say_what_to_install),
        cmocka_unit_test(objects_are_refused),
    };
    return cmocka_run_group_tests_name("no_opencl", tests, NULL, NULL);
}
