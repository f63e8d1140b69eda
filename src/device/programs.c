/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps programs: built ones in memory, binaries in the folder, and both kinds of results in a blob
 * that the application carries to a later process. */
#include "base/cancel.h"
#include "base/error.h"
#include "base/os.h"
#include "base/process.h"
#include "device/device_members.h"
#include "device/environment.h"
#include "device/processor.h"
#include "tconv_cl/tuning.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the folder ---- */

bool tconv_compiles_late(const tconv_device *device)
{
    return strcmp(device->info.platform, TCONV_POCL) == 0;
}

static void release_program(void *program)
{
    clReleaseProgram(program);
}

bool tconv_device_init_store(tconv_device *device)
{
    return tconv_store_init(&device->store, release_program);
}

tconv_status tconv_device_start_cache(tconv_device *device, tconv_error *error)
{
    bool named;
    char *folder;
    uint64_t limit;
    const tconv_status status = tconv_environment_cache(&folder, &limit, &named, error);
    if (status != TCONV_OK) return status;
    device->store.identity = tconv_identity_of(device);
    tconv_store_set_folder(&device->store, folder, limit, named || !tconv_compiles_late(device));
    return TCONV_OK;
}

tconv_status tconv_device_set_cache(tconv_device *device, const char *folder, uint64_t limit,
                                    tconv_error *error)
{
    TCONV_WITHOUT_CANCELLATION;
    if (device == NULL || (folder != NULL && folder[0] == '\0'))
        return tconv_fail(error, TCONV_ERROR_ARGUMENT, "%s",
                          device == NULL ? "device is NULL" : "folder is empty: NULL means none");
    char *own = folder == NULL ? NULL : strdup(folder);
    if (folder != NULL && own == NULL)
        return tconv_fail_memory(error, strlen(folder) + 1, "keeping the name of a folder");
    tconv_store_set_folder(&device->store, own, limit == 0 ? TCONV_CACHE_LIMIT : limit, true);
    return TCONV_OK;
}

/* The folder, if it has things of this kind. */
static const char *folder_of(const tconv_device *device, enum tconv_stored kind)
{
    return device == NULL || !tconv_store_has_folder(&device->store, kind) ? NULL
                                                                           : device->store.folder;
}

const char *tconv_device_cache(const tconv_device *device)
{
    return folder_of(device, TCONV_STORED_PROGRAM);
}

const char *tconv_device_search_folder(const tconv_device *device)
{
    return folder_of(device, TCONV_STORED_SEARCH);
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
    void *bytes;
    struct tconv_record record;
    if (!tconv_store_load(&device->store, TCONV_STORED_PROGRAM, key, &bytes, &record)) return NULL;
    cl_program program = program_of(device, &record);
    free(bytes);
    return program;
}

bool tconv_program_store(const tconv_device *device, const char *key, cl_program program,
                         struct tconv_os_reason *reason)
{
    if (!tconv_store_has_folder(&device->store, TCONV_STORED_PROGRAM)) return true;
    size_t size = 0;
    unsigned char *binary = binary_of(device, program, &size);
    bool stored = false;
    if (binary != NULL)
        stored = tconv_store_write(&device->store, TCONV_STORED_PROGRAM, key, binary, size, reason);
    else if (reason != NULL)
        snprintf(reason->text, sizeof reason->text, "the driver does not give a program's binary");
    free(binary);
    return stored;
}

/* ---- memory ---- */

/* Under the lock: finds the program with this key and retains it. NULL if there is none. */
static cl_program find(struct tconv_store *store, const char *key)
{
    cl_program found = tconv_drawer_find(&store->drawer[TCONV_STORED_PROGRAM], key);
    return found != NULL && clRetainProgram(found) == CL_SUCCESS ? found : NULL;
}

cl_program tconv_program_find(tconv_device *device, const char *key)
{
    pthread_mutex_lock(&device->store.lock);
    cl_program program = find(&device->store, key);
    pthread_mutex_unlock(&device->store.lock);
    return program;
}

tconv_status tconv_program_keep(tconv_device *device, const char *key, cl_program *program,
                                tconv_error *error)
{
    struct tconv_store *store = &device->store;
    struct tconv_drawer *drawer = &store->drawer[TCONV_STORED_PROGRAM];
    struct tconv_entry *entry = tconv_entry_new(key, *program), *gone;
    const cl_int code = entry == NULL
                            ? CL_SUCCESS
                            : clRetainProgram(*program); /* one for the list, one for the caller */
    if (entry == NULL || code != CL_SUCCESS) {
        clReleaseProgram(*program);
        free(entry);
        return entry == NULL
                   ? tconv_fail_memory(error, sizeof *entry, "keeping a program")
                   : tconv_fail_opencl(error, code, "clRetainProgram", "keeping a program");
    }
    pthread_mutex_lock(&store->lock);
    cl_program first = find(store, key);
    gone = first == NULL ? tconv_drawer_put(drawer, entry) : entry;
    pthread_mutex_unlock(&store->lock);
    tconv_drawer_drop(drawer, gone);
    if (first != NULL) {
        clReleaseProgram(*program);
        *program = first;
    }
    return TCONV_OK;
}

