/* SPDX-License-Identifier: Apache-2.0 */
/* The interface that every algorithm implements. An algorithm is pure host arithmetic on a layer
 * and a device's properties. It enumerates candidates: tiles, each with an expected cost. For one
 * candidate it writes a kernel plan, which is plain data: what to compile, what to pass, how many
 * work-items. The folder src/plan executes kernel plans. */
#ifndef TCONV_ALGORITHM_ALGORITHM_H
#define TCONV_ALGORITHM_ALGORITHM_H

#include "algorithm/cost/machine.h"
#include "algorithm/reason.h"
#include "algorithm/tile.h"
#include "geometry/loops.h"
#include "tconv_cl/device.h"
#include "tconv_cl/epilogue.h"

enum { TCONV_GRID_LIMIT = 65535 };    /* groups along dimensions 1 and 2 */
enum { TCONV_TABLE_LIMIT = 1 << 19 }; /* numbers in a table: 4 MiB, written in a few ms */
enum { TCONV_MAX_ALGORITHMS = 32, TCONV_MAX_ARGS = 13, TCONV_MAX_LAUNCHES = 4 };

/* The binding of a kernel argument. Each buffer but the table takes two kernel arguments: the
 * buffer, and as ulong the offset at which its contents begin, in units of tconv_arg_unit. */
enum tconv_arg {
    TCONV_ARG_DATA,
    TCONV_ARG_WEIGHTS, /* the filter tensor as the caller has it */
    TCONV_ARG_FILTER,  /* the packed filter */
    TCONV_ARG_FLAGS, /* the packed filter seen as words: an algorithm may keep flags at its begin */
    TCONV_ARG_NOTHING, /* NULL for a buffer */
    TCONV_ARG_BIAS,    /* this one and the next four are left out if the epilogue has no such
                          tensor */
    TCONV_ARG_SCALE,
    TCONV_ARG_SLOPE,
    TCONV_ARG_SLOPE2,
    TCONV_ARG_RESIDUAL,
    TCONV_ARG_OUTPUT,
    TCONV_ARG_EQUIVALENT, /* the filter of the equivalent transposed convolution, while it is packed
                           */
    TCONV_ARG_WORKSPACE,
    TCONV_ARG_TABLE, /* the kernel plan's table: one kernel argument, no offset */
    TCONV_ARG_LOCAL, /* `local_bytes` of local memory: one kernel argument, no offset */
    TCONV_ARG_FIRST, /* launch->first: one kernel argument, a long */
    TCONV_ARG_SHARE, /* an int2: threads may share the launch (common/common.clh) */
    /* The same data and packed filter as an image1d_buffer_t of pixels of four elements, and as int
     * the pixel at which they begin. If the pixel is negative, the tensor has no image, and the
     * kernel reads the buffer (plan/image.c). */
    TCONV_ARG_DATA_IMAGE,
    TCONV_ARG_FILTER_IMAGE,
};

/* What EPILOGUE_PARAMETERS of cl/common/epilogue.clh stands for. */
#define TCONV_ARGS_EPILOGUE                                                                        \
    TCONV_ARG_BIAS, TCONV_ARG_SCALE, TCONV_ARG_SLOPE, TCONV_ARG_SLOPE2, TCONV_ARG_RESIDUAL,        \
        TCONV_ARG_OUTPUT

struct tconv_launch {
    const char *source; /* the file of its kernel; NULL: the algorithm's */
    const char *kernel; /* its name there */
    int64_t first;      /* TCONV_ARG_FIRST: where its own numbers begin in the table */
    char options[384]; /* the -D that it is built with, besides those of tconv_launch_all_options */
    size_t global[3], local[3];
    size_t local_bytes;
    double macs;     /* multiply-adds that it issues, also on the padding of tiles; 0: none, or not
                        counted. For predictions of speed, not for selection. */
    double trips[3]; /* average trip counts of the loops around its multiply-adds, the outermost
                        first; 0: derive from arguments. For predictions of speed only. */
    bool divides;    /* true if the work-groups along the first dimension may be launched
                        in several pieces: GROUP_NUMBER of cl/common/common.clh */
    int pieces;      /* how many */
    int arg_count;
    enum tconv_arg args[TCONV_MAX_ARGS];
    bool overflow; /* options, arguments or work-items did not fit */
};

