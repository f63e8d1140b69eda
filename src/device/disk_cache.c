/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps programs beyond the process: writes them as records into a folder or a blob, and reads them
 * back. */
#include "base/cancel.h"
#include "base/error.h"
#include "base/os.h"
#include "base/process.h"
#include "cache/folder.h"
#include "device/device_internal.h"
#include "device/environment.h"
#include "device/processor.h"
#include "tconv_cl/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool tconv_compiles_late(const tconv_device *device)
{
    return strcmp(device->info.platform, TCONV_POCL) == 0;
}

tconv_status tconv_device_start_cache(tconv_device *device, tconv_error *error)
{
    bool named;
    const tconv_status status =
        tconv_environment_cache(&device->cache, &device->cache_limit, &named, error);
    if (status != TCONV_OK) return status;
    device->identity = tconv_identity_of(device);
    device->programs_on_disk = named || !tconv_compiles_late(device);
    if (device->identity != NULL) return TCONV_OK;
    free(device->cache);
    device->cache = NULL;
    return TCONV_OK;
}

tconv_status tconv_device_set_cache(tconv_device *device, const char *folder, uint64_t limit,
                                    tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    if (device == NULL || (folder != NULL && folder[0] == '\0'))
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s",
                          device == NULL ? "device is NULL" : "folder is empty: NULL means none");
    char *own = folder == NULL || device->identity == NULL ? NULL : strdup(folder);
    if (folder != NULL && device->identity != NULL && own == NULL)
        return tconv_fail_memory(error, strlen(folder) + 1, "keeping the name of a folder");
    free(device->cache);
    device->cache = own;
    device->programs_on_disk = true;
    free(device->machine);
    device->machine = NULL;
    device->machine_known = false;
    device->cache_limit = limit == 0 ? TCONV_CACHE_LIMIT : limit;
    return TCONV_OK;
}

const char *tconv_device_cache(const tconv_device *device)
{
    return device == NULL || !device->programs_on_disk ? NULL : device->cache;
}

/* Builds a program from a record. NULL if the driver refuses it. */
static cl_program program_of(const tconv_device *device, const struct tconv_record *record)
{
    const unsigned char *binary = record->binary;
    cl_int code, accepted = CL_INVALID_BINARY;
    cl_program program = clCreateProgramWithBinary(device->context, 1, &device->id,
                                                   &record->binary_size, &binary, &accepted, &code);
    if (code != CL_SUCCESS) return NULL;
    if (accepted == CL_SUCCESS &&
        clBuildProgram(program, 1, &device->id, "", NULL, NULL) == CL_SUCCESS)
        return program;
    clReleaseProgram(program);
    return NULL;
}

/* The binary of a program for the device, from malloc. NULL if the driver gives none. The context
 * may have other devices. One thread at a time: PoCL 3.1 crashes if two threads ask for the
 * binaries of one program. */
static unsigned char *binary_of(const tconv_device *device, cl_program program, size_t *size)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    cl_uint count = 0;
    if (clGetProgramInfo(program, CL_PROGRAM_NUM_DEVICES, sizeof count, &count, NULL) !=
            CL_SUCCESS ||
        count == 0)
        return NULL;
    cl_device_id *ids = calloc(count, sizeof *ids);
    size_t *sizes = calloc(count, sizeof *sizes);
    unsigned char **binaries = calloc(count, sizeof *binaries), *own = NULL;
    pthread_mutex_lock(&lock);
    if (ids != NULL && sizes != NULL && binaries != NULL &&
        clGetProgramInfo(program, CL_PROGRAM_DEVICES, count * sizeof *ids, ids, NULL) ==
            CL_SUCCESS &&
        clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, count * sizeof *sizes, sizes, NULL) ==
            CL_SUCCESS) {
        const size_t i = tconv_device_place(ids, count, device->id);
        if (i < count && sizes[i] > 0) own = malloc(sizes[i]);
        if (own != NULL) {
            *size = sizes[i];
            binaries[i] = own; /* drivers skip entries that are NULL */
            if (clGetProgramInfo(program, CL_PROGRAM_BINARIES, count * sizeof *binaries, binaries,
                                 NULL) != CL_SUCCESS) {
                free(own);
                own = NULL;
            }
        }
    }
    pthread_mutex_unlock(&lock);
    free(ids);
    free(sizes);
    free(binaries);
    return own;
}

