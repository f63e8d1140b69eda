/* SPDX-License-Identifier: Apache-2.0 */
/* What the library exports: the factory of providers, which ONNX Runtime calls, and functions for
 * Python. */
#include "layer.h"
#include "log.h"
#include "provider.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

struct ort ort;

struct factory {
    OrtEpFactory base;
    char name[64]; /* the name under which the library was registered */
};

static const char *factory_name(const OrtEpFactory *factory)
{
    return ((const struct factory *)(const void *)factory)->name;
}

static const char *factory_vendor(const OrtEpFactory *factory)
{
    (void)factory;
    return "tconv-cl";
}

static uint32_t factory_vendor_id(const OrtEpFactory *factory)
{
    (void)factory;
    return 0; /* 0: it is not a vendor of hardware */
}

static const char *factory_version(const OrtEpFactory *factory)
{
    (void)factory;
    return TCONV_VERSION_STRING;
}

/* All tensors are in host memory: NULL is ONNX Runtime's own allocator, and nothing is
 * transferred. */
static OrtStatus *create_allocator(OrtEpFactory *factory, const OrtMemoryInfo *info,
                                   const OrtKeyValuePairs *options, OrtAllocator **out)
{
    (void)factory;
    (void)info;
    (void)options;
    *out = NULL;
    return NULL;
}

static void release_allocator(OrtEpFactory *factory, OrtAllocator *allocator)
{
    (void)factory;
    (void)allocator;
}

static OrtStatus *create_data_transfer(OrtEpFactory *factory, OrtDataTransferImpl **out)
{
    (void)factory;
    *out = NULL;
    return NULL;
}

static bool is_stream_aware(const OrtEpFactory *factory)
{
    (void)factory;
    return false;
}

/* The provider belongs to the processor, whichever OpenCL device computes, because tensors stay in
 * host memory. */
static OrtStatus *get_supported_devices(OrtEpFactory *factory,
                                        const OrtHardwareDevice *const *devices,
                                        size_t device_count, OrtEpDevice **out, size_t most,
                                        size_t *count)
{
    *count = 0;
    for (size_t i = 0; i < device_count && *count == 0 && most > 0; i++)
        if (ort.HardwareDevice_Type(devices[i]) == OrtHardwareDeviceType_CPU) {
            OrtStatus *status = ort.CreateEpDevice(factory, devices[i], NULL, NULL, &out[0]);
            if (status != NULL) return status;
            *count = 1;
        }
    return NULL;
}

/* Reads one of the provider's options; "" if it is not given. */
static tconv_status read_option(const char *provider, const OrtSessionOptions *options,
                                const char *name, char *value, size_t size, tconv_error *error)
{
    char key[96];
    int there = 0;
    size_t length = (size_t)snprintf(key, sizeof key, "ep.%s.%s", provider, name);
    for (size_t i = 0; i < length && i < sizeof key; i++)
        key[i] = (char)tolower((unsigned char)key[i]);
    value[0] = '\0';
    if (!succeeded(ort.HasSessionConfigEntry(options, key, &there), error)) return error->status;
    if (there && !succeeded(ort.GetSessionConfigEntry(options, key, value, &size), error))
        return error->status;
    return TCONV_OK;
}

/* ONNX Runtime's Conv is faster than its ConvTranspose: on two cores with AVX-512, a layer of its
 * own and a pair took the same time at 2.2 million multiply-adds of the pair's. */
enum { PAIR_FACTOR = 4 };

/* Reads the options and opens the device. If there is no device and none was asked for, the
 * provider takes no nodes. */
