/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of a device object: its identity, which everything kept depends on, its folder, and the
 * blob in which an application carries programs and results of searches to a later process. */
#include "base/cancel.h"
#include "base/error.h"
#include "base/process.h"
#include "base/sources.h"
#include "device/environment.h"
#include "device/program.h"
#include "tconv_cl/version.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- identity ---- */

enum { IDENTITY = 1500, UUID = 16 };

/* One number for all kernel sources of the library. */
static uint64_t sources_hash(void)
{
    uint64_t hash = 0;
    for (const struct tconv_source *s = tconv_sources; s->name != NULL; s++)
        hash = XXH3_64bits_withSeed(s->text, strlen(s->text), hash);
    return hash;
}

/* The device's UUID (cl_khr_device_uuid), or zeros if it has none. OpenCL 1.2 does not name it. A
 * part has that of the whole device, whose programs it shares. */
static void read_uuid(cl_device_id id, char text[2 * UUID + 1])
{
    unsigned char uuid[UUID] = {0};
    if (clGetDeviceInfo(tconv_whole_device(id), 0x106A, sizeof uuid, uuid, NULL) != CL_SUCCESS)
        memset(uuid, 0, sizeof uuid);
    for (int i = 0; i < UUID; i++) snprintf(text + 2 * i, 3, "%02x", uuid[i]);
}

/* Everything that compiled programs depend on besides their own file and options. From malloc; NULL
 * if it cannot be found out. */
static char *identity_of(const tconv_device *device)
{
    const tconv_device_info *d = &device->info;
    cl_platform_id platform = NULL;
    cl_uint bits = 0, vendor = 0;
    char version[256] = "", uuid[2 * UUID + 1];
    if (clGetDeviceInfo(device->id, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL) !=
            CL_SUCCESS ||
        clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof version, version, NULL) !=
            CL_SUCCESS ||
        clGetDeviceInfo(device->id, CL_DEVICE_ADDRESS_BITS, sizeof bits, &bits, NULL) !=
            CL_SUCCESS ||
        clGetDeviceInfo(device->id, CL_DEVICE_VENDOR_ID, sizeof vendor, &vendor, NULL) !=
            CL_SUCCESS)
        return NULL;
    version[sizeof version - 1] = '\0';
    read_uuid(device->id, uuid);
    char *text = malloc(IDENTITY);
    if (text == NULL) return NULL;
    const int length = snprintf(
        text, IDENTITY,
        "tconv-cl %s %016" PRIx64 "\nplatform %s, %s\ndevice %s, %s, %08x, %s, %u bits, %s\ndriver "
        "%s\n",
        TCONV_VERSION_STRING, sources_hash(), d->platform, version, d->name, d->vendor,
        (unsigned)vendor, d->version, (unsigned)bits, uuid, d->driver);
    if (length > 0 && length < IDENTITY) return text;
    free(text);
    return NULL;
}

/* ---- the folder ---- */

tconv_status tconv_device_start_cache(tconv_device *device, tconv_error *error)
{
    bool named;
    char *folder;
    uint64_t limit;
    const tconv_status status = tconv_environment_cache(&folder, &limit, &named, error);
    if (status != TCONV_OK) return status;
    device->store.identity = identity_of(device);
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
        kept->value = store->drawer[kind].copy(e->value);
        if (kept->value == NULL && kind == TCONV_STORED_PROGRAM) continue;
        kept->key = tconv_store_whole_key(store, kind, e->key);
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
            binary = memory ? tconv_program_binary(device, list[i].value, &size) : NULL;
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
        !append_kind(device, TCONV_STORED_IMPORTED, &all) ||
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
        cl_program program = tconv_program_of(device, key.key, record);
        if (program != NULL) status = tconv_program_keep(device, key.key, &program, error);
        *taken = program != NULL && status == TCONV_OK;
        if (*taken) clReleaseProgram(program);
    } else if (key.own && (key.kind == TCONV_STORED_SEARCH || key.kind == TCONV_STORED_IMPORTED ||
                           key.kind == TCONV_STORED_PREPARED)) {
        char *text = strndup(record->binary, record->binary_size);
        *taken = tconv_store_put(store, key.kind, key.key, text, NULL);
        if (!*taken) {
            free(text);
            status = tconv_fail_memory(error, record->key_size, "importing search records");
        }
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