cl_program tconv_program_load(const tconv_device *device, const char *key)
{
    if (device->cache == NULL || !device->programs_on_disk) return NULL;
    char *whole = tconv_whole_key(device, TCONV_KIND_PROGRAM, key);
    void *bytes;
    struct tconv_record record;
    cl_program program = NULL;
    if (whole != NULL &&
        tconv_folder_load(device->cache, device->cache_limit, whole, &bytes, &record)) {
        program = program_of(device, &record);
        free(bytes);
    }
    free(whole);
    return program;
}

bool tconv_program_store(const tconv_device *device, const char *key, cl_program program,
                         struct tconv_os_reason *reason)
{
    if (device->cache == NULL || !device->programs_on_disk) return true;
    char *whole = tconv_whole_key(device, TCONV_KIND_PROGRAM, key);
    size_t size = 0;
    unsigned char *binary = whole == NULL ? NULL : binary_of(device, program, &size);
    bool stored = false;
    if (binary != NULL) {
        const struct tconv_record record = {whole, strlen(whole), binary, size};
        stored = tconv_folder_store(device->cache, device->cache_limit, &record, reason);
    } else if (reason != NULL)
        snprintf(reason->text, sizeof reason->text, "the driver does not give a program's binary");
    free(binary);
    free(whole);
    return stored;
}

bool tconv_device_has_program(const tconv_device *device, const char *name, const char *options)
{
    if (device->cache == NULL || !device->programs_on_disk) return true;
    const size_t size = strlen(name) + strlen(options) + 2;
    char *key = malloc(size), *whole = NULL;
    if (key != NULL) {
        snprintf(key, size, "%s %s", name, options);
        whole = tconv_whole_key(device, TCONV_KIND_PROGRAM, key);
    }
    const bool there = whole != NULL && tconv_folder_has(device->cache, whole);
    free(whole);
    free(key);
    return there;
}

uint64_t tconv_device_cache_limit(const tconv_device *device)
{
    return device->cache_limit;
}

/* A retained program of the list with its key. */
struct built {
    char *key;
    cl_program program;
};

/* Copies the list, so that binaries are read without the lock. False without memory. */
static bool list_programs(tconv_device *device, struct built **list, size_t *count)
{
    *count = 0;
    pthread_mutex_lock(&device->lock);
    size_t all = 0;
    for (const struct tconv_program *p = device->programs; p != NULL; p = p->next) all++;
    *list = calloc(all + 1, sizeof **list);
    bool done = *list != NULL;
    for (const struct tconv_program *p = device->programs; p != NULL && done; p = p->next) {
        if (clRetainProgram(p->program) != CL_SUCCESS) continue;
        (*list)[(*count)++] =
            (struct built){tconv_whole_key(device, TCONV_KIND_PROGRAM, p->key), p->program};
        done = (*list)[*count - 1].key != NULL;
    }
    pthread_mutex_unlock(&device->lock);
    return done;
}

/* Records, one after another. `bytes` is from malloc. */
struct blob {
    unsigned char *bytes;
    size_t used;
};

/* Appends a record. False without memory. */
static bool append(struct blob *blob, const char *key, const void *binary, size_t binary_size)
{
    const struct tconv_record record = {key, strlen(key), binary, binary_size};
    const size_t more = tconv_record_size(record.key_size, binary_size);
    unsigned char *larger = more == 0 ? NULL : realloc(blob->bytes, blob->used + more);
    if (larger == NULL) return false;
    blob->bytes = larger;
    tconv_record_write(&record, larger + blob->used);
    blob->used += more;
    return true;
}

/* Appends the search records, the oldest first, as programs are. */
static bool append_search_records(tconv_device *device, struct blob *blob)
{
    bool memory = true;
    pthread_mutex_lock(&device->lock);
    size_t count = 0;
    for (const struct tconv_search_record *r = device->records; r != NULL; r = r->next) count++;
    for (size_t left = count; left-- > 0 && memory;) {
        const struct tconv_search_record *r = device->records;
        for (size_t i = 0; i < left; i++) r = r->next;
        char *key = tconv_whole_key(device, TCONV_KIND_SEARCH, r->key);
        memory = key != NULL && append(blob, key, r->text, strlen(r->text));
        free(key);
    }
    pthread_mutex_unlock(&device->lock);
    return memory;
}