struct tconv_kernel_plan {
    char layout[200];      /* names the packed layout: a packed filter fits every plan whose text is
                              equal */
    uint64_t filter_bytes; /* of the packed filter */
    uint64_t workspace_bytes;
    double error_factor; /* factor on the bound of rounding errors; 0: the bound of the exact
                            algorithms */
    int pack_count, run_count;
    struct tconv_launch pack[TCONV_MAX_LAUNCHES];
    struct tconv_launch run[TCONV_MAX_LAUNCHES]; /* each output is written once */
    /* Numbers that the kernels read; from malloc, freed by tconv_kernel_plan_clear. */
    int64_t *table;
    size_t table_count;
    bool overflow; /* the layout's name or the launches did not fit */
};

/* The request to an algorithm: which layer, on which device, with which epilogue. */
struct tconv_request {
    const struct tconv_loops *loops;
    /* Its vector_width counts lanes of the accumulator's type: tconv_device_for. */
    const tconv_device_info *device;
    const tconv_epilogue *epilogue;
    uint64_t workspace_limit; /* 0: none */
    tconv_math math;
    struct tconv_machine machine; /* the device as the cost model knows it, for this layer */
    unsigned refused_tiles; /* a bit for each tile, by number, that failed its probe on a matrix
                               unit which passed its trial */
};

/* The form of a weight in a packed filter. */
enum tconv_packing {
    TCONV_PACK_SUMMED, /* a number of the type that products are added up in */
    TCONV_PACK_RAW,    /* an element of the filter's type */
    TCONV_PACK_QUADS,  /* four bytes of neighbouring input channels in a word: cl/gpu/dot.clh */
    TCONV_PACK_WORDS,  /* a word of neighbouring input channels, as many as fill it:
                          cl/gpu/factors.clh */
    TCONV_PACK_CHANNEL_WORDS, /* a word of tconv_word_channels of them: cl/cpu/parts/words.clh */
};

/* What decides about the order in which an algorithm adds up the products of an output. Plans of
 * problems that differ only in batch, extents, pads and windows give an output the same bits if all
 * of that is equal. */
enum tconv_order {
    TCONV_ORDER_BY_TILE,       /* all parameters of the tile */
    TCONV_ORDER_BY_PARAMETERS, /* those in the algorithm's `order_parameters` */
    TCONV_ORDER_BY_POSITION,   /* also where the output is */
};

enum { TCONV_MAX_TILE = 12, TCONV_MAX_CANDIDATES = 6 };
enum { TCONV_ANY = -1 };

/* One way to compute a request: an algorithm with a tile, complete and checked. */
struct tconv_candidate {
    const struct tconv_algorithm *algorithm;
    struct tconv_tile tile;
    /* The expected time in units of one useful multiply-add at the device's best speed, so that
     * 1.0 * macs is perfect. */
    double cost;
};

/* The candidates of one algorithm for a request, the cheapest first. If candidates share their
 * programs, only the cheapest of them is listed. */
struct tconv_candidates {
    const struct tconv_algorithm *algorithm;
    const struct tconv_tile *wanted; /* the tile that is asked for; TCONV_ANY: any value */
    int count;
    struct tconv_candidate list[TCONV_MAX_CANDIDATES];
};

/* The devices that an algorithm is made for. It is correct on all of them. */
enum tconv_made_for {
    TCONV_FOR_ALL,
    TCONV_FOR_VECTORS, /* work-items with wide vectors: CPUs */
    TCONV_FOR_LANES,   /* work-items that are lanes: GPUs */
};

