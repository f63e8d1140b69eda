/* SPDX-License-Identifier: Apache-2.0 */
/* Inaccessible pages by mmap, and the signals that they cause. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "pages.h"

#include "failed.h"

#if defined(_WIN32)

bool pages_work(cl_context context, cl_command_queue queue, tconv_device_kind kind)
{
    (void)context;
    (void)queue;
    (void)kind;
    return false;
}

void pages_begin(const char *algorithm, const char *problem)
{
    (void)algorithm;
    (void)problem;
}

void pages_end(void)
{
}

struct pages pages_take(const char *name, size_t bytes, size_t unit, enum touching touching)
{
    (void)bytes;
    (void)unit;
    (void)touching;
    failed("no inaccessible pages on Windows for %s", name);
}

#else

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_TENSORS = 16, INACCESSIBLE = 1 << 20 /* bytes on each side */ };

static struct {
    const char *name;
    unsigned char *map; /* inaccessible, accessible, inaccessible */
    size_t map_bytes;
    unsigned char *tensor;
    size_t tensor_bytes;
} taken[MOST_TENSORS];
static int taken_count;

static char watched_algorithm[300], watched_problem[1000];
static const int signals[] = {SIGSEGV, SIGBUS};
enum { SIGNALS = sizeof signals / sizeof *signals };
static struct sigaction before[SIGNALS];

/* A kernel holds no lock of the C library, so that snprintf may be called here. */
static void report(int number, siginfo_t *info, void *context)
{
    (void)context;
    const unsigned char *address = info->si_addr;
    char where[200], text[2000];
    snprintf(where, sizeof where, "at %p, near no tensor", info->si_addr);
    for (int i = 0; i < taken_count; i++) {
        if (address < taken[i].map || address >= taken[i].map + taken[i].map_bytes) continue;
        const unsigned char *end = taken[i].tensor + taken[i].tensor_bytes;
        const bool in_front = address < taken[i].tensor;
        snprintf(where, sizeof where, "%lld bytes %s %s of %zu bytes",
                 (long long)(in_front ? taken[i].tensor - address : address - end),
                 in_front ? "in front of" : "behind the end of", taken[i].name,
                 taken[i].tensor_bytes);
    }
    const int length =
        snprintf(text, sizeof text,
                 "signal %d: %s reads or writes %s: tconv-cl check --algorithm \"%s\" %s\n", number,
                 watched_algorithm, where, watched_algorithm, watched_problem);
    _exit(write(STDERR_FILENO, text, (size_t)length) == length ? 1 : 2);
}

static void unmap_all(void)
{
    for (int i = 0; i < taken_count; i++) munmap(taken[i].map, taken[i].map_bytes);
    taken_count = 0;
}

void pages_begin(const char *algorithm, const char *problem)
{
    unmap_all(); /* of a test that failed */
    snprintf(watched_algorithm, sizeof watched_algorithm, "%s", algorithm);
    snprintf(watched_problem, sizeof watched_problem, "%s", problem);
    struct sigaction action = {0};
    action.sa_sigaction = report;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < SIGNALS; i++) sigaction(signals[i], &action, &before[i]);
}

void pages_end(void)
{
    for (int i = 0; i < SIGNALS; i++) sigaction(signals[i], &before[i], NULL);
    unmap_all();
}

struct pages pages_take(const char *name, size_t bytes, size_t unit, enum touching touching)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t whole = bytes == 0 ? page : (bytes + page - 1) / page * page;
    const size_t map_bytes = whole + 2 * (size_t)INACCESSIBLE;
    void *map = taken_count == MOST_TENSORS
                    ? MAP_FAILED
                    : mmap(NULL, map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) failed("no pages of %zu bytes for %s", map_bytes, name);
    struct pages p = {(unsigned char *)map + INACCESSIBLE, whole, 0};
    if (touching == END) p.offset = (whole - bytes) / unit * unit;
    if (mprotect(p.memory, whole, PROT_READ | PROT_WRITE) != 0)
        failed("no access to %zu bytes for %s", whole, name);
    taken[taken_count].name = name;
    taken[taken_count].map = map;
    taken[taken_count].map_bytes = map_bytes;
    taken[taken_count].tensor = p.memory + p.offset;
    taken[taken_count].tensor_bytes = bytes;
    taken_count++;
    return p;
}

/* The address at which a kernel finds the memory; 0 where it cannot tell. */
static cl_ulong address_in_kernel(cl_context context, cl_command_queue queue, cl_mem memory)
{
    const char *source = "kernel void where(global uchar *memory, global ulong *address)"
                         "{ *address = (ulong)(size_t)memory; }";
    cl_ulong address = 0;
    const size_t one = 1;
    cl_int code; /* the tests of failing calls want it */
    cl_mem result = clCreateBuffer(context, CL_MEM_WRITE_ONLY, sizeof address, NULL, &code);
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &code);
    if (program == NULL || clBuildProgram(program, 0, NULL, "", NULL, NULL) != CL_SUCCESS)
        failed("a kernel that tells an address does not build");
    cl_kernel kernel = clCreateKernel(program, "where", &code);
    if (clSetKernelArg(kernel, 0, sizeof memory, &memory) != CL_SUCCESS ||
        clSetKernelArg(kernel, 1, sizeof result, &result) != CL_SUCCESS ||
        clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL) != CL_SUCCESS ||
        clEnqueueReadBuffer(queue, result, CL_TRUE, 0, sizeof address, &address, 0, NULL, NULL) !=
            CL_SUCCESS)
        failed("a kernel that tells an address does not run");
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseMemObject(result);
    return address;
}

bool pages_work(cl_context context, cl_command_queue queue, tconv_device_kind kind)
{
    if (kind != TCONV_DEVICE_CPU) return false;
    pages_begin("none", "none");
    const struct pages p = pages_take("memory", 1, 1, BEGIN);
    cl_int code;
    cl_mem memory =
        clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, p.bytes, p.memory, &code);
    if (memory == NULL) failed("no buffer of memory that is given");
    const bool same = address_in_kernel(context, queue, memory) == (uintptr_t)p.memory;
    clReleaseMemObject(memory);
    pages_end();
    return same;
}

#endif
