/* SPDX-License-Identifier: Apache-2.0 */
/* Programs, which are not compiled, kernels and launches. */
#include "fake_internal.h"

#include <stdlib.h>
#include <string.h>

static struct fake_kernels kernels;

API void fake_set_kernels(const struct fake_kernels *given)
{
    kernels = *given;
}

/* ---- programs ---- */

static char *copy_of(const char *text)
{
    char *copy = malloc(strlen(text) + 1);
    if (copy == NULL) fake_die("no memory");
    return strcpy(copy, text);
}

static cl_program new_program(cl_context context, char *text)
{
    cl_program made = fake_new(PROGRAM, sizeof *made);
    made->context = context;
    made->text = text;
    made->options = copy_of("");
    made->building = CL_BUILD_NONE;
    fake_use(context);
    return made;
}

API cl_program clCreateProgramWithSource(cl_context context, cl_uint count, const char **texts,
                                         const size_t *lengths, cl_int *code)
{
    cl_int own;
    cl_program made = NULL;
    if (code == NULL) code = &own;
    fake_lock();
    *code = CL_INVALID_CONTEXT;
    if (fake_lives(context, CONTEXT, "clCreateProgramWithSource")) {
        size_t size = 1;
        for (cl_uint i = 0; i < count; i++)
            size += lengths != NULL && lengths[i] != 0 ? lengths[i] : strlen(texts[i]);
        char *text = malloc(size), *at = text;
        if (text == NULL) fake_die("no memory");
        for (cl_uint i = 0; i < count; i++) {
            const size_t length = lengths != NULL && lengths[i] != 0 ? lengths[i]
                                                                     : strlen(texts[i]);
            memcpy(at, texts[i], length);
            at += length;
        }
        *at = '\0';
        made = new_program(context, text);
        *code = CL_SUCCESS;
    }
    fake_unlock();
    return made;
}

/* NVIDIA's binaries. The options are a line. */
#define PTX_VERSION "//\n.version 8.0\n.target "
#define PTX_OPTIONS "\n// "
#define PTX_BODY "\n.entry fake()\n{\n"

static char *ptx_of(const struct _cl_program *p)
{
    const char *target = p->sm_90a ? "sm_90a" : "sm_90",
               *text = !p->sm_90a && fake_nvidia_does("strips", p->options) ? "" : p->text,
               *begin = fake_nvidia_does("hides", p->options) ? "" : PTX_VERSION;
    char *ptx = malloc(strlen(begin) + strlen(target) + strlen(PTX_OPTIONS) + strlen(p->options) +
                       strlen(PTX_BODY) + strlen(text) + 1);
    if (ptx == NULL) fake_die("no memory");
    char *at = ptx;
    const char *const parts[] = {begin, target, PTX_OPTIONS, p->options, PTX_BODY, text};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        at = strcpy(at, parts[i]) + strlen(parts[i]);
    return ptx;
}

/* A program of PTX; NULL if it is none. */
static cl_program read_ptx(cl_context context, const char *binary, size_t size)
{
    const size_t version = strlen(PTX_VERSION);
    if (size < version || memcmp(binary, PTX_VERSION, version) != 0) return NULL;
    char *ptx = malloc(size + 1);
    if (ptx == NULL) fake_die("no memory");
    memcpy(ptx, binary, size);
    ptx[size] = '\0';
    char *target = ptx + version, *options = strstr(target, PTX_OPTIONS),
         *body = options == NULL ? NULL : strstr(options, PTX_BODY);
    cl_program made = NULL;
    if (body != NULL) {
        *options = *body = '\0';
        made = new_program(context, copy_of(body + strlen(PTX_BODY)));
        free(made->options);
        made->options = copy_of(options + strlen(PTX_OPTIONS));
        made->binary = true;
        made->sm_90a = strcmp(target, "sm_90a") == 0;
    }
    free(ptx);
    return made;
}

/* A binary is the device's name, the options and the text, each with its end. */
API cl_program clCreateProgramWithBinary(cl_context context, cl_uint count, const cl_device_id *ids,
                                         const size_t *lengths, const unsigned char **binaries,
                                         cl_int *status, cl_int *code)
{
    cl_int own;
    cl_program made = NULL;
    if (code == NULL) code = &own;
    fake_lock();
    *code = CL_INVALID_CONTEXT;
    if (fake_lives(context, CONTEXT, "clCreateProgramWithBinary") && fake_is_nvidia(context)) {
        made = read_ptx(context, (const char *)binaries[0], lengths[0]);
        *code = made != NULL ? CL_SUCCESS : CL_INVALID_BINARY;
        if (status != NULL) *status = *code;
    } else if (fake_lives(context, CONTEXT, "clCreateProgramWithBinary")) {
        const char *name = (const char *)binaries[0], *end = name + lengths[0];
        const size_t length = strlen(ids[0]->name) + 1;
        *code = count == 1 && lengths[0] > length + 1 && end[-1] == '\0' &&
                        memcmp(name, ids[0]->name, length) == 0 &&
                        name + length + strlen(name + length) + 1 < end
                    ? CL_SUCCESS
                    : CL_INVALID_BINARY;
        if (*code == CL_SUCCESS) {
            const char *options = name + length;
            made = new_program(context, copy_of(options + strlen(options) + 1));
            free(made->options);
            made->options = copy_of(options);
            made->binary = true;
        }
        if (status != NULL) *status = *code;
    }
    fake_unlock();
    return made;
}

