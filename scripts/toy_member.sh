#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Adds a member that computes to tconv_problem, in a copy of the sources: `mirror`, which takes the taps of an axis in
# reverse order. It is added to the public header, src/base/members.h, the tool's options and the Python package, and the
# code that computes with it to the geometry, the packing and the oracle. Then the text, the key of a layer's plans and
# the tool must know it, every way of computing must give the right numbers, and what is left out must be
# found. usage: sh scripts/toy_member.sh
more="host_tests device_tests fuzz python"
. "$(dirname "$0")/toy_tree.sh"
export PYTHONDONTWRITEBYTECODE=1
# The member, with its default
sed -i 's/^} tconv_problem;/    tconv_list mirror; \/* default 0: not reversed *\/\n&/
    s/^            {0, {0}}, {0, {0}}, {0, {0}}, {0, {0}}  *\\$/            {0, {0}}, {0, {0}}, {0, {0}}, {0, {0}}, {0, {0}} \\/' include/tconv_cl/problem.h
# Its row. It changes which of the filter's elements stands for which weight.
sed -i 's/^    P(LIST, output_padding,/    P(LIST, mirror, "mirror", true, 0, 0) \\\n&/' src/base/members.h
# Its option
sed -i 's/^    O(LAYER, TEXT, output_padding,/    O(LAYER, TEXT, mirror, "mirror", 0, "LIST", "default 0") \\\n&/' src/tool/option_list.h
# Python
sed -i 's/^        ("filter_steps", Steps),/&\n        ("mirror", List),/' python/tconv_cl/_library.py
sed -i 's/^    output_padding: Axes$/&\n    mirror: Axes | None/; s/^    output_padding: Axes = 0,/&\n    mirror: Axes | None = None,/' python/tconv_cl/_convolution.py
count_files "a member of the problem" 5
# What it means: the first tap is the last one of the filter, from which packing goes back.
sed -i 's/^            .filter_step = filter\[a\],/            .filter_step = problem->mirror.value[a] != 0 ? -filter[a] : filter[a],/' src/geometry/loops.c
sed -i 's/^tconv_status tconv_bind_weights(/static size_t first_tap(const tconv_plan *plan)\n{\n    int64_t first = 0;\n    for (int a = 0; a < plan->loops.axes; a++)\n        if (plan->loops.axis[a].filter_step < 0)\n            first -= (plan->loops.axis[a].kernel - 1) * plan->loops.axis[a].filter_step;\n    return (size_t)first * tconv_type_size(plan->loops.filter_type);\n}\n\n&/
    s/^    return bind_equivalent(plan, bindings, error);/    from->offset += first_tap(plan);\n&/' src/plan/enqueue.c
sed -i 's/^    for (int a = 0; a < g->axes; a++) at\[first + a\] = k\[a\];/    for (int a = 0; a < g->axes; a++)\n        at[first + a] = problem->mirror.value[a] != 0 ? g->kernel[a] - 1 - k[a] : k[a];/' src/oracle/oracle.c
count_files "the member and what it means" 8

cmake -S . -B build -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O0 -DTCONV_WARNINGS_AS_ERRORS=ON >"$work/log" &&
    cmake --build build --parallel "$(nproc)" --target tconv_inside tconv_cl tconv-cl test_members >>"$work/log" 2>&1 ||
    { tail -30 "$work/log"; exit 1; }
build/host_tests/test_members >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
# Two problems that differ in the member
cat >"$work/toy.c" <<'END_OF_FILE'
#include "layer/key.h"
#include <stdio.h>
#include <string.h>
int main(void)
{
    const tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    tconv_problem one = TCONV_PROBLEM_INIT, other;
    struct tconv_key one_key, other_key;
    char one_text[500], other_text[500];
    one.data = (tconv_shape){4, {1, 2, 3, 4}};
    one.filter = (tconv_shape){4, {2, 3, 2, 2}};
    other = one;
    other.mirror = (tconv_list){2, {1, 2}};
    tconv_problem_text(&one, one_text, sizeof one_text);
    tconv_problem_text(&other, other_text, sizeof other_text);
    printf("%s\n%s\n", one_text, other_text);
    if (strstr(other_text, "--mirror 1,2") == NULL || strcmp(one_text, other_text) == 0) return 1;
    if (!tconv_key_make(&one, &options, &one_key) || !tconv_key_make(&other, &options, &other_key)) return 2;
    if (tconv_key_equal(&one_key, &other_key)) return 3;
    return 0;
}
END_OF_FILE
check() { cc -std=c11 -Iinclude -Isrc -Icl -Ihost_tests "$@"; }
check -o "$work/toy" "$work/toy.c" build/libtconv_inside.a -lpthread -ldl -lm
"$work/toy" || { echo "the member is not in the text (1) or the key (2, 3): $?"; exit 1; }
# The tool reads what the text says, and the library refuses what the row does not allow.
shape="build/tconv-cl shape --data-shape 1,2,3,4 --filter-shape 2,3,2,2"
$shape --mirror 1,2 >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
$shape --mirror 1,-6 2>&1 | grep -q 'mirror is -6 at spatial axis 1' || { echo "a wrong value is not refused"; exit 1; }
cp build/libtconv_cl.so python/tconv_cl/
python3 python/tests/structures.py python/tconv_cl || exit 1