static tconv_status start(struct provider *provider, const OrtSessionOptions *options,
                          tconv_error *error)
{
    const char *name = provider->name;
    char fallback[16], search[16], math[16], macs[24], concat[4], fuse[4];
    provider->strict = true; /* until the option says otherwise */
    if (read_option(name, options, "fallback", fallback, sizeof fallback, error) != TCONV_OK)
        return error->status;
    if (fallback[0] != '\0' && strcmp(fallback, "warn") != 0 && strcmp(fallback, "error") != 0)
        return fail(error, TCONV_ERROR_ARGUMENT,
                    "fallback is \"%s\": it must be \"warn\" or \"error\"", fallback);
    provider->strict = strcmp(fallback, "error") == 0;
    if (read_option(name, options, "device", provider->device, sizeof provider->device, error) !=
            TCONV_OK ||
        read_option(name, options, "search", search, sizeof search, error) != TCONV_OK ||
        read_option(name, options, "math", math, sizeof math, error) != TCONV_OK ||
        read_option(name, options, "least_macs", macs, sizeof macs, error) != TCONV_OK ||
        read_option(name, options, "fuse_concat", concat, sizeof concat, error) != TCONV_OK ||
        read_option(name, options, "fuse", fuse, sizeof fuse, error) != TCONV_OK) /* unfused.c's */
        return error->status;
    provider->search = TCONV_SEARCH_DEFAULT;
    if (search[0] != '\0' && !tconv_search_from_name(search, &provider->search))
        return fail(error, TCONV_ERROR_ARGUMENT,
                    "search is \"%s\": it must be \"model\", \"records\", \"measure\" or "
                    "\"renew\"",
                    search);
    provider->math = TCONV_MATH_EXACT;
    if (math[0] != '\0' && !tconv_math_from_name(math, &provider->math))
        return fail(error, TCONV_ERROR_ARGUMENT, "math is \"%s\": it must be \"exact\" or \"fast\"",
                    math);
    provider->least_macs = strtoull(macs, NULL, 10);
    if (macs[strspn(macs, "0123456789")] != '\0')
        return fail(error, TCONV_ERROR_ARGUMENT,
                    "least_macs is \"%s\": it must be a number of multiply-adds", macs);
    provider->fuse = strcmp(fuse, "0") != 0;
    provider->fuse_concat = strcmp(concat, "0") != 0;
    if (concat[0] != '\0' && strcmp(concat, "0") != 0 && strcmp(concat, "1") != 0)
        return fail(error, TCONV_ERROR_ARGUMENT, "fuse_concat is \"%s\": it must be \"0\" or \"1\"",
                    concat);
    provider->least_pair_macs = provider->least_macs;
    const tconv_status status = device_open(provider->device, &provider->opened, error);
    if (macs[0] == '\0' && !provider->strict) {
        provider->least_macs = tconv_device_least_macs(provider->opened);
        provider->least_pair_macs = PAIR_FACTOR * provider->least_macs;
    }
    if (status == TCONV_OK || provider->strict || provider->device[0] != '\0' ||
        tconv_status_is_request(status))
        return status;
    log_warning(provider->logger, "tconv_cl: other providers, ONNX Runtime's own, compute all: %s",
                error->message);
    return TCONV_OK;
}

static OrtStatus *create_provider(OrtEpFactory *factory, const OrtHardwareDevice *const *devices,
                                  const OrtKeyValuePairs *const *metadata, size_t device_count,
                                  const OrtSessionOptions *options, const OrtLogger *logger,
                                  OrtEp **out)
{
    (void)devices;
    (void)metadata;
    (void)device_count;
    struct provider *provider = calloc(1, sizeof *provider);
    if (provider == NULL) return ort.CreateStatus(ORT_EP_FAIL, "tconv_cl: there is no memory");
    provider->base = provider_functions;
    provider->name = ((const struct factory *)(void *)factory)->name;
    provider->logger = logger;
    /* If a provider fails here, ONNX Runtime's Python makes the session again without it, but not
     * if compile fails. So with `strict`, compile returns the error. */
    if (start(provider, options, &provider->refusal) != TCONV_OK && !provider->strict) {
        char line[1200];
        snprintf(line, sizeof line, "tconv_cl: %s", provider->refusal.message);
        free(provider);
        return ort.CreateStatus(ORT_INVALID_ARGUMENT, line);
    }
    *out = &provider->base;
    return NULL;
}

static void release_provider(OrtEpFactory *factory, OrtEp *ep)
{
    (void)factory;
    free(ep);
}