/* What is compiled is what has a kernel; the options must be known ones. */
API cl_int clBuildProgram(cl_program program, cl_uint count, const cl_device_id *ids,
                          const char *options, void(CL_CALLBACK *notify)(cl_program, void *),
                          void *user)
{
    (void)count;
    (void)ids;
    (void)notify;
    (void)user;
    fake_lock();
    cl_int code = CL_INVALID_PROGRAM;
    if (fake_lives(program, PROGRAM, "clBuildProgram")) {
        code = CL_SUCCESS;
        if (!program->binary) {
            free(program->options);
            program->options = copy_of(options == NULL ? "" : options);
        }
        if (strstr(program->options, "-cl-intel-") != NULL) code = CL_INVALID_BUILD_OPTIONS;
        if (strstr(program->text, "void ") == NULL) code = CL_BUILD_PROGRAM_FAILURE;
        if (program->sm_90a && fake_nvidia_does("refuses", program->options))
            code = CL_BUILD_PROGRAM_FAILURE;
        program->building = code == CL_SUCCESS ? CL_BUILD_SUCCESS : CL_BUILD_ERROR;
        strcpy(program->log, code == CL_SUCCESS ? "" : "there is no kernel in\n\tthese sources");
    }
    fake_unlock();
    return code;
}

API cl_int clGetProgramInfo(cl_program p, cl_program_info what, size_t size, void *value,
                            size_t *needed)
{
    fake_lock();
    cl_int code = CL_INVALID_PROGRAM;
    if (fake_lives(p, PROGRAM, "clGetProgramInfo")) {
        const cl_uint owners = (cl_uint)p->object.owners;
        const char *name = p->context->device[0]->name;
        const size_t parts[] = {strlen(name) + 1, strlen(p->options) + 1, strlen(p->text) + 1};
        size_t sizes[FAKE_DEVICES];
        char *ptx = fake_is_nvidia(p->context) ? ptx_of(p) : NULL;
        for (cl_uint i = 0; i < p->context->count; i++)
            sizes[i] = p->building != CL_BUILD_SUCCESS ? 0
                       : ptx != NULL
                           ? strlen(ptx)
                           : strlen(p->context->device[i]->name) + 1 + parts[1] + parts[2];
        switch (what) {
        case CL_PROGRAM_NUM_DEVICES:
            code = fake_answer(&p->context->count, sizeof(cl_uint), size, value, needed);
            break;
        case CL_PROGRAM_DEVICES:
            code = fake_answer(p->context->device, p->context->count * sizeof(cl_device_id), size,
                               value, needed);
            break;
        case CL_PROGRAM_BINARY_SIZES:
            code = fake_answer(sizes, p->context->count * sizeof *sizes, size, value, needed);
            break;
        case CL_PROGRAM_BINARIES:
            code = CL_SUCCESS;
            for (cl_uint i = 0; i < p->context->count; i++) {
                char *to = ((char **)value)[i];
                if (to == NULL || sizes[i] == 0) continue;
                if (ptx != NULL) {
                    memcpy(to, ptx, sizes[i]);
                    continue;
                }
                to = strcpy(to, p->context->device[i]->name) + sizes[i] - parts[1] - parts[2];
                memcpy(to, p->options, parts[1]);
                memcpy(to + parts[1], p->text, parts[2]);
            }
            break;
        case CL_PROGRAM_SOURCE: code = fake_answer(p->text, parts[2], size, value, needed); break;
        case CL_PROGRAM_REFERENCE_COUNT:
            code = fake_answer(&owners, sizeof owners, size, value, needed);
            break;
        case CL_PROGRAM_CONTEXT:
            code = fake_answer(&p->context, sizeof p->context, size, value, needed);
            break;
        default: code = CL_INVALID_VALUE;
        }
        free(ptx);
    }
    fake_unlock();
    return code;
}

API cl_int clGetProgramBuildInfo(cl_program p, cl_device_id device, cl_program_build_info what,
                                 size_t size, void *value, size_t *needed)
{
    (void)device;
    fake_lock();
    cl_int code = CL_INVALID_PROGRAM;
    if (fake_lives(p, PROGRAM, "clGetProgramBuildInfo"))
        code = what == CL_PROGRAM_BUILD_LOG
                   ? fake_answer(p->log, strlen(p->log) + 1, size, value, needed)
                   : CL_INVALID_VALUE;
    fake_unlock();
    return code;
}

