/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and keeps what is stored for a device, in memory and in a folder. */
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a kind is called in the folder, and how many are kept in memory. */
static const struct {
    const char *prefix;
    int most;
} kinds[TCONV_STORED_KINDS] = {
    [TCONV_STORED_PROGRAM] = {"program ", TCONV_MOST_PROGRAMS},
    [TCONV_STORED_SEARCH] = {"search 2 ", 1024}, /* the number changes with plan/search_text.c */
    [TCONV_STORED_PREPARED] = {"prepared 1 ", 1024},
    [TCONV_STORED_MACHINE] = {"machine 1 ", 1},
};

bool tconv_store_init(struct tconv_store *store, void (*release_program)(void *))
{
    *store = (struct tconv_store){.limit = TCONV_CACHE_LIMIT};
    for (int kind = 0; kind < TCONV_STORED_KINDS; kind++)
        store->drawer[kind] = (struct tconv_drawer){
            kinds[kind].most, kind == TCONV_STORED_PROGRAM ? release_program : free, NULL};
    return pthread_mutex_init(&store->lock, NULL) == 0;
}

void tconv_store_destroy(struct tconv_store *store)
{
    for (int kind = 0; kind < TCONV_STORED_KINDS; kind++)
        tconv_drawer_drop(&store->drawer[kind], tconv_drawer_empty(&store->drawer[kind]));
    free(store->identity);
    free(store->folder);
    pthread_mutex_destroy(&store->lock);
}

void tconv_store_set_folder(struct tconv_store *store, char *folder, uint64_t limit, bool programs)
{
    struct tconv_drawer *machine = &store->drawer[TCONV_STORED_MACHINE];
    free(store->folder);
    store->folder = folder;
    store->limit = limit;
    store->programs_in_folder = programs;
    tconv_drawer_drop(machine, tconv_drawer_empty(machine));
}

bool tconv_store_has_folder(const struct tconv_store *store, enum tconv_stored kind)
{
    return store->identity != NULL && store->folder != NULL &&
           (kind != TCONV_STORED_PROGRAM || store->programs_in_folder);
}

/* ---- the folder ---- */

char *tconv_store_whole_key(const struct tconv_store *store, enum tconv_stored kind,
                            const char *key)
{
    const size_t size = strlen(store->identity) + strlen(kinds[kind].prefix) + strlen(key) + 1;
    char *whole = malloc(size);
    if (whole != NULL) snprintf(whole, size, "%s%s%s", store->identity, kinds[kind].prefix, key);
    return whole;
}

struct tconv_stored_key tconv_store_read_key(const struct tconv_store *store, const char *whole)
{
    const size_t own = store->identity == NULL ? 0 : strlen(store->identity);
    struct tconv_stored_key read = {.own = own > 0 && strncmp(whole, store->identity, own) == 0,
                                    .kind = TCONV_STORED_KINDS,
                                    .key = "",
                                    .identity_size = strlen(whole)};
    for (int kind = 0; kind < TCONV_STORED_KINDS; kind++) {
        const char *prefix = kinds[kind].prefix;
        const char *at = read.own ? whole + own : strchr(whole, '\n');
        /* The kind begins a line, the first one with such a begin; of an own key it is known which.
         */
        while (at != NULL && !read.own && strncmp(at + 1, prefix, strlen(prefix)) != 0)
            at = strchr(at + 1, '\n');
        if (at != NULL && !read.own) at++;
        if (at == NULL || strncmp(at, prefix, strlen(prefix)) != 0 ||
            (size_t)(at - whole) >= read.identity_size)
            continue;
        read.kind = (enum tconv_stored)kind;
        read.key = at + strlen(prefix);
        read.identity_size = (size_t)(at - whole);
    }
    return read;
}

bool tconv_store_load(const struct tconv_store *store, enum tconv_stored kind, const char *key,
                      void **bytes, struct tconv_record *record)
{
    if (!tconv_store_has_folder(store, kind)) return false;
    char *whole = tconv_store_whole_key(store, kind, key);
    const bool found = whole != NULL &&
                       tconv_folder_load(store->folder, store->limit, whole, bytes, record);
    free(whole);
    return found;
}

bool tconv_store_has(const struct tconv_store *store, enum tconv_stored kind, const char *key)
{
    if (!tconv_store_has_folder(store, kind)) return false;
    char *whole = tconv_store_whole_key(store, kind, key);
    const bool there = whole != NULL && tconv_folder_has(store->folder, whole);
    free(whole);
    return there;
}

