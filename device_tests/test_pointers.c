/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors behind pointers into shared memory (SVM of OpenCL 2.0, cl_intel_unified_shared_memory):
 * every algorithm computes on them what it computes on buffers, also with both kinds mixed, and
 * each misuse has a sentence and changes nothing. A device without shared memory refuses them. */
#include "recorder.h"
#include "setup.h"
#include "smoke.h"

#include "device/opencl_loader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Values that headers of OpenCL 1.2 do not name. */
enum { SVM_CAPABILITIES = 0x1053, SVM_FINE = 1 << 1, SVM_SYSTEM = 1 << 2 };

/* A kind of shared memory, and what makes and frees it. */
enum kind { COARSE, FINE, HOST, SHARED, DEVICE, KINDS };
static const char *const kind_names[KINDS] = {"coarse-grained SVM", "fine-grained SVM", "host USM",
                                              "shared USM", "device USM"};

typedef void *(CL_API_CALL *svm_alloc)(cl_context, cl_bitfield, size_t, cl_uint);
typedef void(CL_API_CALL *svm_free)(cl_context, void *);
typedef cl_int(CL_API_CALL *svm_copy)(cl_command_queue, cl_bool, void *, const void *, size_t,
                                      cl_uint, const cl_event *, cl_event *);
typedef void *(CL_API_CALL *host_alloc)(cl_context, const cl_bitfield *, size_t, cl_uint, cl_int *);
typedef void *(CL_API_CALL *device_alloc)(cl_context, cl_device_id, const cl_bitfield *, size_t,
                                          cl_uint, cl_int *);
typedef cl_int(CL_API_CALL *usm_free)(cl_context, void *);
typedef cl_int(CL_API_CALL *usm_copy)(cl_command_queue, cl_bool, void *, const void *, size_t,
                                      cl_uint, const cl_event *, cl_event *);

static struct calls {
    cl_bitfield svm;
    bool old_loader; /* without the functions of OpenCL 2.0 */
    bool usm;
    svm_alloc svm_alloc;
    svm_free svm_free;
    svm_copy svm_copy;
    host_alloc host_alloc;
    device_alloc device_alloc, shared_alloc;
    usm_free usm_free;
    usm_copy usm_copy;
} c;

static bool find_extension(cl_platform_id platform, const char *name, void *call)
{
    void *address = clGetExtensionFunctionAddressForPlatform(platform, name);
    memcpy(call, &address, sizeof address);
    return address != NULL;
}

static void find_calls(const struct device *d)
{
    static char extensions[20000];
    cl_platform_id platform = NULL;
    const cl_device_id id = id_of(d);
    c = (struct calls){0};
    clGetDeviceInfo(id, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL);
    if (clGetDeviceInfo(id, SVM_CAPABILITIES, sizeof c.svm, &c.svm, NULL) != CL_SUCCESS) c.svm = 0;
    c.old_loader = c.svm != 0 && (!tconv_opencl_find("clSVMAlloc", &c.svm_alloc) ||
                                  !tconv_opencl_find("clSVMFree", &c.svm_free) ||
                                  !tconv_opencl_find("clEnqueueSVMMemcpy", &c.svm_copy));
    if (c.old_loader) c.svm = 0;
    clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS, sizeof extensions - 1, extensions, NULL);
    c.usm = strstr(extensions, "cl_intel_unified_shared_memory") != NULL;
    if (c.usm && (!find_extension(platform, "clHostMemAllocINTEL", &c.host_alloc) ||
                  !find_extension(platform, "clDeviceMemAllocINTEL", &c.device_alloc) ||
                  !find_extension(platform, "clSharedMemAllocINTEL", &c.shared_alloc) ||
                  !find_extension(platform, "clMemBlockingFreeINTEL", &c.usm_free) ||
                  !find_extension(platform, "clEnqueueMemcpyINTEL", &c.usm_copy)))
        failed("device %d has no clHostMemAllocINTEL", d->number);
}

static bool has(enum kind kind)
{
    return kind == COARSE ? c.svm != 0 : kind == FINE ? (c.svm & SVM_FINE) != 0 : c.usm;
}

