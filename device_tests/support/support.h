/* SPDX-License-Identifier: Apache-2.0 */
/* What device tests share: the devices under test, tensors in guarded buffers, problems and their
 * comparison with the oracle. */
#ifndef TCONV_DEVICE_TESTS_SUPPORT_H
#define TCONV_DEVICE_TESTS_SUPPORT_H

#include "failed.h"
#include "sample.h"
#include "tconv_cl/tconv_cl.h"

/* A device under test, with a context and a queue. */
struct device {
    int number;
    cl_context context;
    cl_command_queue queue;
    tconv_device *device;
    const tconv_device_info *info;
    bool pages;       /* tensors may touch inaccessible pages (pages.h) */
    bool dry;         /* kernels do not run (verdicts.h): outputs mean nothing */
    char *rejections; /* of a GPU: what it says of each algorithm; from malloc */
};

/* The devices under test: the one that the environment variable TCONV_CL_TEST_DEVICE names by
 * number, else all. One that tconv_device_open gives threads is opened so, as with
 * POCL_DEVICES="pthread basic"; then run_guarded runs at once, and the threads share its
 * launches. */
extern struct device *devices;
extern int device_count;

/* For tests that have one device: that one, else number 0. Returns its number and gives its id, or
 * prints why it cannot and returns -1. */
int find_one_device(cl_device_id *id);

/* Gives a device the properties of a described one (host_tests/described.h), but for its compiler's
 * and its buffers': kernels are chosen for that one, and run by this one. All devices
 * of a test program have those that the environment variable TCONV_CL_TEST_AS names. */
void act_as(struct device *device, const char *described);

/* Whether an algorithm's name, which a tile may follow, is one of the difference form, which takes
 * nearest upsampling and a convolution only. */
bool is_difference_form(const char *algorithm);

/* True if a GPU rejects every problem for this algorithm, because the algorithm stages in local
 * memory that the GPU emulates, or has too little of; or a processor does that ends long loops. */
bool never_runs(const struct device *device, const char *algorithm);

/* A test program's set-up and tear-down. Opening fails where there is no device: a device test
 * without a device proves nothing. */
int open_all_devices(void **state);
int close_all_devices(void **state);

/* Called at the tear-down's begin, if it is not NULL. */
extern void (*before_closing)(void);

/* Tensors of one problem on the host. */
struct tensors {
    tconv_geometry geometry;
    size_t data_count, filter_count, channels, output_count;
    float *data, *filter, *bias, *output; /* floats where the problem's types are f32 */
    tconv_epilogue epilogue; /* but for its bias; nothing, where the test says nothing else */
    void *scale, *slope, *slope2, *residual, *before;
    tconv_math
        math; /* with which run_guarded makes its plan; exact, where the test says nothing else */
    double error_factor; /* of the plan with which it was run last */
};

enum contents {
    SMALL_INTEGERS, /* so that every sum is exact in f32 */
    REAL_NUMBERS,
};

/* Resolves the problem and fills data, filter and bias; the test fails where the problem does not
 * resolve. */
void make_tensors(const tconv_problem *problem, enum contents contents, unsigned seed,
                  struct tensors *tensors);
void free_tensors(struct tensors *tensors);

/* Data, filter and output as arrays of the host. */
tconv_tensors arrays_of(const struct tensors *tensors);

/* Gives tensors an epilogue, with the tensors that belong to it. */
void make_epilogue(const tconv_problem *problem, const tconv_epilogue *epilogue, unsigned seed,
                   struct tensors *tensors);

/* Runs one algorithm on buffers with guard zones around every tensor, a NaN-filled output and a
 * workspace of NaNs, and checks that guards and inputs are untouched. Where the device has pages,
 * it runs twice: each tensor begins, then ends at an inaccessible one, and an access to that ends
 * the program with a report. Returns TCONV_OK, or the status with which the plan was refused;
 * anything else fails the test. */
tconv_status run_guarded(const struct device *device, const tconv_problem *problem,
                         const char *algorithm, bool bias, struct tensors *tensors,
                         tconv_error *error);

/* The candidates of an algorithm for a problem, as `run_algorithm` and --algorithm take them, with
 * their tiles. Returns how many there are. */
enum { MOST_CANDIDATES = 8, CANDIDATE_NAME = 300 };
int candidate_names(const struct device *device, const tconv_problem *problem,
                    const char *algorithm, bool bias, const struct tensors *t,
                    char names[MOST_CANDIDATES][CANDIDATE_NAME]);

/* The same for one case of many, as the sample has it (sample.h; `number` tells cases apart): true
 * where it ran, false where the sample leaves it out, the algorithm does not take the problem, or
 * the device lacks its element type. Anything else fails the test. */
bool run_algorithm(const struct device *device, const tconv_problem *problem, const char *algorithm,
                   bool bias, struct tensors *tensors, unsigned number);

/* Compares tensors->output with the oracle; fails the test with a message that reproduces the
 * problem. */
void compare_with_oracle(const struct device *device, const tconv_problem *problem,
                         const char *algorithm, bool bias, const struct tensors *tensors);

/* Computes with a layer of its own, whose filter varies. `run` may be NULL. */
tconv_status compute_once(tconv_device *device, const tconv_problem *problem,
                          const tconv_plan_options *options, const tconv_tensors *tensors,
                          const tconv_run *run, tconv_error *error);

/* Fails if tensors->output does not have, between its elements, what was there before. */
void expect_gaps(const tconv_problem *problem, const struct tensors *tensors, const void *before);

/* True, and said, where one of the devices is Oclgrind's: it simulates one context at a time,
 * threads crash it. */
bool threads_left_out(void);

/* Sanitizers keep memory that was freed, and replace the allocator that mallinfo2 tells of. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* KiB of memory that the process has; 0 where the system does not tell (not Linux). */
size_t resident_kib(void);

/* A repeatable stream of numbers. */
int random_between(unsigned *state, int least, int most);

/* Short forms for problems. */
void set_shape(tconv_shape *shape, int rank, const int64_t *dim);
void set_list(tconv_list *list, int count, const int64_t *value);

#endif
