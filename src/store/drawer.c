/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps values in memory, the one used last first. */
#include "store/drawer.h"

#include <stdlib.h>
#include <string.h>

struct tconv_entry *tconv_entry_new(const char *key, void *value)
{
    const size_t size = strlen(key) + 1;
    struct tconv_entry *made = malloc(sizeof *made + size);
    if (made == NULL) return NULL;
    made->next = NULL;
    made->value = value;
    memcpy(made->key, key, size);
    return made;
}

/* Takes the entry with this key out; NULL: there is none. */
static struct tconv_entry *take(struct tconv_drawer *drawer, const char *key)
{
    struct tconv_entry **link = &drawer->first, *found;
    while (*link != NULL && strcmp((*link)->key, key) != 0) link = &(*link)->next;
    found = *link;
    if (found != NULL) *link = found->next;
    return found;
}

void *tconv_drawer_find(struct tconv_drawer *drawer, const char *key)
{
    struct tconv_entry *found = take(drawer, key);
    if (found == NULL) return NULL;
    found->next = drawer->first;
    drawer->first = found;
    return found->value;
}

struct tconv_entry *tconv_drawer_put(struct tconv_drawer *drawer, struct tconv_entry *entry)
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

struct tconv_entry *tconv_drawer_empty(struct tconv_drawer *drawer)
{
    struct tconv_entry *all = drawer->first;
    drawer->first = NULL;
    return all;
}

void tconv_drawer_drop(const struct tconv_drawer *drawer, struct tconv_entry *first)
{
    for (struct tconv_entry *e = first, *next; e != NULL; e = next) {
        next = e->next;
        drawer->release(e->value);
        free(e);
    }
}
