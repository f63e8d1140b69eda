/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the properties of a device. A property that a device does not answer keeps the value that
 * assumes least. */
#include "device/describe.h"

#include "base/architectures.h"
#include "base/cancel.h"
#include "base/error.h"
#include "base/matrix_units.h"
#include "base/process.h"
#include "base/struct_size.h"
#include "device/environment.h"
#include "device/recognise.h"

#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void read_text(cl_device_id device, cl_device_info what, char *text, size_t size)
{
    size_t needed = 0;
    text[0] = '\0';
    if (clGetDeviceInfo(device, what, 0, NULL, &needed) != CL_SUCCESS || needed == 0) return;
    char *whole = malloc(needed + 1);
    if (whole != NULL && clGetDeviceInfo(device, what, needed, whole, NULL) == CL_SUCCESS) {
        whole[needed] = '\0';
        snprintf(text, size, "%s", whole + strspn(whole, " "));
    }
    free(whole);
}

bool tconv_device_has_extension(cl_device_id device, const char *name)
{
    size_t needed = 0;
    if (clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, 0, NULL, &needed) != CL_SUCCESS ||
        needed == 0)
        return false;
    char few[4096]; /* so that a device has its extensions where memory is short, too */
    char *all = needed < sizeof few ? few : malloc(needed + 1);
    bool found = false;
    if (all != NULL &&
        clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, needed, all, NULL) == CL_SUCCESS) {
        all[needed] = '\0';
        const size_t length = strlen(name);
        for (const char *at = strstr(all, name); at != NULL && !found; at = strstr(at + 1, name))
            found = (at == all || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0');
    }
    if (all != few) free(all);
    return found;
}

uint32_t tconv_device_version(cl_device_id device, uint32_t list, const char *name)
{
    struct row { /* cl_name_version */
        cl_uint version;
        char name[64];
    } few[64], *all = few; /* so that a device has its versions where memory is short, too */
    size_t size = 0;
    uint32_t version = 0;
    if (clGetDeviceInfo(device, list, 0, NULL, &size) != CL_SUCCESS ||
        (size > sizeof few && (all = malloc(size)) == NULL))
        return 0;
    if (clGetDeviceInfo(device, list, size, all, NULL) == CL_SUCCESS)
        for (size_t i = 0; i < size / sizeof *all; i++)
            if (strncmp(all[i].name, name, sizeof all[i].name) == 0) version = all[i].version;
    if (all != few) free(all);
    return version;
}

/* Since OpenCL 3.1 every device has them, by name of the language's feature only. */
static bool has_dot_products(cl_device_id device)
{
    enum { C_FEATURES = 0x106F }; /* CL_DEVICE_OPENCL_C_FEATURES, which OpenCL 1.2 does not name */
    return tconv_device_has_extension(device, "cl_khr_integer_dot_product") ||
           tconv_device_version(device, C_FEATURES,
                                "__opencl_c_integer_dot_product_input_4x8bit_packed") > 0;
}

static uint64_t read_number(cl_device_id device, cl_device_info what, size_t size)
{
    union {
        cl_uint narrow;
        cl_ulong wide;
        size_t machine;
    } value = {.wide = 0};
    if (clGetDeviceInfo(device, what, size, &value, NULL) != CL_SUCCESS) return 0;
    return size == sizeof value.narrow ? value.narrow : value.wide;
}

/* CL_DEVICE_SUB_GROUP_SIZES_INTEL, which OpenCL's own headers do not name. */
static uint32_t read_subgroup_least(cl_device_id device)
{
    size_t sizes[16], least = 0, size = 0;
    if (!tconv_device_has_extension(device, "cl_intel_required_subgroup_size") ||
        clGetDeviceInfo(device, 0x4108, sizeof sizes, sizes, &size) != CL_SUCCESS)
        return 0;
    for (size_t i = 0; i < size / sizeof *sizes; i++)
        if (least == 0 || sizes[i] < least) least = sizes[i];
    return (uint32_t)least;
}

/* True if a CPU device computes in this process, with a compiler that takes the processor's
 * assembly: PoCL's drivers for CPUs. PoCL's devices on other machines have the same names, but do
 * not share memory with the host. */
static bool computes_here(cl_device_id device, const tconv_device_info *d)
{
    cl_bool shared = CL_FALSE;
    clGetDeviceInfo(device, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof shared, &shared, NULL);
    static const char *const drivers[] = {"pthread", "basic", "cpu"};
    bool here = false;
    for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++)
        here = here || strncmp(d->name, drivers[i], strlen(drivers[i])) == 0;
    return here && shared == CL_TRUE && d->kind == TCONV_DEVICE_CPU &&
           strcmp(d->platform, TCONV_POCL) == 0 && tconv_takes_assembly(d);
}

/* A row of base/matrix_units.h. */
struct unit_row {
    tconv_matrix_unit unit;
    tconv_architecture family;
    const char *extension, *devices;
    uint64_t least, most;
};

/* Of NVIDIA's devices, as 10 * major + minor. CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV and _MINOR_NV
 * of cl_nv_device_attribute_query, which OpenCL's own headers do not name. */
