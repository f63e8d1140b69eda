/* SPDX-License-Identifier: Apache-2.0 */
/* Builds OpenCL programs on the first device, and creates their kernels: for scripts/mesa_gate.py,
 * which reads what the driver prints of them.
 *
 *   usage: mesa_build JOBS     lines of a source file, a tab, options of the compiler
 *
 * For each job, numbered from 0, prints to stderr, between what the driver prints there:
 *
 *   job NUMBER
 *   kernel NAME PRIVATE-BYTES LOCAL-BYTES
 *   failed LOG                 with blanks in place of ends of lines
 *
 * and at first `device NAME`, in the end `done`. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_KERNELS = 32, LOG_BYTES = 1 << 16, LINE_BYTES = 1 << 14 };

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) return NULL;
    size_t size = 0, capacity = 0;
    char *text = NULL;
    for (;;) {
        if (capacity - size < LOG_BYTES) {
            capacity += LOG_BYTES;
            char *more = realloc(text, capacity + 1);
            if (more == NULL) break;
            text = more;
        }
        const size_t got = fread(text + size, 1, capacity - size, file);
        size += got;
        if (got == 0) break;
    }
    fclose(file);
    if (text != NULL) text[size] = '\0';
    return text;
}

static cl_device_id first_device(void)
{
    cl_platform_id platforms[8];
    cl_uint count = 0;
    if (clGetPlatformIDs(8, platforms, &count) != CL_SUCCESS) return NULL;
    for (cl_uint i = 0; i < count && i < 8; i++) {
        cl_device_id device;
        if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS)
            return device;
    }
    return NULL;
}

static void print_kernels(cl_program program, cl_device_id device)
{
    cl_kernel kernels[MOST_KERNELS];
    cl_uint count = 0;
    const cl_int status = clCreateKernelsInProgram(program, MOST_KERNELS, kernels, &count);
    if (status != CL_SUCCESS) {
        fprintf(stderr, "failed clCreateKernelsInProgram: %d\n", (int)status);
        return;
    }
    for (cl_uint i = 0; i < count; i++) {
        char name[128] = "";
        cl_ulong own = 0, local = 0;
        clGetKernelInfo(kernels[i], CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL);
        clGetKernelWorkGroupInfo(kernels[i], device, CL_KERNEL_PRIVATE_MEM_SIZE, sizeof own, &own,
                                 NULL);
        clGetKernelWorkGroupInfo(kernels[i], device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof local, &local,
                                 NULL);
        fprintf(stderr, "kernel %s %llu %llu\n", name, (unsigned long long)own,
                (unsigned long long)local);
        clReleaseKernel(kernels[i]);
    }
}

static void build(cl_context context, cl_device_id device, const char *path, const char *options)
{
    char *text = read_file(path);
    const char *source = text;
    cl_int status = CL_INVALID_VALUE;
    cl_program program = NULL;
    if (text != NULL) program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
    if (status == CL_SUCCESS) status = clBuildProgram(program, 1, &device, options, NULL, NULL);
    if (status == CL_SUCCESS) {
        print_kernels(program, device);
    } else {
        static char log[LOG_BYTES];
        log[0] = '\0';
        if (program != NULL)
            clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL);
        for (char *c = log; *c != '\0'; c++)
            if (*c == '\n') *c = ' ';
        fprintf(stderr, "failed %d %s\n", (int)status, log);
    }
    if (program != NULL) clReleaseProgram(program);
    free(text);
}

int main(int argc, char **argv)
{
    static char line[LINE_BYTES];
    FILE *jobs = argc == 2 ? fopen(argv[1], "r") : NULL;
    cl_device_id device = first_device();
    char name[256] = "";
    if (jobs == NULL || device == NULL) {
        fprintf(stderr, "failed: %s\n", jobs == NULL ? "no file of jobs" : "no device");
        return 1;
    }
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name, name, NULL);
    fprintf(stderr, "device %s\n", name);
    for (int number = 0; fgets(line, sizeof line, jobs) != NULL; number++) {
        line[strcspn(line, "\n")] = '\0';
        char *options = strchr(line, '\t');
        if (options == NULL) break;
        *options++ = '\0';
        fprintf(stderr, "job %d\n", number);
        build(context, device, line, options);
    }
    fprintf(stderr, "done\n");
    fclose(jobs);
    clReleaseContext(context);
    return 0;
}