static void *allocate(const struct device *d, cl_context context, enum kind kind, size_t bytes)
{
    cl_int code = CL_SUCCESS;
    void *made = NULL;
    switch (kind) {
    case COARSE: made = c.svm_alloc(context, CL_MEM_READ_WRITE, bytes, 0); break;
    case FINE: made = c.svm_alloc(context, CL_MEM_READ_WRITE | 1 << 10, bytes, 0); break;
    case HOST: made = c.host_alloc(context, NULL, bytes, 0, &code); break;
    case SHARED: made = c.shared_alloc(context, id_of(d), NULL, bytes, 0, &code); break;
    case DEVICE: made = c.device_alloc(context, id_of(d), NULL, bytes, 0, &code); break;
    case KINDS: break;
    }
    if (made == NULL || code != CL_SUCCESS)
        failed("no %zu bytes of %s: %d", bytes, kind_names[kind], code);
    return made;
}

static void release(cl_context context, enum kind kind, void *memory)
{
    if (kind <= FINE)
        c.svm_free(context, memory);
    else
        assert_int_equal(c.usm_free(context, memory), CL_SUCCESS);
}

static void copy(const struct device *d, enum kind kind, void *to, const void *from, size_t bytes)
{
    if (bytes == 0) return;
    assert_int_equal(
        (kind <= FINE ? c.svm_copy : c.usm_copy)(d->queue, CL_TRUE, to, from, bytes, 0, NULL, NULL),
        CL_SUCCESS);
}

/* ---- every algorithm ---- */

/* Tensors of a plan in one allocation each. */
struct shared {
    enum kind kind;
    tconv_tensor data, weights, bias, output, workspace, packed;
};

/* An allocation with a tensor behind `offset` bytes. */
static tconv_tensor place(const struct device *d, enum kind kind, const void *contents,
                          size_t bytes, size_t offset)
{
    tconv_tensor made = TCONV_TENSOR_INIT;
    made.offset = offset;
    made.pointer = allocate(d, d->context, kind, offset + bytes + 1);
    if (contents != NULL) copy(d, kind, (char *)made.pointer + offset, contents, bytes);
    return made;
}

static void share(const struct setup *s, enum kind kind, size_t offset, struct shared *m)
{
    const struct device *d = s->device;
    const struct tensors *t = &s->tensors;
    const tconv_geometry *g = &t->geometry;
    m->kind = kind;
    m->data = place(d, kind, t->data, (size_t)g->data_bytes, offset);
    m->weights = place(d, kind, t->filter, (size_t)g->filter_bytes, offset);
    m->bias = place(d, kind, t->bias, t->channels * tconv_type_size(g->output_type), offset);
    m->output = place(d, kind, NULL, s->output_bytes, offset);
    m->workspace = place(d, kind, NULL, s->workspace_bytes, offset);
    m->packed = place(d, kind, NULL, (size_t)tconv_plan_filter_bytes(s->plan), 64);
}

static void unshare(const struct device *d, const struct shared *m)
{
    const tconv_tensor all[] = {m->data, m->weights, m->bias, m->output, m->workspace, m->packed};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        release(d->context, m->kind, all[i].pointer);
}

/* Packs and runs on shared memory; the members of `buffers` that are set stay buffers. */
static void run_shared(struct setup *s, const struct shared *m, bool packed_too, bool mixed)
{
    tconv_error error;
    tconv_packed_filter *filter = NULL;
    tconv_tensors args = s->args;
    expect_ok(tconv_packed_filter_create(s->plan, packed_too ? &m->packed : NULL, &filter, &error),
              &error);
    expect_ok(tconv_packed_filter_enqueue_pack(filter, s->device->queue, &m->weights, 0, NULL, NULL,
                                               &error),
              &error);
    args.packed = filter;
    args.output = m->output;
    args.bias = m->bias;
    if (!mixed) args.data = m->data;
    if (!mixed) args.workspace = m->workspace;
    memset(s->tensors.output, 0xff, s->output_bytes);
    copy(s->device, m->kind, (char *)m->output.pointer + m->output.offset, s->tensors.output,
         s->output_bytes);
    cl_event done;
    expect_ok(tconv_plan_enqueue(s->plan, s->device->queue, &args, 0, NULL, &done, &error), &error);
    assert_int_equal(clWaitForEvents(1, &done), CL_SUCCESS);
    clReleaseEvent(done);
    copy(s->device, m->kind, s->tensors.output, (char *)m->output.pointer + m->output.offset,
         s->output_bytes);
    compare_with_oracle(s->device, &s->problem, s->algorithm, true, &s->tensors);
    tconv_packed_filter_release(filter);
}