/* ---- blobs ---- */

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

/* What a blob has of a kind: whole keys with retained programs, or with copies of texts. */
struct kept {
    char *key;
    void *value;
};

/* Copies a drawer, the entry used last first, so that binaries are read without the lock. False
 * without memory. */
static bool copy_drawer(tconv_device *device, enum tconv_stored kind, struct kept **list,
                        size_t *count)
{
    struct tconv_store *store = &device->store;
    *count = 0;
    pthread_mutex_lock(&store->lock);
    size_t all = 0;
    for (const struct tconv_entry *e = store->drawer[kind].first; e != NULL; e = e->next) all++;
    *list = calloc(all + 1, sizeof **list);
    bool done = *list != NULL;
    for (const struct tconv_entry *e = store->drawer[kind].first; e != NULL && done; e = e->next) {
        struct kept *kept = &(*list)[*count];
        const bool program = kind == TCONV_STORED_PROGRAM;
        if (program && clRetainProgram(e->value) != CL_SUCCESS) continue;
        kept->key = tconv_store_whole_key(store, kind, e->key);
        kept->value = program ? e->value : strdup(e->value);
        done = kept->key != NULL && kept->value != NULL;
        ++*count;
    }
    pthread_mutex_unlock(&store->lock);
    return done;
}

/* Appends all of a kind. Backwards, so that what was used last also counts as used last after an
 * import. False without memory. */
static bool append_kind(tconv_device *device, enum tconv_stored kind, struct blob *blob)
{
    struct kept *list = NULL;
    size_t count = 0;
    bool memory = copy_drawer(device, kind, &list, &count);
    for (size_t i = count; i-- > 0;) {
        unsigned char *binary = list[i].value;
        size_t size = 0;
        if (kind == TCONV_STORED_PROGRAM)
            binary = memory ? binary_of(device, list[i].value, &size) : NULL;
        else if (binary != NULL)
            size = strlen(list[i].value);
        if (memory && binary != NULL && size > 0) memory = append(blob, list[i].key, binary, size);
        if (kind == TCONV_STORED_PROGRAM) clReleaseProgram(list[i].value);
        free(binary);
        free(list[i].key);
    }
    free(list);
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
    if (device->store.identity == NULL) return TCONV_OK;
    struct blob all = {NULL, 0}; /* written only if it fits as a whole */
    if (!append_kind(device, TCONV_STORED_PROGRAM, &all) ||
        !append_kind(device, TCONV_STORED_SEARCH, &all) ||
        !append_kind(device, TCONV_STORED_PREPARED, &all))
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

/* Imports a record. `*taken` is false if it is useless, or of another device. */
static tconv_status import_record(tconv_device *device, const struct tconv_record *record,
                                  bool *taken, tconv_error *error)
{
    struct tconv_store *store = &device->store;
    tconv_status status = TCONV_OK;
    *taken = false;
    char *whole = strndup(record->key, record->key_size);
    if (whole == NULL) return tconv_fail_memory(error, record->key_size, "importing programs");
    const struct tconv_stored_key key = tconv_store_read_key(store, whole);
    if (key.own && key.kind == TCONV_STORED_PROGRAM) {
        cl_program program = program_of(device, record);
        if (program != NULL) status = tconv_program_keep(device, key.key, &program, error);
        *taken = program != NULL && status == TCONV_OK;
        if (*taken) clReleaseProgram(program);
    } else if (key.own && (key.kind == TCONV_STORED_SEARCH || key.kind == TCONV_STORED_PREPARED)) {
        char *text = strndup(record->binary, record->binary_size);
        *taken = text != NULL && tconv_store_put_text(store, key.kind, key.key, text);
        if (!*taken)
            status = tconv_fail_memory(error, record->key_size, "importing search records");
        free(text);
    }
    free(whole);
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
    for (struct tconv_record record; status == TCONV_OK && tconv_record_read(at, size, &record);) {
        const size_t used = tconv_record_size(record.key_size, record.binary_size);
        bool took;
        at += used;
        size -= used;
        status = import_record(device, &record, &took, error);
        count += took;
    }
    if (taken != NULL) *taken = count;
    return status;
}