# Every algorithm computes with it, as the oracle does.
build/tconv-cl check --data-shape 1,3,5,6 --filter-shape 3,2,3,2 --strides 2,1 --mirror 1,0 >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
# Every way of computing: problems that differ in the member alone, one after another in the same layers
cat >"$work/ways.c" <<'END_OF_FILE'
#include "recorder.h"

#include <stdio.h>
#include <stdlib.h>
enum { C = 2, X = 9, K = 4, S = 2, Y = (X - 1) * S + K };
static float data[C * X], filter[C * C * K], output[C * Y];
static cl_command_queue queue;
static tconv_error error;
static void ok(int done)
{
    if (done) return;
    printf("%s\n", error.message);
    exit(2);
}
static cl_mem buffer(cl_context context, size_t bytes, void *from)
{
    return clCreateBuffer(context, from == NULL ? CL_MEM_READ_WRITE : CL_MEM_COPY_HOST_PTR, bytes, from, NULL);
}
static void compare(const char *way, int mirror, cl_mem memory)
{
    if (memory != NULL) clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, sizeof output, output, 0, NULL, NULL);
    for (int co = 0; co < C; co++)
        for (int y = 0; y < Y; y++) {
            float sum = 0;
            for (int ci = 0; ci < C; ci++)
                for (int x = 0; x < X; x++)
                    for (int k = 0; k < K; k++)
                        if (x * S + k == y) sum += data[ci * X + x] * filter[(ci * C + co) * K + (mirror ? K - 1 - k : k)];
            if (output[co * Y + y] == sum) continue;
            printf("%s, mirror=%d: output %d of channel %d is %g, not %g\n", way, mirror, y, co, output[co * Y + y], sum);
            exit(1);
        }
    memset(output, 0xff, sizeof output);
}
int main(void)
{
    tconv_device *device;
    tconv_layer *on_host, *on_queue, *in_slabs;
    struct recorder r;
    for (int i = 0; i < C * X; i++) data[i] = (float)(i * 7 % 11 - 5);
    for (int i = 0; i < C * C * K; i++) filter[i] = (float)(i * 5 % 13 - 6);
    ok(tconv_device_open(TCONV_DEVICE_DEFAULT, &device, &error) == TCONV_OK);
    cl_context context = tconv_device_context(device);
    queue = clCreateCommandQueue(context, tconv_device_id(device), 0, NULL);
    tconv_layer **layers[] = {&on_host, &on_queue, &in_slabs};
    for (int i = 0; i < 3; i++) ok(tconv_layer_create(&device, 1, TCONV_FILTER_CONSTANT, layers[i], &error) == TCONV_OK);
    cl_mem out = buffer(context, sizeof output, NULL);
    tconv_tensors host = TCONV_TENSORS_INIT, buffers = TCONV_TENSORS_INIT;
    host.data.host = data, host.filter.host = filter, host.output.host = output;
    buffers.data.memory = buffer(context, sizeof data, data);
    buffers.filter.memory = buffer(context, sizeof filter, filter);
    buffers.output.memory = out;
    tconv_run queued = TCONV_RUN_INIT, divided = TCONV_RUN_INIT;
    queued.queue = queue;
    divided.memory_limit = sizeof output;
    for (int mirror = 0; mirror < 4; mirror++) {
        tconv_problem p = TCONV_PROBLEM_INIT;
        p.data = (tconv_shape){3, {1, C, X}};
        p.filter = (tconv_shape){3, {C, C, K}};
        p.strides = (tconv_list){1, {S}};
        p.mirror = (tconv_list){1, {mirror % 2}};
        tconv_plan *plan;
        tconv_packed_filter *packed;
        tconv_tensors own = buffers;
        ok(tconv_plan_create(device, &p, NULL, &plan, &error) == TCONV_OK);
        ok(tconv_packed_filter_create(plan, NULL, &packed, &error) == TCONV_OK);
        ok(tconv_packed_filter_enqueue_pack(packed, queue, &buffers.filter, 0, NULL, NULL, &error) == TCONV_OK);
        own.filter = (tconv_tensor)TCONV_TENSOR_INIT;
        own.packed = packed;
        own.workspace.memory = buffer(context, tconv_plan_workspace_bytes(plan) + 1, NULL);
        ok(tconv_plan_enqueue(plan, queue, &own, 0, NULL, NULL, &error) == TCONV_OK);
        compare("a plan", mirror % 2, out);
        ok(tconv_layer_run(on_host, &p, NULL, &host, NULL, &error) == TCONV_OK);
        compare("a layer on arrays of the host", mirror % 2, NULL);
        ok(tconv_layer_run(on_queue, &p, NULL, &buffers, &queued, &error) == TCONV_OK);
        compare("a layer on a queue", mirror % 2, out);
        ok(tconv_layer_run(in_slabs, &p, NULL, &host, &divided, &error) == TCONV_OK);
        compare("a layer in slabs", mirror % 2, NULL);
        if (!recorder_find(tconv_device_id(device), &r)) continue;
        tconv_layer_recording *recorded;
        recording made = r.create(1, &queue, NULL, NULL);
        ok(tconv_layer_record(on_queue, &p, NULL, made, queue, &buffers, false, 0, NULL, NULL, &recorded, &error) == TCONV_OK);
        ok(r.finalize(made) == CL_SUCCESS && r.enqueue(0, NULL, made, 0, NULL, NULL) == CL_SUCCESS);
        clFinish(queue);
        compare("a recording", mirror % 2, out);
        r.release(made);
        tconv_layer_recording_release(recorded);
    }
    tconv_layer_counts counts = TCONV_LAYER_COUNTS_INIT;
    ok(tconv_layer_count(in_slabs, &counts, &error) == TCONV_OK && counts.in_slabs == 4);
    puts("every way computes with the member");
    return 0;
}
END_OF_FILE
check -D_DEFAULT_SOURCE -DCL_TARGET_OPENCL_VERSION=120 -Idevice_tests/support -o "$work/ways" "$work/ways.c" -Lbuild -ltconv_cl -lOpenCL -Wl,-rpath,"$PWD/build"
"$work/ways" || exit 1
# Python's structures, in one layer
cat >"$work/ways.py" <<'END_OF_FILE'
import ctypes, sys
sys.path.insert(0, "python/tests")
import structures
c = structures.load("python/tconv_cl")
floats = lambda *numbers: (ctypes.c_float * len(numbers))(*numbers)
data, taps, output = floats(1, 10), floats(1, 2, 3), floats(*[0] * 5)
device = c.create("tconv_device_open", -1)
layer = c.create("tconv_layer_create", ctypes.byref(ctypes.c_void_p(device)), 1, c.FILTER_WATCHED)
address = lambda array: ctypes.addressof(array)
for mirror, wanted in ((0, [1, 2, 13, 20, 30]), (1, [3, 2, 31, 20, 10])) * 2:
    one = lambda number: c.List(1, (number,))
    problem = c.Problem(operation=1, data_type=1, filter_type=1, strides=one(2), mirror=one(mirror))
    problem.data, problem.filter = c.Shape(3, (1, 1, 2)), c.Shape(3, (1, 1, 3))
    tensors = c.host_tensors(address(data), address(taps), address(output))
    c.call("tconv_layer_run", layer, ctypes.byref(problem), None, tensors, None)
    assert list(output) == wanted, (mirror, list(output))