struct tconv_algorithm {
    const char *name;
    const char *summary; /* one sentence */
    const char *source;  /* the file of its kernels in cl/ */
    enum tconv_packing packing;
    enum tconv_made_for made_for;
    bool takes_empty;    /* also layers without input points */
    bool stages_locally; /* work-groups copy inputs or weights to local memory */
    enum tconv_order order;
    const char *order_parameters; /* words: parameters that decide about the order or the layout */
    bool packs_given; /* of an upsampling, packs the convolution's filter, not the equivalent one */
    /* The parameters of its tiles, in the order of texts; a NULL name ends them. The first
     * `program_parameters` of them are options of its programs. */
    struct tconv_tile_parameter parameters[TCONV_MAX_TILE];
    int program_parameters;

    /* Adds all candidates of candidates->algorithm for a request. False with a reason if there is
     * none. Algorithms that share a source share this function. */
    bool (*enumerate)(const struct tconv_request *request, struct tconv_candidates *candidates,
                      struct tconv_reason *reason);

    /* Writes the kernel plan of a candidate of this request. Returns TCONV_ERROR_HOST_MEMORY if
     * the table cannot be allocated. It cannot refuse the request. */
    tconv_status (*write)(const struct tconv_request *request,
                          const struct tconv_candidate *candidate,
                          struct tconv_kernel_plan *kernel_plan, tconv_error *error);
};

/* The algorithms in order of preference, the reference last; NULL past the end. */
const struct tconv_algorithm *tconv_algorithm_at(int index);
const struct tconv_algorithm *tconv_algorithm_named(const char *name);
int tconv_algorithm_index(const struct tconv_algorithm *algorithm);

/* Choosing a candidate (candidates.c). */

/* What a caller asks for: any algorithm, or one algorithm with the tile parameters that are not
 * TCONV_ANY. */
struct tconv_pattern {
    const struct tconv_algorithm *algorithm; /* NULL: any */
    struct tconv_tile tile;
};

/* Reads "auto" (also NULL), "NAME" or "NAME PARAMETER=VALUE ...", with spaces or commas. False with
 * a reason if the algorithm or a parameter does not exist. */
bool tconv_pattern_read(const char *text, struct tconv_pattern *pattern,
                        struct tconv_reason *reason);

/* For `enumerate`: adds a tile with its cost, if it is as wanted. */
void tconv_candidates_add(struct tconv_candidates *candidates, const struct tconv_tile *tile,
                          double cost);

/* Lists the candidates of an algorithm that match `wanted` (NULL: all). False with a reason if
 * there is none. */
bool tconv_enumerate(const struct tconv_algorithm *algorithm, const struct tconv_request *request,
                     const struct tconv_tile *wanted, struct tconv_candidates *candidates,
                     struct tconv_reason *reason);

/* Finds the cheapest candidate that matches the pattern. Algorithms whose bit (1 << index) is in
 * `excluded` are skipped. False with a reason if there is none. */
bool tconv_choose(const struct tconv_request *request, const struct tconv_pattern *pattern,
                  unsigned excluded, struct tconv_candidate *best, struct tconv_reason *reason);

/* Writes a tile as "vw=16 nx=2", as much of it as fits, with '\0'; returns the length of the whole
 * text. */
int tconv_tile_text(const struct tconv_candidate *candidate, char *text, size_t size);
enum { TCONV_TILE_TEXT = 240 }; /* bytes that suffice for it */

/* Writes the kernel plan of a candidate with the epilogue's numbers and the layout's full name.
 * Returns TCONV_ERROR_HOST_MEMORY, or TCONV_ERROR_INTERNAL if the plan exceeds a kernel plan's
 * limits. */
tconv_status tconv_kernel_plan_write(const struct tconv_request *request,
                                     const struct tconv_candidate *candidate,
                                     struct tconv_kernel_plan *kernel_plan, tconv_error *error);

void tconv_kernel_plan_clear(struct tconv_kernel_plan *kernel_plan);

/* False if something did not fit into the kernel plan. That is a defect of the algorithm; the
 * kernel plan must not be used. */
