/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the results of searches for the fastest algorithm, in memory and beside the programs in the
 * folder. */
#include "base/error.h"
#include "base/os.h"
#include "cache/folder.h"
#include "device/device_internal.h"
#include "tconv_cl/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void free_record(struct tconv_search_record *record)
{
    free(record->key);
    free(record->text);
    free(record);
}

void tconv_search_records_release(struct tconv_search_record *first)
{
    while (first != NULL) {
        struct tconv_search_record *next = first->next;
        free_record(first);
        first = next;
    }
}

/* Removes the record of a key, and the oldest records if there are too many. */
static void make_room(tconv_device *device, const char *key)
{
    int count = 0;
    for (struct tconv_search_record **at = &device->records; *at != NULL;) {
        struct tconv_search_record *record = *at;
        if (strcmp(record->key, key) == 0 || ++count >= TCONV_MOST_SEARCH_RECORDS) {
            *at = record->next;
            free_record(record);
        } else {
            at = &record->next;
        }
    }
}

bool tconv_search_record_add(tconv_device *device, const char *key, const char *text)
{
    struct tconv_search_record *record = calloc(1, sizeof *record);
    if (record == NULL) return false;
    record->key = strdup(key);
    record->text = strdup(text);
    if (record->key == NULL || record->text == NULL) {
        free_record(record);
        return false;
    }
    pthread_mutex_lock(&device->lock);
    make_room(device, key);
    record->next = device->records;
    device->records = record;
    pthread_mutex_unlock(&device->lock);
    return true;
}

static char *find_in_memory(tconv_device *device, const char *key)
{
    char *text = NULL;
    pthread_mutex_lock(&device->lock);
    for (const struct tconv_search_record *r = device->records; r != NULL && text == NULL;
         r = r->next)
        if (strcmp(r->key, key) == 0) text = strdup(r->text);
    pthread_mutex_unlock(&device->lock);
    return text;
}

/* Reads the text with this key from the folder, or returns NULL. */
static char *load_text(const tconv_device *device, const char *key)
{
    if (device->identity == NULL || device->cache == NULL) return NULL;
    char *whole = tconv_whole_key(device, TCONV_KIND_SEARCH, key), *text = NULL;
    void *bytes;
    struct tconv_record record;
    if (whole != NULL &&
        tconv_folder_load(device->cache, device->cache_limit, whole, &bytes, &record)) {
        text = strndup(record.binary, record.binary_size);
        free(bytes);
    }
    free(whole);
    return text;
}

/* Writes a text to the folder, if there is one. An empty text removes what is there. False if that
 * fails. */
static bool store_text(const tconv_device *device, const char *key, const char *text,
                       struct tconv_os_reason *reason)
{
    if (device->identity == NULL || device->cache == NULL) return true;
    char *whole = tconv_whole_key(device, TCONV_KIND_SEARCH, key);
    if (whole == NULL) {
        snprintf(reason->text, sizeof reason->text, "no memory");
        return false;
    }
    const struct tconv_record record = {whole, strlen(whole), text, strlen(text)};
    const bool stored =
        text[0] == '\0' ? tconv_folder_forget(device->cache, whole, reason)
                        : tconv_folder_store(device->cache, device->cache_limit, &record, reason);
    free(whole);
    return stored;
}

char *tconv_device_search_record(tconv_device *device, const char *key)
{
    if (device->identity == NULL) return NULL;
    char *text = find_in_memory(device, key);
    if (text != NULL) return text;
    text = load_text(device, key);
    if (text != NULL) tconv_search_record_add(device, key, text);
    return text;
}

char *tconv_device_search_record_anew(tconv_device *device, const char *key)
{
    char *text = load_text(device, key);
    return text != NULL ? text : tconv_device_search_record(device, key);
}

bool tconv_device_keep_search_record(tconv_device *device, const char *key, const char *text,
                                     struct tconv_os_reason *reason)
{
    if (device->identity == NULL) return true;
    tconv_search_record_add(device, key, text);
    return store_text(device, key, text, reason);
}

/* The key of the cost model's fields. A sub-device has fields of its own. */
static const char machine_key[] = "machine";