static bool ort_load(const OrtApiBase *base)
{
    const OrtApi *api = base->GetApi(ORT_VERSION);
    if (api == NULL) return false;
    struct ort loaded;
#define LOAD(place, result, name, arguments)                                                       \
    memcpy(&loaded.name, (const unsigned char *)table + (place) * sizeof(void *),                  \
           sizeof loaded.name);
    const void *table = api;
    ORT_API_ENTRIES(LOAD)
    table = loaded.GetEpApi();
    ORT_EP_API_ENTRIES(LOAD)
#undef LOAD
    /* Sessions may run while the library is registered again. */
    if (memcmp(&ort, &loaded, sizeof ort) != 0) ort = loaded;
    return true;
}

EXPORT OrtStatus *CreateEpFactories(const char *name, const OrtApiBase *base,
                                    const OrtLogger *logger, OrtEpFactory **out, size_t most,
                                    size_t *count);
EXPORT OrtStatus *ReleaseEpFactory(OrtEpFactory *factory);
EXPORT tconv_status tconv_cl_onnxruntime_open(const char *device, tconv_error *error);
EXPORT tconv_status tconv_cl_onnxruntime_trace(uint32_t kinds, tconv_trace_callback callback,
                                               void *context, tconv_error *error);
EXPORT const char *tconv_cl_onnxruntime_device_name(const tconv_device *device);
EXPORT void tconv_cl_onnxruntime_statistics(uint64_t *out, size_t count);

EXPORT OrtStatus *CreateEpFactories(const char *name, const OrtApiBase *base,
                                    const OrtLogger *logger, OrtEpFactory **out, size_t most,
                                    size_t *count)
{
    (void)logger;
    *count = 0;
    if (!ort_load(base)) { /* no function can report the error yet */
        fprintf(stderr, "tconv_cl: ONNX Runtime is %s: it must be 1.24 or later\n",
                base->GetVersionString());
        return NULL;
    }
    tconv_threads_enable();
    struct factory *factory = calloc(1, sizeof *factory);
    if (factory == NULL || most < 1 || strlen(name) >= sizeof factory->name) {
        free(factory);
        return ort.CreateStatus(ORT_EP_FAIL, "tconv_cl: no memory, or too long a name");
    }
    strcpy(factory->name, name);
    factory->base.ort_version_supported = ORT_VERSION;
    factory->base.GetName = factory_name;
    factory->base.GetVendor = factory_vendor;
    factory->base.GetVendorId = factory_vendor_id;
    factory->base.GetVersion = factory_version;
    factory->base.GetSupportedDevices = get_supported_devices;
    factory->base.CreateEp = create_provider;
    factory->base.ReleaseEp = release_provider;
    factory->base.CreateAllocator = create_allocator;
    factory->base.ReleaseAllocator = release_allocator;
    factory->base.CreateDataTransfer = create_data_transfer;
    factory->base.IsStreamAware = is_stream_aware;
    out[0] = &factory->base;
    *count = 1;
    return NULL;
}

EXPORT OrtStatus *ReleaseEpFactory(OrtEpFactory *factory)
{
    free(factory);
    return NULL;
}

/* Opens a device as a session with the option `device` does, which also reads the environment. For
 * callers who want its error before they make a session. */
EXPORT tconv_status tconv_cl_onnxruntime_open(const char *device, tconv_error *error)
{
    tconv_device *opened;
    return device_open(device, &opened, error);
}

/* tconv_device_set_trace for all devices that sessions have opened and will open. Meanwhile
 * ONNX Runtime's log gets no plans; with NULL it does again. One thread at a time, and not from a
 * callback. */
EXPORT tconv_status tconv_cl_onnxruntime_trace(uint32_t kinds, tconv_trace_callback callback,
                                               void *context, tconv_error *error)
{
    return device_trace(kinds, callback, context, error);
}

/* The name of an event's device. */
EXPORT const char *tconv_cl_onnxruntime_device_name(const tconv_device *device)
{
    return tconv_device_properties(device)->name;
}

/* Writes the first `count` of these counts: layers computed, those of them in slabs, plans made,
 * filters packed. */
EXPORT void tconv_cl_onnxruntime_statistics(uint64_t *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = i < LAYER_COUNTS ? layer_statistics((enum layer_count)i) : 0;
}
