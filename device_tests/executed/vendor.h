/* SPDX-License-Identifier: Apache-2.0 */
/* What executes the code of one vendor's processors: executed_code.c is linked with one vendor's
 * folder, which defines these functions, and is then the program that executes its code.
 * executed_code.py compiles the code, as VENDOR/programs.py says.
 *
 * Code is executed one work-group after another; waves of a work-group take turns. */
#ifndef DEVICE_TESTS_EXECUTED_VENDOR_H
#define DEVICE_TESTS_EXECUTED_VENDOR_H

#include "cases.h"
#include "memory.h"

/* ---- before programs are compiled ---- */

/* The name that described.h has for the device of a case, or NULL if the case's target is none of
 * this vendor's. */
const char *vendor_device(const struct executed_case *one);

/* More options of the compiler for a case: "", or a text that begins with a space. */
const char *vendor_options(const struct executed_case *one);

/* ---- programs ---- */

/* A loaded program; the vendor's own. */
struct code;

/* Reads the files PATH.* that VENDOR/programs.py wrote. NULL after a message on stderr. */
struct code *code_load(const char *path, const char *target);

void code_free(struct code *code);

/* A number that is the same for programs of different targets if they differ in nothing that is
 * executed: a case with equal programs is executed for the first target only. 0: never the same. */
uint64_t code_identity(const char *path);

/* ---- launches ---- */

/* The kernel arguments of a launch, in order: addresses and numbers of 8 bytes, or local memory. */
struct kernel_argument {
    uint64_t value;
    bool local; /* the value is a number of bytes */
};
enum { MOST_ARGUMENTS = 24 };

/* Cycles of accesses to local memory, and how many they would be without bank conflicts. */
struct bank_cycles {
    uint64_t taken, least;
};

struct dispatch {
    const char *kernel;
    uint64_t groups[3], first_group; /* along dimension 0, as a global offset says it */
    uint32_t local[3];
    struct kernel_argument argument[MOST_ARGUMENTS];
    int argument_count;
    struct bank_cycles *banks; /* of each operation of the program; NULL: they are not counted */
    uint64_t seed; /* of a random schedule of waves; 0: each goes on until it waits or ends */
};

/* Executes a launch, after memory_begin_launch. False if it failed; memory->failed says why, and
 * names instruction, lane and wave. */
bool code_run(const struct code *code, const struct dispatch *dispatch, struct memory *memory);

/* ---- bank conflicts ---- */

/* The operations of a program, and what one is: "ds_read_b128 at 0x1c40". */
int code_operation_count(const struct code *code);
void code_operation_text(const struct code *code, int operation, char *text, size_t size);

#endif
