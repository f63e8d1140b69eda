/* SPDX-License-Identifier: Apache-2.0 */
/* tconv_wait: of commands that end at once, later than it stays awake, and with an error. */
#include "setup.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

/* What a thread ends a user event with, and after how long. */
struct ending {
    cl_event event;
    cl_int state;
    long microseconds;
};

static void *end_later(void *argument)
{
    const struct ending *ending = argument;
    const struct timespec pause = {0, ending->microseconds * 1000};
    nanosleep(&pause, NULL);
    return clSetUserEventStatus(ending->event, ending->state) == CL_SUCCESS ? NULL : argument;
}

static cl_event user_event(const struct device *d)
{
    cl_int code;
    cl_event event = clCreateUserEvent(d->context, &code);
    assert_int_equal(code, CL_SUCCESS);
    return event;
}

static cl_int state_of(cl_event event)
{
    cl_int state;
    assert_int_equal(
        clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL),
        CL_SUCCESS);
    return state;
}

/* Ends an event as told while it is waited for. */
static tconv_status wait_for_ending(const struct device *d, cl_int state, long microseconds,
                                    tconv_error *error)
{
    struct ending ending = {user_event(d), state, microseconds};
    pthread_t thread;
    void *result;
    assert_int_equal(pthread_create(&thread, NULL, end_later, &ending), 0);
    const tconv_status status = tconv_wait(ending.event, error);
    assert_int_equal(state_of(ending.event), state);
    pthread_join(thread, &result);
    assert_null(result);
    clReleaseEvent(ending.event);
    return status;
}

static void waits_until_the_end(void **state)
{
    (void)state;
    static const long pauses[] = {0, 50, 1000, 20000};
    for (int i = 0; i < device_count; i++) {
        const struct device *d = &devices[i];
        tconv_error error;
        for (size_t p = 0; p < sizeof pauses / sizeof *pauses; p++)
            expect_ok(wait_for_ending(d, CL_COMPLETE, pauses[p], &error), &error);
        /* A command that nothing but the wait flushes, and that cannot begin for a while. */
        struct ending ending = {user_event(d), CL_COMPLETE, 2000};
        cl_event marker;
        pthread_t thread;
        assert_int_equal(clEnqueueMarkerWithWaitList(d->queue, 1, &ending.event, &marker),
                         CL_SUCCESS);
        assert_int_equal(pthread_create(&thread, NULL, end_later, &ending), 0);
        expect_ok(tconv_wait(marker, &error), &error);
        assert_int_equal(state_of(marker), CL_COMPLETE);
        expect_ok(tconv_wait(marker, NULL), &error); /* again: it is the caller's */
        pthread_join(thread, NULL);
        clReleaseEvent(marker);
        clReleaseEvent(ending.event);
    }
}

static void errors_are_told(void **state)
{
    (void)state;
    static const long pauses[] = {0, 20000};
    tconv_error error;
    expect_error(tconv_wait(NULL, &error), TCONV_ERROR_ARGUMENT, &error, "event");
    for (int i = 0; i < device_count; i++)
        for (size_t p = 0; p < sizeof pauses / sizeof *pauses; p++) {
            expect_error(wait_for_ending(&devices[i], -1234, pauses[p], &error), TCONV_ERROR_OPENCL,
                         &error, "the command failed");
            assert_int_equal(error.opencl_code, -1234);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_until_the_end),
        cmocka_unit_test(errors_are_told),
    };
    return cmocka_run_group_tests_name("wait", tests, open_all_devices, close_all_devices);
}