bool tconv_store_write(const struct tconv_store *store, enum tconv_stored kind, const char *key,
                       const void *bytes, size_t size, struct tconv_os_reason *reason)
{
    if (!tconv_store_has_folder(store, kind)) return true;
    char *whole = tconv_store_whole_key(store, kind, key);
    if (whole == NULL) {
        if (reason != NULL) snprintf(reason->text, sizeof reason->text, "no memory");
        return false;
    }
    const struct tconv_record record = {whole, strlen(whole), bytes, size};
    const bool written = size == 0
                             ? tconv_folder_forget(store->folder, whole, reason)
                             : tconv_folder_store(store->folder, store->limit, &record, reason);
    free(whole);
    return written;
}

/* ---- texts ---- */

/* An entry with a copy of a text. NULL without memory. */
static struct tconv_entry *text_entry(const char *key, const char *text)
{
    char *own = strdup(text);
    struct tconv_entry *entry = own == NULL ? NULL : tconv_entry_new(key, own);
    if (entry == NULL) free(own);
    return entry;
}

/* The text in the folder. From malloc; NULL: there is none, or no memory. */
static char *load_text(const struct tconv_store *store, enum tconv_stored kind, const char *key)
{
    struct tconv_record record;
    void *bytes = NULL;
    char *text = NULL;
    if (tconv_store_load(store, kind, key, &bytes, &record))
        text = strndup(record.binary, record.binary_size);
    free(bytes);
    return text;
}

char *tconv_store_text(struct tconv_store *store, enum tconv_stored kind, const char *key)
{
    struct tconv_entry *gone = NULL;
    if (store->identity == NULL && kind != TCONV_STORED_MACHINE) return NULL;
    pthread_mutex_lock(&store->lock);
    const char *kept = tconv_drawer_find(&store->drawer[kind], key);
    char *text = kept == NULL ? NULL : strdup(kept);
    pthread_mutex_unlock(&store->lock);
    if (kept == NULL) {
        text = load_text(store, kind, key);
        /* Each plan asks for the fields: memory knows, too, that there are none. */
        if (text == NULL && kind == TCONV_STORED_MACHINE) text = strdup("");
        struct tconv_entry *entry = text == NULL ? NULL : text_entry(key, text);
        pthread_mutex_lock(&store->lock);
        if (entry != NULL && tconv_drawer_find(&store->drawer[kind], key) == NULL)
            gone = tconv_drawer_put(&store->drawer[kind], entry);
        else
            gone = entry; /* another thread was first */
        pthread_mutex_unlock(&store->lock);
        tconv_drawer_drop(&store->drawer[kind], gone);
    }
    if (text == NULL || text[0] != '\0') return text;
    free(text);
    return NULL;
}

char *tconv_store_text_anew(struct tconv_store *store, enum tconv_stored kind, const char *key)
{
    char *text = load_text(store, kind, key);
    return text != NULL ? text : tconv_store_text(store, kind, key);
}

bool tconv_store_put_text(struct tconv_store *store, enum tconv_stored kind, const char *key,
                          const char *text)
{
    struct tconv_entry *entry = text_entry(key, text);
    if (entry == NULL) return false;
    pthread_mutex_lock(&store->lock);
    struct tconv_entry *gone = tconv_drawer_put(&store->drawer[kind], entry);
    pthread_mutex_unlock(&store->lock);
    tconv_drawer_drop(&store->drawer[kind], gone);
    return true;
}

bool tconv_store_keep_text(struct tconv_store *store, enum tconv_stored kind, const char *key,
                           const char *text, struct tconv_os_reason *reason)
{
    if (store->identity == NULL && kind != TCONV_STORED_MACHINE) return true;
    struct tconv_entry *entry = text_entry(key, text);
    if (entry == NULL) {
        snprintf(reason->text, sizeof reason->text, "no memory");
        return false;
    }
    /* Under the lock, so that memory and folder have the text of one thread. */
    pthread_mutex_lock(&store->lock);
    const bool written = tconv_store_write(store, kind, key, text, strlen(text), reason);
    struct tconv_entry *gone = written || kind != TCONV_STORED_MACHINE
                                   ? tconv_drawer_put(&store->drawer[kind], entry)
                                   : entry;
    pthread_mutex_unlock(&store->lock);
    tconv_drawer_drop(&store->drawer[kind], gone);
    return written;
}
