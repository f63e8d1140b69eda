/* SPDX-License-Identifier: Apache-2.0 */
/* What the executor of Intel's machine code works on: threads, whose lanes (channels) are
 * work-items, decoded instructions, and how these read and write registers. Words of the manuals
 * "Intel Iris Xe MAX Graphics Open Source Programmer's Reference Manual", volumes 2a and 9. */
#ifndef DEVICE_TESTS_EXECUTED_INTEL_THREAD_H
#define DEVICE_TESTS_EXECUTED_INTEL_THREAD_H

#include "executed/launch.h"
#include "executed/numbers.h"

#include <math.h>

enum { MOST_LANES = 32, MOST_OPERANDS = 4, MOST_REGISTERS = 256, MOST_REGISTER_BYTES = 64 };

/* One file of bytes has all registers that instructions address by bytes: the general ones, then
 * the flags f0 to f3, control, the mask of lanes that execute, and addresses. */
enum {
    FLAGS = MOST_REGISTERS * MOST_REGISTER_BYTES,
    CONTROL = FLAGS + 16,
    CHANNELS = CONTROL + 16,
    ADDRESSES = CHANNELS + 16,
    FILE_BYTES = ADDRESSES + 64,
    ACCUMULATED = 256 /* elements of the accumulators */
};

enum type { UB, B, UW, W, UD, D, UQ, Q, HF, BF, F, DF, V, UV };

struct operand {
    /* PACKED: eight numbers of 4 bits */
    enum { NOTHING, NUMBER, PACKED, REGISTER, ACCUMULATOR } kind;
    enum type type;
    bool negate, absolute, complement;
    int count;               /* registers of a message's operand */
    uint16_t at[MOST_LANES]; /* of each lane: the first byte in the file, the element of the
                                accumulators, or a packed number */
    uint64_t bits;           /* of a number */
};

enum condition { NO_CONDITION, EQ, NE, LT, LE, GT, GE };

/* What a message does, which its descriptor says. */
struct message {
    enum { GLOBAL, LOCAL, HEAP, SURFACE } where;
    enum { LOAD, STORE, OR, FENCE, SIGNAL, END } what;
    bool block;         /* one address for consecutive elements; else one for each lane */
    bool wide;          /* addresses of 64 bits */
    int surface;        /* number in the binding table */
    int bytes;          /* of an element in memory */
    int alignment;      /* what addresses are multiples of */
    int register_bytes; /* of an element in a register */
    int elements;       /* of a lane, or of the block */
    int parts[4];       /* which elements of four these are */
    int lanes;          /* that a component has room for */
    int header;         /* the byte of the address in a block's first register */
};

struct thread;
struct instruction;
typedef void instruction_function(struct thread *thread, const struct instruction *instruction);

struct instruction {
    instruction_function *run;
    struct operand operand[MOST_OPERANDS]; /* the result is the first */
    int operand_count;
    char name[24];
    int line;        /* in the text */
    int size, first; /* lanes `first` to first + size - 1 */
    bool all_lanes;  /* those that do not execute, too */
    int predicate;   /* bit of the flags for lane 0; -1: none */
    bool inverted;   /* of the predicate */
    enum condition condition;
    int condition_flag; /* bit of the flags for lane 0 */
    bool saturate;
    bool accumulates; /* the result goes to the accumulator, too; of mach the high bits */
    uint8_t truth;    /* bfn: the result for each combination of bits */
    int target;       /* index of an instruction */
    struct message message;
};

/* What a kernel gets before it begins, as the compiler lays it out. */
enum payload_kind {
    IGNORED,
    GLOBAL_OFFSET,
    LOCAL_SIZE,
    GLOBAL_SIZE,
    GROUP_COUNT,
    DIMENSIONS,
    ADDRESS,
    VALUE,
    SURFACE_OFFSET,
    LOCAL_POINTER
};

struct payload_entry {
    enum payload_kind what;
    int offset, size, argument, source;
};

enum { MOST_ENTRIES = 96, MOST_SURFACES = 32 };

struct kernel {
    char name[100];
    int entry; /* index of its first instruction */
    int lanes;
    uint32_t local_bytes;
    int inline_bytes; /* of the payload, which are in r1 from the begin on */
    int item_bytes;   /* of the numbers of a thread's work-items */
    struct payload_entry list[MOST_ENTRIES];
    int count;
    int surface[MOST_SURFACES]; /* arguments of the binding table */
};

struct code {
    struct instruction *list;
    int count;
    struct kernel *kernels;
    int kernel_count;
    int register_bytes;
};

/* A work-group. */
struct group {
    const struct code *code;
    const struct kernel *kernel;
    struct memory *memory;
    struct local_memory local;
    uint64_t heap;                   /* address of the payload */
    uint64_t surface[MOST_SURFACES]; /* addresses */
    uint32_t number;                 /* from 1 on, in the order of execution */
};

struct thread {
    enum wave_state state; /* the first member: launch.h */
    uint8_t file[FILE_BYTES];
    uint64_t accumulator[ACCUMULATED];
    uint32_t next[MOST_LANES]; /* where a lane that waits goes on */
    uint32_t active;           /* lanes that execute */
    uint32_t at, waiting;      /* the instruction; the first that waiting lanes go on at */
    bool signalled;            /* to the barrier */
    bool unfenced;             /* stores to local memory have no fence behind them yet */
    int lanes, number;
    struct group *group;
};

/* Ends the thread; the launch fails with this text unless it already failed. */
void thread_fail(struct thread *thread, const struct instruction *instruction, const char *format,
                 ...) __attribute__((format(printf, 3, 4)));

/* Lanes of an instruction that write: bit 0 is its first lane. */
uint32_t lanes_of(const struct thread *thread, const struct instruction *instruction);

/* Lanes of an instruction for which its predicate holds; all without one. */
uint32_t predicated(const struct thread *thread, const struct instruction *instruction);

/* Active lanes of `taken` go to an instruction, the others to the next one. */
void thread_branch(struct thread *thread, uint32_t taken, int target);

/* Chooses the lanes that execute next: those that are furthest behind. goto and join of code that
 * was structured give the same. */
void thread_choose(struct thread *thread);

/* Sets the host's rounding as the thread's control register says. */
void thread_set_rounding(const struct thread *thread);

static inline int type_bytes(enum type type)
{
    static const uint8_t bytes[] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 2, 2};
    return bytes[type];
}

static inline bool is_floating(enum type type)
{
    return type >= HF && type <= DF;
}

/* Loops over lanes of a mask. */
#define FOR_LANES(mask, lane)                                                                      \
    for (int lane = 0; lane < MOST_LANES; lane++)                                                  \
        if ((mask) >> lane & 1)

/* Which numbers an instruction computes with; any: its function looks at the types itself. */
enum class { ANY, INTEGERS, FLOATS, DOUBLES };

/* A mnemonic and what executes it; lists end with NULL. */
struct named_instruction {
    const char *name;
    enum class class;
    instruction_function *run;
};
extern const struct named_instruction arithmetic_instructions[];

instruction_function run_message, go_to, jump, wait_at_barrier, do_nothing;

/* Reads FOLDER/NUMBER.s, the text of all kernels of a program. False after a message on stderr. */
bool code_read_text(struct code *code, char *text);

/* Writes what a descriptor says. `name` is the message's, "load.slm". False: it is unknown. */
bool message_read(struct message *message, const char *name, uint32_t descriptor, int size,
                  int register_bytes);

/* Reads the text in which the compiler describes kernels. False if it lacks something. */
bool kernels_read(struct code *code, char *text);

#endif
