// SPDX-License-Identifier: Apache-2.0
// The interface of the shared library: a device of ggml's that takes whole graphs. Convolutions,
// with what follows them, are computed by the library; ggml's own backend for the processor
// computes the rest, in the same memory.
#include "claim.hpp"
#include "counts.hpp"
#include "device.hpp"
#include "layers.hpp"
#include "match.hpp"
#include "version.hpp"

#include <atomic>
#include <cstring>
#include <new>

namespace tconv_ggml
{

// ---- counts

static struct {
    std::atomic<uint64_t> jobs, operators, left;
} counted;

static void counts(struct tconv_ggml_counts *out)
{
    *out = {counted.jobs, counted.operators, counted.left};
}

// ---- a backend: ggml gives it to one thread at a time

struct Backend {
    ggml_backend_t processor; // ggml's own
    uint64_t threads = 0;     // the program's choice; 0: none
    Layers layers;
};

static Backend &state_of(ggml_backend_t backend)
{
    return *static_cast<Backend *>(backend->context);
}

static const char *backend_name(ggml_backend_t)
{
    return "TCONV";
}

static void backend_free(ggml_backend_t backend)
{
    const Backend *state = &state_of(backend);
    ggml_backend_free(state->processor);
    delete state;
    delete backend;
}

// How many of nodes [begin, end) compute something.
static uint64_t operators_of(const ggml_cgraph *graph, int begin, int end)
{
    uint64_t operators = 0;
    for (int i = begin; i < end; i++) operators += !is_idle(graph->nodes[i]);
    return operators;
}

// Computes nodes [begin, end) by ggml's own backend.
static ggml_status compute_others(Backend &state, ggml_cgraph *graph, int begin, int end)
{
    const uint64_t operators = operators_of(graph, begin, end);
    if (operators == 0) return GGML_STATUS_SUCCESS;
    counted.left += operators;
    ggml_cgraph part = ggml_graph_view(graph, begin, end);
    return ggml_backend_graph_compute(state.processor, &part);
}

static bool overlap(const ggml_tensor *output, const ggml_tensor *input)
{
    if (input == nullptr) return false;
    const auto *a = static_cast<const char *>(output->data);
    const auto *b = static_cast<const char *>(input->data);
    return a < b + ggml_nbytes(input) && b < a + ggml_nbytes(output);
}

// What to do where the library could not: ggml computes it, unless its inputs may be lost.
static ggml_status fall_back(Backend &state, ggml_cgraph *graph, int begin, const Job &job,
                             tconv_status status, const tconv_error &error)
{
    if (overlap(job.output, job.data) || overlap(job.output, job.residual)) {
        GGML_LOG_ERROR("tconv: %s \"%s\": %s\n", job.fused.c_str(), job.output->name,
                       error.message);
        return status == TCONV_ERROR_HOST_MEMORY || status == TCONV_ERROR_DEVICE_MEMORY
                   ? GGML_STATUS_ALLOC_FAILED
                   : GGML_STATUS_FAILED;
    }
    tconv_device_trace_fallback(settings().device, "ggml", job.output->name, error.message);
    return compute_others(state, graph, begin, job.end);
}

static ggml_status compute(Backend &state, ggml_cgraph *graph, int begin, const Job &job)
{
    tconv_error error;
    const tconv_status status = state.layers.run(job, state.threads, error);
    if (status != TCONV_OK) return fall_back(state, graph, begin, job, status, error);
    counted.operators += operators_of(graph, begin, job.end);
    counted.jobs++;
    if (settings().traces)
        GGML_LOG_INFO("tconv: computes \"%s\": %s\n", job.output->name, job.fused.c_str());
    return GGML_STATUS_SUCCESS;
}

static ggml_status compute_graph(Backend &state, ggml_cgraph *graph)
{
    int left = 0; // the first node that is not computed yet
    for (int i = 0; i < graph->n_nodes;) {
        Job job;
        if (is_idle(graph->nodes[i]) || !find_job(graph, i, settings().least_macs, job)) {
            i++;
            continue;
        }
        ggml_status status = compute_others(state, graph, left, i);
        if (status == GGML_STATUS_SUCCESS) status = compute(state, graph, i, job);
        if (status != GGML_STATUS_SUCCESS) return status;
        left = i = job.end;
    }
    return compute_others(state, graph, left, graph->n_nodes);
}

static ggml_status backend_compute(ggml_backend_t backend, ggml_cgraph *graph)
{
    try {
        return compute_graph(state_of(backend), graph);
    } catch (const std::bad_alloc &) {
        return GGML_STATUS_ALLOC_FAILED;
    }
}

// ---- the device

static ggml_backend_dev_t processor()
{
    return ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
}

static ggml_backend_t device_init(ggml_backend_dev_t device, const char *)
{
    static ggml_guid guid = {0x54, 0x43, 0x4f, 0x4e, 0x56, 0x2d, 0x43, 0x4c,
                             0x91, 0x2b, 0x4d, 0x6a, 0xaa, 0x10, 0x67, 0x02};
    const ggml_backend_dev_t own = processor();
    const ggml_backend_t others = own == nullptr ? nullptr : ggml_backend_dev_init(own, nullptr);
    if (others == nullptr) {
        GGML_LOG_ERROR("tconv: ggml has no backend for the processor, which computes what is no "
                       "convolution\n");
        return nullptr;
    }
    ggml_backend_i functions = {};
    functions.get_name = backend_name;
    functions.free = backend_free;
    functions.graph_compute = backend_compute;
    auto *state = new (std::nothrow) Backend{others, 0, {}};
    auto *backend = new (std::nothrow) ggml_backend{&guid, functions, device, state};
    if (state != nullptr && backend != nullptr) return backend;
    delete state;
    delete backend;
    ggml_backend_free(others);
    return nullptr;
}

static const char *device_name(ggml_backend_dev_t)
{
    return "TCONV";
}

static const char *device_description(ggml_backend_dev_t)
{
    return tconv_device_properties(settings().device)->name;
}

// None of its own: tensors lie in the program's memory.
static void device_memory(ggml_backend_dev_t, size_t *free, size_t *total)
{
    *free = *total = 0;
}

static enum ggml_backend_dev_type device_type(ggml_backend_dev_t)
{
    return settings().type;
}

static void device_properties(ggml_backend_dev_t device, ggml_backend_dev_props *properties)
{
    properties->name = device_name(device);
    properties->description = device_description(device);
    properties->type = device_type(device);
    device_memory(device, &properties->memory_free, &properties->memory_total);
    properties->caps = {};
    properties->caps.buffer_from_host_ptr = true;
}

// The processor's, so that a scheduler copies nothing between the two.
static ggml_backend_buffer_type_t device_buffer_type(ggml_backend_dev_t)
{
    return ggml_backend_cpu_buffer_type();
}

static ggml_backend_buffer_t device_buffer_from(ggml_backend_dev_t, void *memory, size_t size,
                                                size_t)
{
    return ggml_backend_cpu_buffer_from_ptr(memory, size);
}

static bool device_supports(ggml_backend_dev_t, const ggml_tensor *op)
{
    const ggml_backend_dev_t own = processor();
    return is_claimed(op) && own != nullptr && ggml_backend_dev_supports_op(own, op);
}

static bool device_supports_buffer(ggml_backend_dev_t, ggml_backend_buffer_type_t type)
{
    return ggml_backend_buft_is_host(type);
}

// ---- the registry

static const char *registry_name(ggml_backend_reg_t)
{
    return "TCONV";
}

static size_t registry_count(ggml_backend_reg_t)
{
    return 1;
}

static ggml_backend_dev_t registry_device(ggml_backend_reg_t registry, size_t)
{
    static ggml_backend_device device = [registry] {
        ggml_backend_device_i functions = {};
        functions.get_name = device_name;
        functions.get_description = device_description;
        functions.get_memory = device_memory;
        functions.get_type = device_type;
        functions.get_props = device_properties;
        functions.init_backend = device_init;
        functions.get_buffer_type = device_buffer_type;
        functions.buffer_from_host_ptr = device_buffer_from;
        functions.supports_op = device_supports;
        functions.supports_buft = device_supports_buffer;
        return ggml_backend_device{functions, registry, nullptr};
    }();
    return &device;
}

template <typename Function> static Function processor_function(const char *name)
{
    const ggml_backend_dev_t own = processor();
    void *found = own == nullptr
                      ? nullptr
                      : ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(own), name);
    return reinterpret_cast<Function>(found);
}