static uint64_t read_capability(cl_device_id device)
{
    return 10 * read_number(device, 0x4000, sizeof(cl_uint)) +
           read_number(device, 0x4001, sizeof(cl_uint));
}

static bool has_unit(cl_device_id device, const tconv_device_info *d, const struct unit_row *row)
{
    if (d->architecture != row->family ||
        (row->extension[0] != '\0' && !tconv_device_has_extension(device, row->extension)))
        return false;
    const uint64_t capability = row->least > 0 ? read_capability(device) : 0;
    if (capability < row->least || (row->most > 0 && capability > row->most)) return false;
    return row->devices[0] == '\0' || tconv_begins(d->name, row->devices);
}

/* The unit that kernels of this library can use, if it passes its probe (plan/unit.h). */
static tconv_matrix_unit matrix_unit_of(cl_device_id device, const tconv_device_info *d,
                                        enum tconv_matrix_use use)
{
#define ROW(unit, name, family, extension, devices, least, most)                                   \
    {TCONV_MATRIX_##unit, TCONV_ARCHITECTURE_##family, extension, devices, least, most},
    static const struct unit_row rows[] = {MATRIX_UNITS(ROW)};
#undef ROW
    if (use == TCONV_USE_OFF) return TCONV_MATRIX_NONE;
    if (d->kind == TCONV_DEVICE_CPU) {
        const struct tconv_processor processor = tconv_processor_read();
        const tconv_matrix_unit unit = computes_here(device, d) ? tconv_processor_unit(&processor)
                                                                : TCONV_MATRIX_NONE;
        return unit == TCONV_MATRIX_NONE && use == TCONV_USE_TRY ? TCONV_MATRIX_PLAIN_QUADS : unit;
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (has_unit(device, d, &rows[i])) return rows[i].unit;
    return TCONV_MATRIX_NONE;
}

/* True for Intel's GPUs whose threads have 256 registers if a kernel asks for them. They are those
 * of version 12.50 and later. All that have the matrix unit are among them. */
static bool is_intel_xe_hp(cl_device_id device)
{
    if (tconv_device_has_extension(device, "cl_intel_subgroup_matrix_multiply_accumulate"))
        return true;
    if (!tconv_device_has_extension(device, "cl_intel_device_attribute_query")) return false;
    /* CL_DEVICE_IP_VERSION_INTEL, which OpenCL's own headers do not name: the highest 10 bits are
     * the version's first number, the next 8 bits its second one. */
    const uint64_t version = read_number(device, 0x4250, sizeof(cl_uint)), first = version >> 22,
                   second = version >> 14 & 0xff;
    return first > 12 || (first == 12 && second >= 50);
}

static tconv_architecture architecture_of(cl_device_id device, const tconv_device_info *d)
{
    if (d->kind != TCONV_DEVICE_GPU) return TCONV_ARCHITECTURE_OTHER;
    const struct tconv_gpu_facts facts = {
        .name = d->name,
        .vendor = d->vendor,
        .nvidia = tconv_device_has_extension(device, "cl_nv_device_attribute_query"),
        .intel_xe_hp = is_intel_xe_hp(device)};
    return tconv_gpu_architecture(&facts);
}

/* rusticl says CL_GLOBAL of every device. Of its GPUs only some families emulate local memory. */
static bool has_own_local_memory(cl_device_id device, const tconv_device_info *d)
{
    cl_device_local_mem_type type = CL_GLOBAL;
    clGetDeviceInfo(device, CL_DEVICE_LOCAL_MEM_TYPE, sizeof type, &type, NULL);
    const bool unknown = strcmp(d->platform, "rusticl") == 0 && d->kind == TCONV_DEVICE_GPU;
    return type == CL_LOCAL || (unknown && !tconv_has_trait(d->architecture, TCONV_TRAIT_EMULATES));
}

static tconv_device_kind kind_of(cl_device_type type)
{
    if ((type & CL_DEVICE_TYPE_GPU) != 0) return TCONV_DEVICE_GPU;
    if ((type & CL_DEVICE_TYPE_ACCELERATOR) != 0) return TCONV_DEVICE_ACCELERATOR;
    if ((type & CL_DEVICE_TYPE_CPU) != 0) return TCONV_DEVICE_CPU;
    return TCONV_DEVICE_OTHER;
}

tconv_status tconv_device_check_integers(cl_device_id device, const tconv_device_info *info,
                                         tconv_error *error)
{
    char profile[32];
    read_text(device, CL_DEVICE_PROFILE, profile, sizeof profile);
    if (strcmp(profile, "EMBEDDED_PROFILE") == 0 &&
        !tconv_device_has_extension(device, "cles_khr_int64"))
        return tconv_fail(error, TCONV_ERROR_DEVICE,
                          "%s has OpenCL's embedded profile without cles_khr_int64, but kernels "
                          "need 64-bit integers: take another device",
                          info->name);
    if (info->architecture == TCONV_ARCHITECTURE_VIDEOCORE &&
        strcmp(info->platform, "rusticl") == 0)
        return tconv_fail(error, TCONV_ERROR_DEVICE,
                          "%s: Mesa's compiler for VideoCore ends the process at 64-bit integers, "
                          "which kernels need: take another device, such as PoCL's on the CPU",
                          info->name);
    return TCONV_OK;
}

tconv_status tconv_device_describe(cl_device_id device, tconv_device_info *info, tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    if (device == NULL || info == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                          device == NULL ? "device" : "info");
    enum tconv_matrix_use use;
    tconv_status status = tconv_struct_check(TCONV_SIZED_DEVICE_INFO, info, error);
    if (status == TCONV_OK) status = tconv_environment_matrix(&use, error);
    if (status == TCONV_OK) status = tconv_process_enter(error);
    if (status != TCONV_OK) return status;
    cl_device_type type = 0;
    const cl_int code = clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, NULL);
    if (code != CL_SUCCESS)
        return tconv_fail_opencl(error, code, "clGetDeviceInfo", "reading the type of a device");

    tconv_device_info d = {.struct_size = sizeof d, .kind = kind_of(type)};
    read_text(device, CL_DEVICE_NAME, d.name, sizeof d.name);
    read_text(device, CL_DEVICE_VENDOR, d.vendor, sizeof d.vendor);
    read_text(device, CL_DRIVER_VERSION, d.driver, sizeof d.driver);
    read_text(device, CL_DEVICE_VERSION, d.version, sizeof d.version);
    cl_platform_id platform = NULL;
    if (clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL) == CL_SUCCESS)
        clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof d.platform, d.platform, NULL);
    d.platform[sizeof d.platform - 1] = '\0';

    d.compute_units = tconv_gpu_compute_units(
        d.name, (uint32_t)read_number(device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(cl_uint)));
    d.vector_width =
        (uint32_t)read_number(device, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, sizeof(cl_uint));
    d.work_group_limit = read_number(device, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(size_t));
    d.local_memory = read_number(device, CL_DEVICE_LOCAL_MEM_SIZE, sizeof(cl_ulong));
    d.global_memory = read_number(device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(cl_ulong));
    d.allocation_limit = read_number(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(cl_ulong));
    size_t limits[16] = {0}; /* a device has at least three dimensions */
    if (clGetDeviceInfo(device, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof limits, limits, NULL) ==
        CL_SUCCESS)
        for (int i = 0; i < 3; i++) d.work_item_limit[i] = limits[i];
    cl_device_fp_config single = 0, twice = 0;
    clGetDeviceInfo(device, CL_DEVICE_SINGLE_FP_CONFIG, sizeof single, &single, NULL);
    d.fma = (single & CL_FP_FMA) != 0;
    clGetDeviceInfo(device, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof twice, &twice, NULL);
    d.double_arithmetic = twice != 0;
    d.half_arithmetic = tconv_device_has_extension(device, "cl_khr_fp16");
    cl_uint most_subgroups =
        0; /* CL_DEVICE_MAX_NUM_SUB_GROUPS of OpenCL 2.1, which 1.2 does not name */
    clGetDeviceInfo(device, 0x105C, sizeof most_subgroups, &most_subgroups, NULL);
    d.subgroups = tconv_device_has_extension(device, "cl_khr_subgroups") || most_subgroups > 0;
    d.integer_dot_product = has_dot_products(device);
    d.subgroup_least = read_subgroup_least(device);
    d.clock_mhz = (uint32_t)read_number(device, CL_DEVICE_MAX_CLOCK_FREQUENCY, sizeof(cl_uint));
    d.cache_bytes = read_number(device, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE, sizeof(cl_ulong));
    const uint64_t constant_kib =
        read_number(device, CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE, sizeof(cl_ulong)) >> 10;
    d.constant_kib = constant_kib < UINT32_MAX ? (uint32_t)constant_kib : UINT32_MAX;
    if (read_number(device, CL_DEVICE_IMAGE_SUPPORT, sizeof(cl_bool)) != 0)
        d.image_pixels = read_number(device, CL_DEVICE_IMAGE_MAX_BUFFER_SIZE, sizeof(size_t));
    d.architecture = architecture_of(device, &d);
    d.matrix_unit = matrix_unit_of(device, &d, use);
    d.dedicated_local = has_own_local_memory(device, &d);

    /* If a device does not answer, assume one work-item at a time, and buffers of the size that
     * OpenCL 1.2 guarantees. */
    if (d.allocation_limit == 0) d.allocation_limit = UINT64_C(128) << 20;
    /* A 32-bit process cannot use larger buffers, even if the device has them. */
    if (d.allocation_limit > PTRDIFF_MAX) d.allocation_limit = PTRDIFF_MAX;
    if (d.compute_units == 0) d.compute_units = 1;
    if (d.vector_width == 0) d.vector_width = 1;
    if (d.work_group_limit == 0) d.work_group_limit = 1;
    for (int i = 0; i < 3; i++)
        if (d.work_item_limit[i] == 0) d.work_item_limit[i] = 1;
    tconv_struct_write(TCONV_SIZED_DEVICE_INFO, &d, info);
    return TCONV_OK;
}