tconv_status tconv_device_export_programs(tconv_device *device, void *bytes, size_t *size,
                                          tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    if (device == NULL || size == NULL)
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                          device == NULL ? "device" : "size");
    tconv_status status = tconv_process_enter(error);
    if (status != TCONV_OK) return status;
    const size_t room = bytes == NULL ? 0 : *size;
    *size = 0;
    if (device->identity == NULL) return TCONV_OK;
    struct built *list = NULL;
    size_t count = 0;
    struct blob all = {NULL, 0}; /* written only if it fits as a whole */
    bool memory = list_programs(device, &list, &count);
    /* Backwards, so that the program used last also counts as used last after an import. */
    for (size_t i = count; i-- > 0;) {
        size_t binary_size = 0;
        unsigned char *binary = memory ? binary_of(device, list[i].program, &binary_size) : NULL;
        if (binary != NULL) memory = append(&all, list[i].key, binary, binary_size);
        free(binary);
        clReleaseProgram(list[i].program);
        free(list[i].key);
    }
    free(list);
    memory = memory && append_search_records(device, &all);
    if (!memory)
        status = tconv_fail_memory(error, all.used, "exporting programs");
    else {
        *size = all.used;
        if (bytes != NULL && all.used > room)
            status = tconv_fail(error, TCONV_ERROR_BUFFER,
                                "the programs take %zu bytes, but size is %zu", all.used, room);
        else if (bytes != NULL && all.used > 0)
            memcpy(bytes, all.bytes, all.used);
    }
    free(all.bytes);
    return status;
}

/* Imports a record whose key begins with the device's identity. `*taken` is false if the record is
 * useless. */
static tconv_status import_record(tconv_device *device, const struct tconv_record *record,
                                  bool *taken, tconv_error *error)
{
    static const char search[] = TCONV_KIND_SEARCH, built_program[] = TCONV_KIND_PROGRAM;
    const size_t prefix = strlen(device->identity), rest = record->key_size - prefix;
    const char *kind = record->key + prefix;
    *taken = false;
    if (rest >= strlen(search) && memcmp(kind, search, strlen(search)) == 0) {
        char *key = strndup(kind + strlen(search), rest - strlen(search));
        char *text = strndup(record->binary, record->binary_size);
        *taken = key != NULL && text != NULL && tconv_search_record_add(device, key, text);
        free(key);
        free(text);
        return *taken ? TCONV_OK
                      : tconv_fail_memory(error, record->key_size, "importing search records");
    }
    if (rest < strlen(built_program) || memcmp(kind, built_program, strlen(built_program)) != 0)
        return TCONV_OK;
    cl_program program = program_of(device, record);
    if (program == NULL) return TCONV_OK;
    char *key = strndup(kind + strlen(built_program), rest - strlen(built_program));
    if (key == NULL) {
        clReleaseProgram(program);
        return tconv_fail_memory(error, record->key_size, "importing programs");
    }
    const tconv_status status = tconv_program_keep(device, key, &program, error);
    *taken = status == TCONV_OK;
    if (*taken) clReleaseProgram(program);
    return status;
}

tconv_status tconv_device_import_programs(tconv_device *device, const void *bytes, size_t size,
                                          int *taken, tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    if (device == NULL || (bytes == NULL && size > 0))
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s is NULL",
                          device == NULL ? "device" : "bytes");
    int count = 0;
    tconv_status status = tconv_process_enter(error);
    const unsigned char *at = bytes;
    const size_t prefix = device->identity == NULL ? 0 : strlen(device->identity);
    for (struct tconv_record record; status == TCONV_OK && tconv_record_read(at, size, &record);) {
        const size_t used = tconv_record_size(record.key_size, record.binary_size);
        at += used;
        size -= used;
        if (prefix == 0 || record.key_size < prefix ||
            memcmp(record.key, device->identity, prefix) != 0)
            continue;
        bool took;
        status = import_record(device, &record, &took, error);
        count += took;
    }
    if (taken != NULL) *taken = count;
    return status;
}