API cl_int clRetainProgram(cl_program program)
{
    return fake_retain(program, PROGRAM, CL_INVALID_PROGRAM, "clRetainProgram");
}

API cl_int clReleaseProgram(cl_program program)
{
    return fake_release(program, PROGRAM, CL_INVALID_PROGRAM, "clReleaseProgram");
}

/* ---- kernels ---- */

/* Whether the text has a kernel of that name. */
static bool has_kernel(const char *text, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = strstr(text, name); at != NULL; at = strstr(at + 1, name))
        if (at > text && (at[-1] == ' ' || at[-1] == '\n') && at[length] == '(') return true;
    return false;
}

API cl_kernel clCreateKernel(cl_program program, const char *name, cl_int *code)
{
    cl_int own;
    cl_kernel made = NULL;
    if (code == NULL) code = &own;
    fake_lock();
    *code = !fake_lives(program, PROGRAM, "clCreateKernel") ? CL_INVALID_PROGRAM
            : program->building != CL_BUILD_SUCCESS         ? CL_INVALID_PROGRAM_EXECUTABLE
            : !has_kernel(program->text, name)              ? CL_INVALID_KERNEL_NAME
                                                            : CL_SUCCESS;
    if (*code == CL_SUCCESS) {
        made = fake_new(KERNEL, sizeof *made);
        made->program = program;
        made->name = copy_of(name);
        fake_use(program);
    }
    fake_unlock();
    return made;
}

API cl_int clGetKernelInfo(cl_kernel k, cl_kernel_info what, size_t size, void *value,
                           size_t *needed)
{
    fake_lock();
    cl_int code = CL_INVALID_KERNEL;
    if (fake_lives(k, KERNEL, "clGetKernelInfo"))
        code = what == CL_KERNEL_FUNCTION_NAME
                   ? fake_answer(k->name, strlen(k->name) + 1, size, value, needed)
               : what == CL_KERNEL_PROGRAM
                   ? fake_answer(&k->program, sizeof k->program, size, value, needed)
               : what == CL_KERNEL_CONTEXT
                   ? fake_answer(&k->program->context, sizeof(cl_context), size, value, needed)
                   : CL_INVALID_VALUE;
    fake_unlock();
    return code;
}

API cl_int clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id device,
                                    cl_kernel_work_group_info what, size_t size, void *value,
                                    size_t *needed)
{
    const cl_ulong none = 0;
    fake_lock();
    cl_int code = CL_INVALID_KERNEL;
    if (fake_lives(kernel, KERNEL, "clGetKernelWorkGroupInfo"))
        code = what == CL_KERNEL_WORK_GROUP_SIZE
                   ? fake_answer(&device->group, sizeof device->group, size, value, needed)
               : what == CL_KERNEL_LOCAL_MEM_SIZE || what == CL_KERNEL_PRIVATE_MEM_SIZE
                   ? fake_answer(&none, sizeof none, size, value, needed)
                   : CL_INVALID_VALUE;
    fake_unlock();
    return code;
}

API cl_int clRetainKernel(cl_kernel kernel)
{
    return fake_retain(kernel, KERNEL, CL_INVALID_KERNEL, "clRetainKernel");
}

API cl_int clReleaseKernel(cl_kernel kernel)
{
    return fake_release(kernel, KERNEL, CL_INVALID_KERNEL, "clReleaseKernel");
}

static cl_int set_argument(struct fake_argument *a, size_t size, const void *value, bool pointer)
{
    *a = (struct fake_argument){.size = size};
    if (pointer) {
        a->kind = FAKE_POINTER;
        a->memory = (unsigned char *)(uintptr_t)value;
    } else if (value == NULL && size != sizeof(cl_mem)) {
        a->kind = FAKE_LOCAL;
    } else if (size > sizeof a->value) {
        return CL_INVALID_ARG_SIZE;
    } else {
        a->kind = FAKE_VALUE;
        if (value != NULL) memcpy(a->value, value, size);
    }
    return CL_SUCCESS;
}

static cl_int set_kernel_argument(cl_kernel kernel, cl_uint index, size_t size, const void *value,
                                  bool pointer)
{
    fake_lock();
    const cl_int code = !fake_lives(kernel, KERNEL, "clSetKernelArg") ? CL_INVALID_KERNEL
                        : index >= MOST_ARGUMENTS
                            ? CL_INVALID_ARG_INDEX
                            : set_argument(&kernel->argument[index], size, value, pointer);
    fake_unlock();
    return code;
}

API cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, size_t size, const void *value)
{
    return set_kernel_argument(kernel, index, size, value, false);
}

