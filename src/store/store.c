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
    [TCONV_STORED_SEARCH] = {"search 2 ", 1024}, /* the numbers change with plan/records.c */
    [TCONV_STORED_IMPORTED] = {"imported 1 ", 1024},
    [TCONV_STORED_PREPARED] = {"prepared 1 ", 1024},
    [TCONV_STORED_MACHINE] = {"machine 1 ", 1},
};

/* ---- memory ---- */

static void *copy_text(void *text)
{
    return strdup(text);
}

bool tconv_store_init(struct tconv_store *store, void *(*copy_program)(void *),
                      void (*release_program)(void *))
{
    *store = (struct tconv_store){.limit = TCONV_CACHE_LIMIT};
    for (int kind = 0; kind < TCONV_STORED_KINDS; kind++) {
        const bool program = kind == TCONV_STORED_PROGRAM;
        store->drawer[kind] = (struct tconv_drawer){kinds[kind].most,
                                                    program ? copy_program : copy_text,
                                                    program ? release_program : free, NULL};
    }
    return pthread_mutex_init(&store->lock, NULL) == 0;
}

/* Releases entries that are in the drawer no more. This may take a while, and needs no lock. */
static void drop(const struct tconv_drawer *drawer, struct tconv_entry *first)
{
    for (struct tconv_entry *e = first, *next; e != NULL; e = next) {
        next = e->next;
        drawer->release(e->value);
        free(e);
    }
}

static void empty(struct tconv_drawer *drawer)
{
    drop(drawer, drawer->first);
    drawer->first = NULL;
}

void tconv_store_destroy(struct tconv_store *store)
{
    for (int kind = 0; kind < TCONV_STORED_KINDS; kind++) empty(&store->drawer[kind]);
    free(store->identity);
    free(store->folder);
    pthread_mutex_destroy(&store->lock);
}

/* Under the lock: takes the entry with this key out; NULL: there is none. */
static struct tconv_entry *take(struct tconv_drawer *drawer, const char *key)
{
    struct tconv_entry **link = &drawer->first, *found;
    while (*link != NULL && strcmp((*link)->key, key) != 0) link = &(*link)->next;
    found = *link;
    if (found != NULL) *link = found->next;
    return found;
}

/* Under the lock: a copy of the value with this key, which becomes the first. */
static void *find(struct tconv_drawer *drawer, const char *key)
{
    struct tconv_entry *found = take(drawer, key);
    if (found == NULL) return NULL;
    found->next = drawer->first;
    drawer->first = found;
    return drawer->copy(found->value);
}

/* Under the lock: puts an entry in, in place of one with its key. Returns those that have no place
 * any more. */
static struct tconv_entry *put(struct tconv_drawer *drawer, struct tconv_entry *entry)
{
    struct tconv_entry *gone = take(drawer, entry->key), **link = &drawer->first;
    entry->next = drawer->first;
    drawer->first = entry;
    for (int i = 0; i < drawer->most && *link != NULL; i++) link = &(*link)->next;
    if (gone != NULL) /* then the drawer has no more entries than before */
        gone->next = NULL;
    else {
        gone = *link;
        *link = NULL;
    }
    return gone;
}

/* NULL without memory, or without a value. */
static struct tconv_entry *new_entry(const char *key, void *value)
{
    const size_t size = strlen(key) + 1;
    struct tconv_entry *made = value == NULL ? NULL : malloc(sizeof *made + size);
    if (made == NULL) return NULL;
    made->next = NULL;
    made->value = value;
    memcpy(made->key, key, size);
    return made;
}

void *tconv_store_find(struct tconv_store *store, enum tconv_stored kind, const char *key)
{
    pthread_mutex_lock(&store->lock);
    void *value = find(&store->drawer[kind], key);
    pthread_mutex_unlock(&store->lock);
    return value;
}

bool tconv_store_put(struct tconv_store *store, enum tconv_stored kind, const char *key,
                     void *value, void **first)
{
    struct tconv_drawer *drawer = &store->drawer[kind];
    struct tconv_entry *entry = new_entry(key, value), *gone = entry;
    if (entry == NULL) return false;
    pthread_mutex_lock(&store->lock);
    void *there = first == NULL ? NULL : find(drawer, key);
    if (there == NULL) gone = put(drawer, entry);
    pthread_mutex_unlock(&store->lock);
    drop(drawer, gone);
    if (first != NULL) *first = there;
    return true;
}

/* ---- the folder ---- */

void tconv_store_set_folder(struct tconv_store *store, char *folder, uint64_t limit, bool programs)
{
    free(store->folder);
    store->folder = folder;
    store->limit = limit;
    store->programs_in_folder = programs;
    empty(&store->drawer[TCONV_STORED_MACHINE]);
}

bool tconv_store_has_folder(const struct tconv_store *store, enum tconv_stored kind)
{
    return store->identity != NULL && store->folder != NULL &&
           (kind != TCONV_STORED_PROGRAM || store->programs_in_folder);
}

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
    if (store->identity == NULL && kind != TCONV_STORED_MACHINE) return NULL;
    char *text = tconv_store_find(store, kind, key);
    if (text == NULL) {
        void *first = NULL; /* another thread's */
        text = load_text(store, kind, key);
        /* Each plan asks for the fields: memory knows, too, that there are none. */
        if (text == NULL && kind == TCONV_STORED_MACHINE) text = strdup("");
        char *own = text == NULL ? NULL : strdup(text);
        if (!tconv_store_put(store, kind, key, own, &first)) free(own);
        free(first);
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

bool tconv_store_keep_text(struct tconv_store *store, enum tconv_stored kind, const char *key,
                           const char *text, struct tconv_os_reason *reason)
{
    if (store->identity == NULL && kind != TCONV_STORED_MACHINE) return true;
    struct tconv_drawer *drawer = &store->drawer[kind];
    char *own = strdup(text);
    struct tconv_entry *entry = new_entry(key, own), *gone = entry;
    if (entry == NULL) {
        free(own);
        snprintf(reason->text, sizeof reason->text, "no memory");
        return false;
    }
    /* Under the lock, so that memory and folder have the text of one thread. */
    pthread_mutex_lock(&store->lock);
    const bool written = tconv_store_write(store, kind, key, text, strlen(text), reason);
    if (written || kind != TCONV_STORED_MACHINE) gone = put(drawer, entry);
    pthread_mutex_unlock(&store->lock);
    drop(drawer, gone);
    return written;
}