END_OF_FILE
python3 "$work/ways.py" || exit 1

# What is left out
fails() { # TEXT COMMAND...
    text=$1
    shift
    "$@" >"$work/log" 2>&1 && { echo "$text is not found"; exit 1; }
    grep -q "$text" "$work/log" || { cat "$work/log"; exit 1; }
}
without() { # FILE TEXT COMMAND...
    file=$1
    shift
    cp "$file" "$work/kept"
    sed -i '/\bmirror\b/d' "$file"
    fails "$@"
    cp "$work/kept" "$file"
}

# A row that says nothing, or the wrong thing, about the filter
sed -i 's/P(LIST, mirror, "mirror", true, 0, 0)/P(LIST, mirror, "mirror", 0, 0)/' src/base/members.h
fails 'expected expression\|error:' check -fsyntax-only src/geometry/problem.c
sed -i 's/P(LIST, mirror, "mirror", 0, 0)/P(LIST, mirror, "mirror", false, 0, 0)/' src/base/members.h
cmake --build build --parallel "$(nproc)" --target tconv_cl >"$work/log" || { tail -30 "$work/log"; exit 1; }
fails 'a layer .*mirror=1: output' "$work/ways"
sed -i 's/P(LIST, mirror, "mirror", false, 0, 0)/P(LIST, mirror, "mirror", true, 0, 0)/' src/base/members.h
without src/base/members.h 'a member of tconv_problem has no row' check -fsyntax-only src/layer/key.c
without src/tool/option_list.h "no member named .mirror." check -fsyntax-only src/tool/cli/problem_options.c
without python/tconv_cl/_library.py 'tconv_problem .* in Python' python3 python/tests/structures.py python/tconv_cl
without python/tconv_cl/_convolution.py 'mirror is not in Options' python3 python/tests/structures.py python/tconv_cl
echo "the member is known everywhere, every way computes with it, and what is left out is found"