static void write_machine_key(const tconv_device *device, char key[40])
{
    const uint32_t units = tconv_device_part_units(device);
    snprintf(key, 40, "%s", machine_key);
    if (units != 0) snprintf(key, 40, "%s of %u units", machine_key, (unsigned)units);
}

char *tconv_device_machine_record(tconv_device *device)
{
    char key[40];
    write_machine_key(device, key);
    pthread_mutex_lock(&device->lock);
    if (!device->machine_known) device->machine = load_text(device, key);
    device->machine_known = true;
    char *text = device->machine == NULL ? NULL : strdup(device->machine);
    pthread_mutex_unlock(&device->lock);
    return text;
}

tconv_status tconv_device_keep_machine_record(tconv_device *device, const char *text,
                                              tconv_error *error)
{
    struct tconv_os_reason reason = {""};
    char *own = strdup(text), key[40];
    write_machine_key(device, key);
    if (own == NULL)
        return tconv_fail_memory(error, strlen(text) + 1, "keeping fields of the cost model");
    pthread_mutex_lock(&device->lock); /* so that memory and folder have the text of one thread */
    const bool stored = store_text(device, key, text, &reason);
    if (stored) {
        char *before = device->machine;
        device->machine = own;
        device->machine_known = true;
        own = before;
    }
    pthread_mutex_unlock(&device->lock);
    free(own);
    return stored
               ? TCONV_OK
               : tconv_fail(error, TCONV_ERROR_FILE, "fields of the cost model cannot be %s %s: %s",
                            text[0] == '\0' ? "removed from" : "stored in", device->cache,
                            reason.text);
}

struct listing {
    const tconv_device *device;
    tconv_stored_visit *visit;
    void *context;
    bool memory;
};

/* Calls the visitor with a record unless it is a program or a machine. `key` is the whole key; it
 * is cut apart. */
static void tell_record(struct listing *l, const char *name, char *key, const char *text)
{
    struct tconv_stored_text stored = {TCONV_RECORD_FOREIGN, name, "", "", ""};
    const size_t prefix = strlen(l->device->identity);
    if (strncmp(key, l->device->identity, prefix) == 0) {
        const char *kind = key + prefix;
        if (strncmp(kind, TCONV_KIND_PROGRAM, strlen(TCONV_KIND_PROGRAM)) == 0) return;
        if (strncmp(kind, TCONV_KIND_SEARCH, strlen(TCONV_KIND_SEARCH)) == 0) {
            stored.state = TCONV_RECORD_USED;
            stored.key = kind + strlen(TCONV_KIND_SEARCH);
            stored.text = text;
        }
    } else {
        char *program = strstr(key, "\n" TCONV_KIND_PROGRAM);
        char *search = strstr(key, "\n" TCONV_KIND_SEARCH);
        if (program != NULL && (search == NULL || program < search)) return;
        if (search != NULL) {
            *search = '\0';
            stored.device = key;
            stored.key = search + 1 + strlen(TCONV_KIND_SEARCH);
            stored.text = text;
        }
    }
    if (strncmp(stored.key, machine_key, strlen(machine_key)) != 0) l->visit(l->context, &stored);
}

static void tell_file(void *context, const char *name, enum tconv_file_state state,
                      const struct tconv_record *record)
{
    struct listing *l = context;
    if (!l->memory) return;
    if (record == NULL) {
        const struct tconv_stored_text stored = {state == TCONV_FILE_DAMAGED ? TCONV_RECORD_DAMAGED
                                                                             : TCONV_RECORD_FOREIGN,
                                                 name, "", "", ""};
        l->visit(l->context, &stored);
        return;
    }
    char *key = strndup(record->key, record->key_size);
    char *text = strndup(record->binary, record->binary_size);
    l->memory = key != NULL && text != NULL;
    if (l->memory) tell_record(l, name, key, text);
    free(key);
    free(text);
}

bool tconv_device_list_search_records(const tconv_device *device, tconv_stored_visit *visit,
                                      void *context)
{
    struct listing l = {device, visit, context, true};
    if (device->cache != NULL) tconv_folder_list(device->cache, device->cache_limit, tell_file, &l);
    return l.memory;
}

const char *tconv_device_search_folder(const tconv_device *device)
{
    return device == NULL ? NULL : device->cache;
}

tconv_search tconv_device_search(const tconv_device *device)
{
    return device->search;
}
