/* SPDX-License-Identifier: Apache-2.0 */
/* A drawer in memory: values by key, of which the ones used last stay. Its owner has a lock. */
#ifndef TCONV_STORE_DRAWER_H
#define TCONV_STORE_DRAWER_H

#include <stdbool.h>

struct tconv_entry {
    struct tconv_entry *next; /* used before it */
    void *value;
    char key[];
};

struct tconv_drawer {
    int most;                     /* entries */
    void (*release)(void *value); /* called for values that go */
    struct tconv_entry *first;    /* the one used last */
};

/* An entry for tconv_drawer_put, which owns the value. NULL without memory. */
struct tconv_entry *tconv_entry_new(const char *key, void *value);

/* The value with this key, which counts as used; NULL: there is none. */
void *tconv_drawer_find(struct tconv_drawer *drawer, const char *key);

/* Puts an entry in, in place of one with its key. Returns those that have no place any more, for
 * tconv_drawer_drop: releasing them may take a while. */
struct tconv_entry *tconv_drawer_put(struct tconv_drawer *drawer, struct tconv_entry *entry);

/* Takes all entries out, likewise. */
struct tconv_entry *tconv_drawer_empty(struct tconv_drawer *drawer);

/* Releases entries that are not in the drawer any more. Needs no lock. */
void tconv_drawer_drop(const struct tconv_drawer *drawer, struct tconv_entry *first);

#endif
