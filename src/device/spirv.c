/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the module of a program by a hash in its file's name, and builds it. In front of the module
 * the file has 8 bytes, the lowest first: the same hash, continued over the module. So drivers
 * never see a damaged module, or one of another program: Intel's CPU runtime 2026.2 ends the
 * process if half of a module is missing. scripts/spirv.py computes the same hashes. */
#include "device/spirv.h"

#include "base/error.h"
#include "base/file.h"
#include "base/os.h"
#include "device/recognise.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAGIC = 0x07230203, HEADER = 5 * sizeof(uint32_t), HASH = sizeof(uint64_t) };

/* FNV-1a. */
static uint64_t hash_more(uint64_t hash, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* What a program depends on besides its source and options: the width of pointers, and whether
 * Mesa's form of the kernels is meant (cl/common/types.clh). NULL if it cannot be found out. */
static const char *target_of(const tconv_device *device)
{
    cl_uint bits = 0;
    clGetDeviceInfo(device->id, CL_DEVICE_ADDRESS_BITS, sizeof bits, &bits, NULL);
    const bool mesa = strcmp(device->info.platform, "rusticl") == 0;
    if (bits == 64) return mesa ? "mesa64" : "spir64";
    if (bits == 32) return mesa ? "mesa32" : "spir32";
    return NULL;
}

/* What a module was compiled from, as a number. */
static uint64_t hash_of(const char *target, const char *name, const char *options,
                        const struct tconv_kernel_source *source)
{
    const char *const head[] = {target, "\n", name, "\n", options, "\n"};
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        hash = hash_more(hash, head[i], strlen(head[i]));
    for (int i = 0; i < source->pieces; i++)
        hash = hash_more(hash, source->piece[i], source->length[i]);
    return hash;
}

/* The options for the compiler behind SPIR-V: macros and the language are the front end's. */
static void drop_front_end(char *out, const char *options)
{
    for (size_t length; *(options += strspn(options, " ")) != '\0'; options += length) {
        length = strcspn(options, " ");
        if (strncmp(options, "-D", 2) == 0 || strncmp(options, "-cl-std=", 8) == 0) continue;
        memcpy(out, options, length);
        out += length;
        *out++ = ' ';
    }
    *out = '\0';
}

/* True for the module that was compiled from what has this hash, undamaged. */
static bool is_whole(const unsigned char *file, size_t size, uint64_t hash)
{
    if (file == NULL || size < HASH + HEADER || (size - HASH) % sizeof(uint32_t) != 0) return false;
    uint64_t told = 0;
    for (int i = 0; i < HASH; i++) told |= (uint64_t)file[i] << 8 * i;
    return told == hash_more(hash, (const char *)file + HASH, size - HASH);
}

/* Builds a module. NULL with an error. */
static cl_program build(const tconv_device *device, const char *path, const unsigned char *module,
                        size_t size, const char *options, tconv_error *error)
{
    const struct tconv_extensions *e = &device->extensions;
    uint32_t head[2];
    memcpy(head, module, sizeof head);
    if (head[0] != MAGIC || head[1] > e->spirv) {
        tconv_fail(error, TCONV_ERROR_BUILD, "%s is not a SPIR-V module of version %u.%u or older",
                   path, (unsigned)(e->spirv >> 16), (unsigned)(e->spirv >> 8 & 0xff));
        return NULL;
    }
    char *own = malloc(strlen(options) + 2);
    if (own == NULL) {
        tconv_fail_memory(error, strlen(options) + 2, "building a module of SPIR-V");
        return NULL;
    }
    drop_front_end(own, options);
    cl_int code;
    const char *call = "clCreateProgramWithIL";
    cl_program program = e->create_from_il(device->context, module, size, &code);
    if (code == CL_SUCCESS) {
        call = "clBuildProgram";
        code = clBuildProgram(program, 1, &device->id, own, NULL, NULL);
        if (code != CL_SUCCESS) clReleaseProgram(program);
    }
    free(own);
    if (code == CL_SUCCESS) return program;
    tconv_fail_opencl(error, code, call, "building %s for %s", path, device->info.name);
    return NULL;
}

cl_program tconv_spirv_program(const tconv_device *device, const char *name, const char *options,
                               const struct tconv_kernel_source *source, tconv_error *error)
{
    char path[TCONV_OS_PATH + TCONV_FILE_NAME + 32];
    *error = (tconv_error){.status = TCONV_OK};
    if (device->spirv_dir == NULL || device->extensions.spirv == 0) return NULL;
    const char *target = target_of(device);
    if (target == NULL) return NULL;
    const uint64_t hash = hash_of(target, name, options, source);
    const char *slash = strrchr(name, '/'), *stem = slash == NULL ? name : slash + 1;
    snprintf(path, sizeof path, "%s/%.*s.%016" PRIx64 ".module", device->spirv_dir,
             (int)strcspn(stem, "."), stem, hash); /* of gpu/tiled.cl: tiled.HASH.module */
    FILE *file = tconv_os_fopen(path, "rb");
    if (file == NULL) return NULL;
    size_t size = 0;
    unsigned char *bytes = (unsigned char *)tconv_file_read(file, 0, &size);
    fclose(file);
    cl_program program = NULL;
    if (is_whole(bytes, size, hash))
        program = build(device, path, bytes + HASH, size - HASH, options, error);
    else
        tconv_fail(error, TCONV_ERROR_BUILD,
                   "%s is damaged, or the module of another program: compile it again", path);
    free(bytes);
    return program;
}