static void set_threads(ggml_backend_t backend, int count)
{
    Backend &state = state_of(backend);
    state.threads = count > 0 ? static_cast<uint64_t>(count) : 0;
    const auto set = processor_function<ggml_backend_set_n_threads_t>("ggml_backend_set_n_threads");
    if (set != nullptr) set(state.processor, count);
}

static void set_abort_callback(ggml_backend_t backend, ggml_abort_callback callback, void *context)
{
    const auto set =
        processor_function<ggml_backend_set_abort_callback_t>("ggml_backend_set_abort_callback");
    if (set != nullptr) set(state_of(backend).processor, callback, context);
}

static void *registry_function(ggml_backend_reg_t, const char *name)
{
    if (std::strcmp(name, "ggml_backend_set_n_threads") == 0)
        return reinterpret_cast<void *>(set_threads);
    if (std::strcmp(name, "ggml_backend_set_abort_callback") == 0)
        return reinterpret_cast<void *>(set_abort_callback);
    if (std::strcmp(name, "tconv_ggml_counts") == 0) return reinterpret_cast<void *>(counts);
    return nullptr;
}

static ggml_backend_reg_t registry(const void *caller)
{
    std::string wrong = unfit(caller);
    if (wrong.empty()) wrong = make_settings();
    if (!wrong.empty()) {
        GGML_LOG_ERROR("tconv: %s\n", wrong.c_str());
        return nullptr;
    }
    static ggml_backend_reg registry = {
        GGML_BACKEND_API_VERSION,
        {registry_name, registry_count, registry_device, registry_function},
        nullptr};
    return &registry;
}

} // namespace tconv_ggml

// What ggml calls when it has loaded the library. Null: it is not used.
extern "C" __attribute__((visibility("default"))) ggml_backend_reg_t ggml_backend_init(void)
{
    return tconv_ggml::registry(__builtin_return_address(0));
}
