/* SPDX-License-Identifier: Apache-2.0 */
/* Code objects, and launches of their kernels. */
#ifndef DEVICE_TESTS_AMD_DISPATCH_H
#define DEVICE_TESTS_AMD_DISPATCH_H

#include "banks.h"
#include "wave.h"

/* An ELF file with its disassembly. */
struct code_object {
    uint8_t *image; /* as a loader puts it into memory */
    uint64_t image_bytes;
    uint8_t *file;
    size_t file_bytes;
    struct program program;
    char target[20];
};

/* Reads PATH.elf and PATH.s; false after a message on stderr. */
bool code_object_read(struct code_object *code, const char *path, const char *target);

void code_object_free(struct code_object *code);

/* The kernel arguments of a launch, in order: addresses and numbers of 8 bytes, or local memory. */
struct kernel_argument {
    uint64_t value;
    bool local; /* the value is a number of bytes */
};
enum { MOST_ARGUMENTS = 24 };

struct dispatch {
    const char *kernel;
    uint64_t groups[3], first_group; /* along dimension 0, as a global offset says it */
    uint32_t local[3];
    struct kernel_argument argument[MOST_ARGUMENTS];
    int argument_count;
    struct bank_cycles *banks; /* of each operation of the program; NULL: they are not counted */
    uint64_t seed; /* of a random schedule of waves; 0: each goes on until it waits or ends */
};

/* Executes a launch. False if it failed; memory->failed says why. */
bool dispatch_run(const struct code_object *code, const struct dispatch *dispatch,
                  struct memory *memory);

#endif