/* A layer whose weights and tensors are pointers. */
static void run_layer(struct setup *s, const struct shared *m)
{
    tconv_error error;
    tconv_layer *layer;
    const tconv_plan_options options = options_for(s->algorithm, true);
    tconv_tensors weights = TCONV_TENSORS_INIT, tensors = TCONV_TENSORS_INIT;
    tconv_run run = TCONV_RUN_INIT;
    weights.filter = m->weights;
    weights.bias = m->bias;
    tensors.data = m->data;
    tensors.output = m->output;
    run.queue = s->device->queue;
    expect_ok(tconv_layer_create(&s->device->device, 1, TCONV_FILTER_CONSTANT, &layer, &error),
              &error);
    expect_ok(tconv_layer_set(layer, &s->problem, &options, &weights, &run, &error), &error);
    for (int queued = 0; queued < 2; queued++) {
        memset(s->tensors.output, 0xff, s->output_bytes);
        copy(s->device, m->kind, (char *)m->output.pointer + m->output.offset, s->tensors.output,
             s->output_bytes);
        expect_ok(
            tconv_layer_run(layer, &s->problem, &options, &tensors, queued ? &run : NULL, &error),
            &error);
        assert_int_equal(clFinish(s->device->queue), CL_SUCCESS);
        copy(s->device, m->kind, s->tensors.output, (char *)m->output.pointer + m->output.offset,
             s->output_bytes);
        compare_with_oracle(s->device, &s->problem, s->algorithm, true, &s->tensors);
    }
    tconv_layer_release(layer);
}

/* A recording of buffers, which are replaced by pointers. */
static void run_recorded(struct setup *s, const struct shared *m)
{
    const struct device *d = s->device;
    struct recorder r;
    recording made = !recorder_find(id_of(d), &r) ? NULL
                                                  : recorder_begin_mutable(&r, id_of(d), d->queue);
    if (made == NULL) return;
    tconv_error error;
    tconv_recording *recorded;
    tconv_tensors args = s->args;
    pack(s);
    args.packed = s->args.packed;
    expect_ok(
        tconv_recording_create(s->plan, made, d->queue, &args, 0, NULL, NULL, &recorded, &error),
        &error);
    assert_int_equal(r.finalize(made), CL_SUCCESS);
    args.data = m->data;
    args.bias = m->bias;
    args.output = m->output;
    if (m->kind > FINE) {
        expect_error(tconv_recording_update(recorded, &args, &error), TCONV_ERROR_UNSUPPORTED,
                     &error, "replaces only buffers and pointers of SVM");
    } else {
        expect_ok(tconv_recording_update(recorded, &args, &error), &error);
        memset(s->tensors.output, 0xff, s->output_bytes);
        copy(d, m->kind, (char *)m->output.pointer + m->output.offset, s->tensors.output,
             s->output_bytes);
        assert_int_equal(r.enqueue(0, NULL, made, 0, NULL, NULL), CL_SUCCESS);
        assert_int_equal(clFinish(d->queue), CL_SUCCESS);
        copy(d, m->kind, s->tensors.output, (char *)m->output.pointer + m->output.offset,
             s->output_bytes);
        compare_with_oracle(d, &s->problem, s->algorithm, true, &s->tensors);
    }
    r.release(made);
    tconv_recording_release(recorded);
}

static void every_algorithm_takes_pointers(void **state)
{
    (void)state;
    for (int i = 0; i < device_count; i++) {
        const struct device *d = &devices[i];
        find_calls(d);
        for (enum kind kind = COARSE; kind < KINDS; kind++) {
            if (!has(kind)) {
                print_message("device %d has no %s\n", d->number, kind_names[kind]);
                continue;
            }
            for (int a = 0; tconv_algorithm_name(a) != NULL; a++) {
                const char *name = tconv_algorithm_name(a);
                if (never_runs(d, name)) continue;
                const tconv_problem p = plane_for(name, 1, 6, 7, 19, 3, 2, 1);
                struct setup s;
                struct shared m;
                set_up(&s, d, &p, name, true, SMALL_INTEGERS);
                share(&s, kind, a % 2 == 0 ? 0 : 12 * sizeof(float), &m);
                run_shared(&s, &m, a % 2 == 0, false);
                run_shared(&s, &m, a % 2 != 0, true);
                run_layer(&s, &m);
                run_recorded(&s, &m);
                unshare(d, &m);
                tear_down(&s);
            }
        }
    }
}