API cl_int CL_API_CALL clSetKernelArgSVMPointer(cl_kernel kernel, cl_uint index,
                                                const void *pointer)
{
    return set_kernel_argument(kernel, index, sizeof pointer, pointer, true);
}

API cl_int CL_API_CALL clSetKernelArgMemPointerINTEL(cl_kernel kernel, cl_uint index,
                                                     const void *pointer)
{
    return set_kernel_argument(kernel, index, sizeof pointer, pointer, true);
}

/* ---- launches ---- */

/* Finds the memory behind an argument. A value that is a buffer's handle is a buffer: no number of
 * a launch is so large. */
static cl_int find_memory(struct task *task, struct fake_argument *a)
{
    const cl_context context = task->kernel->program->context;
    if (a->kind == FAKE_VALUE && a->size == sizeof(cl_mem)) {
        cl_mem buffer;
        memcpy(&buffer, a->value, sizeof buffer);
        if (!fake_is_buffer(buffer, "a launch")) return CL_SUCCESS;
        if (buffer->context != context) return CL_INVALID_KERNEL_ARGS;
        a->kind = FAKE_BUFFER;
        a->buffer = buffer;
        a->memory = buffer->memory;
        a->size = buffer->size;
        fake_use(buffer);
    } else if (a->kind == FAKE_POINTER) {
        const struct allocation *found = fake_allocation(a->memory);
        if (found == NULL || found->context != context)
            fake_die("a launch gets a pointer to no shared memory of its context");
        a->size = (size_t)(found->memory + found->size - a->memory);
    }
    return CL_SUCCESS;
}

static cl_int set_extents(struct task *task, cl_device_id device, cl_uint axes,
                          const size_t *offset, const size_t *global, const size_t *local)
{
    struct fake_launch *l = &task->launch;
    size_t items = 1;
    if (axes < 1 || axes > 3) return CL_INVALID_WORK_DIMENSION;
    for (cl_uint i = 0; i < 3; i++) {
        l->offset[i] = i < axes && offset != NULL ? offset[i] : 0;
        l->global[i] = i < axes ? global[i] : 1;
        l->local[i] = i < axes && local != NULL ? local[i] : 1;
        if (l->global[i] == 0) return CL_INVALID_GLOBAL_WORK_SIZE;
        if (l->local[i] == 0 || l->global[i] % l->local[i] != 0) return CL_INVALID_WORK_GROUP_SIZE;
        if (l->local[i] > device->group) return CL_INVALID_WORK_ITEM_SIZE;
        items *= l->local[i];
    }
    return items > device->group ? CL_INVALID_WORK_GROUP_SIZE : CL_SUCCESS;
}

cl_int fake_task_make(cl_kernel kernel, cl_device_id device, cl_uint axes, const size_t *offset,
                      const size_t *global, const size_t *local, struct task **out)
{
    struct task *task = calloc(1, sizeof *task);
    if (task == NULL) fake_die("no memory");
    task->kernel = kernel;
    fake_use(kernel);
    cl_int code = set_extents(task, device, axes, offset, global, local);
    for (cl_uint i = 0; i < MOST_ARGUMENTS && code == CL_SUCCESS; i++) {
        task->argument[i] = kernel->argument[i];
        if (task->argument[i].kind != FAKE_UNSET) task->launch.count = i + 1;
        code = find_memory(task, &task->argument[i]);
    }
    for (cl_uint i = 0; i < task->launch.count && code == CL_SUCCESS; i++)
        if (task->argument[i].kind == FAKE_UNSET) code = CL_INVALID_KERNEL_ARGS;
    task->launch.kernel = kernel->name;
    task->launch.options = kernel->program->options;
    task->launch.sm_90a = kernel->program->sm_90a &&
                          !fake_nvidia_does("wrong", kernel->program->options);
    task->launch.arguments = task->argument;
    if (code == CL_SUCCESS) code = kernels.check(&task->launch);
    if (code == CL_SUCCESS)
        *out = task;
    else
        fake_task_free(task);
    return code;
}

cl_int fake_task_set(struct task *task, cl_uint index, size_t size, const void *value, bool pointer)
{
    struct fake_argument *a = &task->argument[index];
    if (index >= task->launch.count) return CL_INVALID_ARG_INDEX;
    if (a->kind == FAKE_BUFFER) fake_drop(a->buffer);
    const cl_int code = set_argument(a, size, value, pointer);
    return code == CL_SUCCESS ? find_memory(task, a) : code;
}

void fake_task_run(const struct task *task)
{
    kernels.run(&task->launch);
}

void fake_task_free(struct task *task)
{
    for (cl_uint i = 0; i < MOST_ARGUMENTS; i++)
        if (task->argument[i].kind == FAKE_BUFFER) fake_drop(task->argument[i].buffer);
    fake_drop(task->kernel);
    free(task);
}
