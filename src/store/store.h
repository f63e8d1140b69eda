/* SPDX-License-Identifier: Apache-2.0 */
/* What a device object keeps beyond one call: values by kind and key, in two drawers: memory, where
 * those used last stay, and a folder, where later processes find them. A key in the folder begins
 * with the device's identity, so that others' are never taken. The public header tuning.h has the
 * rules of the folder.
 *
 * Any thread may call any function, except those that start, set and end. */
#ifndef TCONV_STORE_STORE_H
#define TCONV_STORE_STORE_H

#include "store/folder.h"

#include <pthread.h>
#include <stdbool.h>

enum tconv_stored {
    TCONV_STORED_PROGRAM,  /* in memory built programs, in the folder binaries */
    TCONV_STORED_SEARCH,   /* results of searches: texts, as the next three */
    TCONV_STORED_IMPORTED, /* results of searches that were measured elsewhere */
    TCONV_STORED_PREPARED, /* lists of prepared programs */
    TCONV_STORED_MACHINE,  /* fields of the cost model */
    TCONV_STORED_KINDS
};

/* How many programs memory has. The public headers device.h and tuning.h say the number, too. */
enum { TCONV_MOST_PROGRAMS = 256 };

struct tconv_entry {
    struct tconv_entry *next; /* used before it */
    void *value;
    char key[];
};

/* A drawer in memory. */
struct tconv_drawer {
    int most;                     /* entries */
    void *(*copy)(void *value);   /* for whoever finds a value; NULL: it cannot be copied */
    void (*release)(void *value); /* called for values that go, and by who found one */
    struct tconv_entry *first;    /* the one used last */
};

struct tconv_store {
    pthread_mutex_t lock; /* guards the drawers */
    struct tconv_drawer drawer[TCONV_STORED_KINDS];
    char *identity; /* everything that what is kept depends on besides its key; NULL: nothing is
                       kept for later processes, and no texts */
    char *folder;   /* NULL: none */
    uint64_t limit; /* bytes in the folder */
    bool programs_in_folder;
};

/* Begins without identity and folder. Programs are copied and released by these functions. False
 * without a lock. */
bool tconv_store_init(struct tconv_store *store, void *(*copy_program)(void *),
                      void (*release_program)(void *));
void tconv_store_destroy(struct tconv_store *store);

/* Takes another folder, with `programs` or without, and its text; NULL: none. Fields of the cost
 * model are then those stored there. */
void tconv_store_set_folder(struct tconv_store *store, char *folder, uint64_t limit, bool programs);

/* True if things of this kind go into the folder. */
bool tconv_store_has_folder(const struct tconv_store *store, enum tconv_stored kind);

/* A copy of what memory has with this key, which counts as used. NULL: there is none, or it cannot
 * be copied. */
void *tconv_store_find(struct tconv_store *store, enum tconv_stored kind, const char *key);

/* Puts a value into memory, which then owns it. An older one with its key is replaced; or with
 * `first`, it stays, `*first` becomes a copy of it, and the new one goes. False without memory: the
 * value is still the caller's. */
bool tconv_store_put(struct tconv_store *store, enum tconv_stored kind, const char *key,
                     void *value, void **first);

/* The text with this key, from memory or the folder. From malloc; NULL: there is none, or no
 * memory. */
char *tconv_store_text(struct tconv_store *store, enum tconv_stored kind, const char *key);

/* The same from the folder first, where another process may have replaced it. */
char *tconv_store_text_anew(struct tconv_store *store, enum tconv_stored kind, const char *key);

/* Keeps a text in both drawers, in place of an older one; "" removes it. False with a reason if the
 * folder does not take it. Then memory has it all the same, but not fields of the cost model, which
 * are as before. */
bool tconv_store_keep_text(struct tconv_store *store, enum tconv_stored kind, const char *key,
                           const char *text, struct tconv_os_reason *reason);

/* True if the folder has this. It does not count as use. */
bool tconv_store_has(const struct tconv_store *store, enum tconv_stored kind, const char *key);

/* Reads from the folder, or writes to it, as tconv_folder_load and tconv_folder_store do. */
bool tconv_store_load(const struct tconv_store *store, enum tconv_stored kind, const char *key,
                      void **bytes, struct tconv_record *record);
bool tconv_store_write(const struct tconv_store *store, enum tconv_stored kind, const char *key,
                       const void *bytes, size_t size, struct tconv_os_reason *reason);

/* The key in the folder. From malloc; NULL without memory. */
char *tconv_store_whole_key(const struct tconv_store *store, enum tconv_stored kind,
                            const char *key);

/* What a key in a folder says. */
struct tconv_stored_key {
    bool own;               /* it is of this device, driver and version */
    enum tconv_stored kind; /* TCONV_STORED_KINDS: unknown */
    const char *key;        /* "" if the kind is unknown */
    size_t identity_size;   /* bytes in front of the kind; all of them if that is unknown */
};

/* Reads a key of a folder or an exported blob, with a terminator. */
struct tconv_stored_key tconv_store_read_key(const struct tconv_store *store, const char *whole);

#endif