/* ---- misuse ---- */

static void expect_refused(struct setup *s, const tconv_tensors *args, tconv_status status,
                           const char *words)
{
    tconv_error error;
    cl_event done = (cl_event)&error;
    expect_error(tconv_plan_enqueue(s->plan, s->device->queue, args, 0, NULL, &done, &error),
                 status, &error, words);
    assert_ptr_equal(done, &error);
}

static void devices_without_shared_memory_refuse(const struct device *d)
{
    const tconv_problem p = plane(1, 4, 3, 30, 4, 2, 1);
    struct setup s;
    set_up(&s, d, &p, "gather_group", false, SMALL_INTEGERS);
    pack(&s);
    tconv_tensors args = s.args;
    args.data = (tconv_tensor){.pointer = s.tensors.data};
    expect_refused(&s, &args, TCONV_ERROR_DEVICE,
                   c.old_loader ? "install a loader of OpenCL 2.0"
                                : "has neither shared virtual memory nor");
    tear_down(&s);
}

/* What holds for each kind. */
static void misuse_of(const struct device *d, enum kind kind)
{
    const tconv_problem p = plane(1, 4, 3, 30, 4, 2, 1);
    struct setup s;
    struct shared m;
    tconv_error error;
    set_up(&s, d, &p, "gather_group", false, SMALL_INTEGERS);
    share(&s, kind, 16, &m);
    pack(&s);
    const size_t bytes = s.output_bytes;
    unsigned char *before = malloc(bytes), *after = malloc(bytes);
    memset(before, 0x5a, bytes);
    copy(d, kind, (char *)m.output.pointer + 16, before, bytes);
    tconv_tensors good = s.args, args;
    good.data = m.data;
    good.output = m.output;
    good.workspace = m.workspace;

    args = good;
    args.data.memory = s.data;
    expect_refused(&s, &args, TCONV_ERROR_ARGUMENT, "tensors.data has both a buffer");
    args = good;
    args.output.offset = 18;
    expect_refused(&s, &args, TCONV_ERROR_BUFFER, "tensors.output begins at byte 18 of pointer");
    args.output.offset = 16 + 4;
    expect_refused(&s, &args, TCONV_ERROR_BUFFER, "tensors.output is outside its memory");
    args.output.offset = (size_t)-8;
    expect_refused(&s, &args, TCONV_ERROR_BUFFER, "tensors.output is outside its memory");
    args = good;
    args.data = args.output;
    expect_refused(&s, &args, TCONV_ERROR_BUFFER, "tensors.output overlaps tensors.data");
    args = good;
    args.workspace.pointer = m.data.pointer;
    if (s.workspace_bytes > 0 && s.workspace_bytes <= (size_t)s.tensors.geometry.data_bytes)
        expect_refused(&s, &args, TCONV_ERROR_BUFFER, "tensors.workspace overlaps tensors.data");

    tconv_packed_filter *filter = NULL;
    tconv_tensor storage = m.packed;
    storage.offset = 32;
    expect_error(tconv_packed_filter_create(s.plan, &storage, &filter, &error), TCONV_ERROR_BUFFER,
                 &error, "not a multiple of 64");
    storage.offset = 128;
    expect_error(tconv_packed_filter_create(s.plan, &storage, &filter, &error), TCONV_ERROR_BUFFER,
                 &error, "storage is outside its memory");
    assert_null(filter);
    expect_ok(tconv_packed_filter_create(s.plan, &m.packed, &filter, &error), &error);
    tconv_tensor weights = m.weights;
    weights.offset += 1000000;
    expect_error(
        tconv_packed_filter_enqueue_pack(filter, d->queue, &weights, 0, NULL, NULL, &error),
        TCONV_ERROR_BUFFER, &error, "weights is outside its memory");
    expect_error(tconv_packed_filter_enqueue_pack(filter, d->queue, NULL, 0, NULL, NULL, &error),
                 TCONV_ERROR_ARGUMENT, &error, "weights is NULL");
    tconv_packed_filter_release(filter);

    /* A buffer over the same bytes. */
    if (kind != DEVICE) {
        cl_int code;
        cl_mem over = clCreateBuffer(d->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes,
                                     m.output.pointer, &code);
        assert_int_equal(code, CL_SUCCESS);
        args = good;
        args.data = (tconv_tensor){.memory = over};
        expect_refused(&s, &args, TCONV_ERROR_BUFFER, "tensors.output overlaps tensors.data");
        clReleaseMemObject(over);
    }

    /* Memory that is no shared one, and memory of another context. Kernels of a CPU with system SVM
     * may use both. */
    if ((c.svm & SVM_SYSTEM) == 0) {
        const cl_device_id id = id_of(d);
        cl_int code;
        cl_context foreign = clCreateContext(NULL, 1, &id, NULL, NULL, &code);
        assert_int_equal(code, CL_SUCCESS);
        args = good;
        args.data = (tconv_tensor){.pointer = allocate(d, foreign, kind, 1 << 20)};
        expect_refused(&s, &args, TCONV_ERROR_MISMATCH, "tensors.data is pointer");
        release(foreign, kind, args.data.pointer);
        args.data.pointer = s.tensors.data;
        expect_refused(&s, &args, TCONV_ERROR_MISMATCH, "tensors.data is pointer");
        clReleaseContext(foreign);
    }

    clFinish(d->queue);
    copy(d, kind, after, (char *)m.output.pointer + 16, bytes);
    assert_memory_equal(after, before, bytes); /* nothing was written */
    free(before);
    free(after);
    unshare(d, &m);
    tear_down(&s);
}