bool tconv_kernel_plan_fits(const struct tconv_kernel_plan *kernel_plan);

/* Makes the kernel plan pack the equivalent filter, which a launch before the others makes from the
 * given one (any/equivalent.c). False without memory. */
bool tconv_equivalent_write(const struct tconv_request *request,
                            struct tconv_kernel_plan *kernel_plan);

/* Writing kernel plans. */

/* For `enumerate`: false with a reason if a table has too many numbers, or if a packed filter of
 * `elements`, `bytes` each, is larger than a process can address. Both counts may be upper
 * bounds. */
bool tconv_table_fits(double numbers, struct tconv_reason *reason);
bool tconv_filter_addressable(double elements, size_t bytes, struct tconv_reason *reason);

/* Bytes of workspace that an algorithm may take: what the device allows in one buffer, or the
 * caller's limit if it is lower. */
uint64_t tconv_workspace_limit(const struct tconv_request *request);

/* A table of `count` zeros; false if host memory is missing. */
bool tconv_kernel_plan_table(struct tconv_kernel_plan *kernel_plan, size_t count);

/* Names the layout: the algorithm's own text, then groups, channels and the kernel's extents. */
void tconv_kernel_plan_layout(struct tconv_kernel_plan *kernel_plan, const char *algorithm,
                              const struct tconv_loops *loops, const int64_t *kernel, int axes);

/* Adds the packed weight to the layout's name: its packing, its bytes, and the zero point that was
 * subtracted. */
void tconv_kernel_plan_types(struct tconv_kernel_plan *kernel_plan,
                             const struct tconv_request *request, enum tconv_packing packing);

/* One more launch. */
struct tconv_launch *tconv_kernel_plan_pack(struct tconv_kernel_plan *kernel_plan,
                                            const char *kernel);
struct tconv_launch *tconv_kernel_plan_run(struct tconv_kernel_plan *kernel_plan,
                                           const char *kernel);

void tconv_launch_option(struct tconv_launch *launch, const char *name, int64_t value);

/* Whether the compiler of a device takes the option that gives a thread of Intel's GPUs 256
 * registers instead of 128; half as many threads are then resident. Adds this option. */
#define TCONV_LARGE_REGISTERS " -cl-intel-256-GRF-per-thread"
bool tconv_has_large_registers(const tconv_device_info *device);
void tconv_launch_large_registers(struct tconv_launch *launch);

/* The file of a launch's kernel. */
static inline const char *tconv_launch_source(const struct tconv_launch *launch,
                                              const struct tconv_algorithm *algorithm)
{
    return launch->source != NULL ? launch->source : algorithm->source;
}

/* Writes all build options of a program of the algorithm. False if they do not fit. */
bool tconv_launch_all_options(const struct tconv_launch *launch,
                              const struct tconv_request *request,
                              const struct tconv_algorithm *algorithm, char *text, size_t size);
enum { TCONV_MAX_OPTIONS = 664 }; /* bytes that suffice for it */

/* Binds the arguments of the launch's kernel, in the order of its parameters: TCONV_ARG_* as a
 * list, or an array of them. */
#define TCONV_LAUNCH_ARGS(launch, ...)                                                             \
    tconv_launch_args(                                                                             \
        launch, (const enum tconv_arg[]){__VA_ARGS__},                                             \
        (int)(sizeof((const enum tconv_arg[]){__VA_ARGS__}) / sizeof(enum tconv_arg)))
void tconv_launch_args(struct tconv_launch *launch, const enum tconv_arg *args, int count);

/* Work-items of a group that extends along one dimension only: `group`, or a half, a quarter and so
 * on of it, as the device allows. */
size_t tconv_group_allowed(size_t group, int dimension, const tconv_device_info *device);

/* Launches `count` work-items along a dimension, in groups of `group`, or of fewer if the device
 * allows fewer. The last group may add work-items beyond `count`; the kernel leaves them out. Some
 * devices take at most 65535 groups along dimensions 1 and 2. There may then be fewer than `count`
 * work-items, and the kernel loops with the grid's size as its step. */