static void misuse_has_a_sentence(void **state)
{
    (void)state;
    for (int i = 0; i < device_count; i++) {
        find_calls(&devices[i]);
        if (c.svm == 0 && !c.usm) devices_without_shared_memory_refuse(&devices[i]);
        for (enum kind kind = COARSE; kind < KINDS; kind++)
            if (has(kind)) misuse_of(&devices[i], kind);
    }
}

/* Buffers over the same memory of the host overlap, too. */
static void buffers_over_host_memory_overlap(void **state)
{
    (void)state;
    for (int i = 0; i < device_count; i++) {
        const tconv_problem p = plane(1, 4, 3, 30, 4, 2, 1);
        struct setup s;
        set_up(&s, &devices[i], &p, "gather_group", false, SMALL_INTEGERS);
        pack(&s);
        const size_t bytes = s.output_bytes;
        void *memory = calloc(2, bytes);
        cl_int code;
        cl_mem low = clCreateBuffer(devices[i].context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                                    2 * bytes, memory, &code);
        assert_int_equal(code, CL_SUCCESS);
        cl_mem high = clCreateBuffer(devices[i].context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                                     bytes, (char *)memory + bytes, &code);
        assert_int_equal(code, CL_SUCCESS);
        tconv_tensors args = s.args;
        args.data.memory = low;
        args.output.memory = high;
        tconv_error error;
        expect_ok(tconv_plan_enqueue(s.plan, devices[i].queue, &args, 0, NULL, NULL, &error),
                  &error);
        clFinish(devices[i].queue);
        args.data.offset = bytes;
        expect_refused(&s, &args, TCONV_ERROR_BUFFER, "tensors.output overlaps tensors.data");
        clReleaseMemObject(low);
        clReleaseMemObject(high);
        free(memory);
        tear_down(&s);
    }
}

/* A buffer, and a sub-buffer of it from byte BEGIN on; over `memory` of the host if that is given.
 */
enum { BEGIN = 4096, ROOM = 1 << 18 };
struct nested {
    cl_mem parent, part;
};