void tconv_launch_items(struct tconv_launch *launch, int dimension, int64_t count, size_t group,
                        const tconv_device_info *device);

/* Element types (elements.c). */

/* Bytes of the accumulator: f32, f64, or an unsigned integer of 32 or 64 bits. */
size_t tconv_acc_bytes(const struct tconv_loops *loops);
bool tconv_adds_integers(const struct tconv_loops *loops);

/* The device as algorithms see it for a layer: vector_width counts lanes of the accumulator. */
tconv_device_info tconv_device_for(const tconv_device_info *device,
                                   const struct tconv_loops *loops);

/* Bytes of an element of a packed filter, or of any argument. The offsets of arguments count
 * elements. */
size_t tconv_packed_bytes(const struct tconv_request *request, enum tconv_packing packing);
size_t tconv_arg_unit(const struct tconv_request *request, enum tconv_packing packing,
                      enum tconv_arg arg);

/* The units of devices that a plan uses only if they passed a test. */
enum tconv_unit_use {
    TCONV_USES_NO_UNIT,
    TCONV_USES_WORDS,  /* a CPU's products of words: cl/cpu/parts/words.clh */
    TCONV_USES_MATRIX, /* a matrix unit: cl/gpu/unit/ */
};

/* What an algorithm would use for a request. How it packs weights says which unit may multiply
 * them. */
enum tconv_unit_use tconv_unit_use(const struct tconv_algorithm *algorithm,
                                   const struct tconv_request *request);

/* Whether the device's matrix unit would multiply the request's types (gpu/units.c). */
bool tconv_uses_matrix_unit(const struct tconv_request *request);

/* The matrix unit that a device uses where it does not use `unit`; TCONV_MATRIX_NONE: none. */
tconv_matrix_unit tconv_unit_behind(tconv_matrix_unit unit);

/* Of a candidate that uses a matrix unit: which one, and what plans must know of a unit that is
 * probed by one of its tiles, the trial, before any other (gpu/units.h). */
struct tconv_candidate_unit {
    tconv_matrix_unit unit;
    bool has_trial, is_trial; /* is_trial: the candidate has that tile */
    unsigned tile;            /* the bit of the candidate's tile in refused_tiles */
    struct tconv_tile trial;
    uint64_t local_memory; /* bytes that kernels may take */
};
struct tconv_candidate_unit tconv_candidate_unit(const struct tconv_request *request,
                                                 const struct tconv_candidate *candidate);

/* Input channels in a word of TCONV_PACK_CHANNEL_WORDS: 4 if the device multiplies unsigned data by
 * signed weights, and the filter as signed bytes has no zero point; else 2. */
int tconv_word_channels(const struct tconv_request *request);

/* The macro DOTS of cl/cpu/parts/words.clh, for words of this element type; 0 for types that are
 * neither bytes nor bf16. */
int tconv_dots(const tconv_device_info *device, tconv_type type);

/* True if the epilogue has that tensor, and for every argument that is not a tensor of the
 * epilogue. */
bool tconv_arg_used(const tconv_epilogue *epilogue, enum tconv_arg arg);

/* The type of the filter that an algorithm packs: the given one, or the equivalent one. */
tconv_type tconv_source_type(const struct tconv_request *request,
                             const struct tconv_algorithm *algorithm);

/* Writes the element types as options for the compiler; `filter` is the one that is read. */
int tconv_type_options(const struct tconv_request *request, enum tconv_packing packing,
                       tconv_type filter, char *text, size_t size);

/* Writes the beginning of a table: cl/common/epilogue_table.h. */
void tconv_write_epilogue(const struct tconv_request *request, int64_t *table);

/* The error of `write`: host memory for the table is missing. */
tconv_status tconv_fail_table(tconv_error *error, const struct tconv_kernel_plan *kernel_plan);

#endif