static struct nested nested_buffers(const struct device *d, void *memory)
{
    cl_int code;
    struct nested n;
    n.parent = clCreateBuffer(d->context,
                              CL_MEM_READ_WRITE | (memory != NULL ? CL_MEM_USE_HOST_PTR : 0), ROOM,
                              memory, &code);
    assert_int_equal(code, CL_SUCCESS);
    const cl_buffer_region region = {BEGIN, ROOM - BEGIN};
    n.part = clCreateSubBuffer(n.parent, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    assert_int_equal(code, CL_SUCCESS);
    return n;
}

/* Expects that the output in `n` may lie right before a tensor, but not over one. */
static void expect_apart(struct setup *s, const struct nested *n, const char *name,
                         tconv_tensor *tensor)
{
    const tconv_tensor own = *tensor;
    char words[64];
    snprintf(words, sizeof words, "tensors.output overlaps tensors.%s", name);
    for (int swapped = 0; swapped < 2; swapped++) {
        s->args.output =
            (tconv_tensor){.memory = swapped ? n->parent : n->part, .offset = swapped ? BEGIN : 0};
        *tensor = (tconv_tensor){.memory = swapped ? n->part : n->parent,
                                 .offset = s->output_bytes - 4 + (swapped ? 0 : BEGIN)};
        expect_refused(s, &s->args, TCONV_ERROR_BUFFER, words);
        tensor->offset += 4;
        enqueue(s);
    }
    *tensor = own;
}

/* The output overlaps none of the tensors that a plan reads, whether one of them or both are named
 * by a sub-buffer. */
static void the_output_has_memory_of_its_own(void **state)
{
    (void)state;
    for (int i = 0; i < device_count; i++) {
        const struct device *d = &devices[i];
        const tconv_problem p = plane(1, 4, 3, 30, 4, 2, 1);
        tconv_plan_options options = options_for("gather_group", true);
        options.epilogue.scale = options.epilogue.residual = true;
        options.epilogue.activation = TCONV_ACTIVATION_PRELU;
        struct setup s;
        tconv_error error;
        set_up(&s, d, &p, "gather_group", true, SMALL_INTEGERS);
        tconv_packed_filter_release(s.filter);
        tconv_plan_release(s.plan);
        expect_ok(tconv_plan_create(d->device, &p, &options, &s.plan, &error), &error);
        expect_ok(tconv_packed_filter_create(s.plan, NULL, &s.filter, &error), &error);
        s.args.packed = s.filter;
        pack(&s);
        cl_mem numbers = buffer_of(d, NULL, s.tensors.channels * sizeof(float)),
               residual = buffer_of(d, NULL, s.output_bytes);
        s.args.scale.memory = s.args.slope.memory = numbers;
        s.args.residual.memory = residual;
        char *memory = calloc(1, ROOM);
        for (int host = 0; host < 2; host++) {
            const struct nested n = nested_buffers(d, host ? memory : NULL);
            expect_apart(&s, &n, "data", &s.args.data);
            expect_apart(&s, &n, "bias", &s.args.bias);
            expect_apart(&s, &n, "scale", &s.args.scale);
            expect_apart(&s, &n, "slope", &s.args.slope);
            expect_apart(&s, &n, "residual", &s.args.residual);
            const tconv_tensor storage = {.memory = n.parent, .offset = BEGIN + 128};
            tconv_packed_filter *filter;
            expect_ok(tconv_packed_filter_create(s.plan, &storage, &filter, &error), &error);
            s.args.output = (tconv_tensor){.memory = n.part};
            tconv_packed_filter *own = s.filter;
            s.args.packed = s.filter = filter;
            pack(&s);
            expect_refused(&s, &s.args, TCONV_ERROR_BUFFER,
                           "tensors.output overlaps tensors.packed");
            tconv_packed_filter_release(filter);
            s.args.packed = s.filter = own;
            clFinish(d->queue);
            clReleaseMemObject(n.part);
            clReleaseMemObject(n.parent);
        }
        free(memory);
        clReleaseMemObject(numbers);
        clReleaseMemObject(residual);
        tear_down(&s);
    }
}

int main(void)
{
    struct CMUnitTest tests[] = {
        cmocka_unit_test(every_algorithm_takes_pointers),
        cmocka_unit_test(misuse_has_a_sentence),
        smoke_test(buffers_over_host_memory_overlap),
        smoke_test(the_output_has_memory_of_its_own),
    };
    return run_smoke_or_all("pointers", tests, open_all_devices, close_all_devices);
}
