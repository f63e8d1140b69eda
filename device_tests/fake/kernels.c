/* SPDX-License-Identifier: Apache-2.0 */
/* The library's kernels on the fake implementation (fake.h): what they compute, the oracle
 * computes.
 *
 * The linker puts a function between the library and tconv_kernel_plan_write, which remembers each
 * kernel plan with its layer. A launch names its kernel plan by the table among its arguments. The
 * launches of a kernel plan behave like those of the real one towards the host:
 *
 *   pack       puts the weights into the packed filter, in the order [group][in][out][taps].
 *   run        A launch that writes no output fills the workspace with a mark of the data; one
 *              behind it that writes outputs needs the mark, else its outputs are junk. Launches
 *              that write outputs share them, and so do pieces of one.
 *
 * Each argument must be of the kind that the kernel plan says, begin at a multiple of its elements'
 * size, and hold the bytes that the real kernel may touch. */
#include "fake.h"

#include "algorithm/registry.h"
#include "base/element_types.h"
#include "base/view.h"
#include "oracle/oracle.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BUCKETS = 1024, AXES = TCONV_MAX_AXES };

/* A kernel plan that the library wrote. */
struct known {
    struct known *next;
    uint64_t hash;
    int64_t *table;
    size_t table_bytes;
    char types[TCONV_MAX_OPTIONS];
    struct tconv_loops loops;
    tconv_epilogue epilogue;
    int pack_count, run_count;
    struct tconv_launch pack[TCONV_MAX_LAUNCHES], run[TCONV_MAX_LAUNCHES];
    uint64_t filter_bytes, workspace_bytes;
    size_t unit[TCONV_ARG_LOCAL + 1];
    /* The layer as a problem, whose filter is the packed one. */
    tconv_problem problem;
    tconv_geometry geometry;
    struct tconv_view output;
};

/* Threads write kernel plans while others launch; what stands in a bucket's list never changes. */
static struct known *buckets[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t hash_more(uint64_t hash, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i += sizeof hash) {
        uint64_t word = 0;
        memcpy(&word, (const unsigned char *)bytes + i,
               size - i < sizeof word ? size - i : sizeof word);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return hash;
}

static uint64_t hash_of(const void *bytes, size_t size)
{
    return hash_more(size + 1, bytes, size);
}

/* ---- the layer as a problem ---- */

/* The residual's step along an axis, from the relation of both indices. */
static int64_t residual_step(const struct tconv_loops *loops, int64_t output_step)
{
    int64_t step = 0, rest = output_step;
    if (loops->residual_axes == 0) return output_step;
    for (int i = 0; i < loops->residual_axes; i++) {
        step += rest / loops->residual_step[i][0] * loops->residual_step[i][1];
        rest %= loops->residual_step[i][0];
    }
    return step;
}

/* The type of weights in an equivalent filter, and in a packed one unless the given one is packed.
 */
static tconv_type weight_type(const struct tconv_loops *l)
{
    return tconv_weight_type(l->data_type, l->filter_type);
}

static void make_problem(struct known *k)
{
    const struct tconv_loops *l = &k->loops;
    tconv_problem *p = &k->problem;
    tconv_geometry *g = &k->geometry;
    *p = (tconv_problem)TCONV_PROBLEM_INIT;
    *g = (tconv_geometry)TCONV_GEOMETRY_INIT;
    p->operation = TCONV_GROUP_CONV_BACKPROP;
    p->data_type = l->data_type;
    p->filter_type = weight_type(l);
    p->output_type = g->output_type = l->output_type;
    p->data_steps.count = p->output_steps.count = p->residual_steps.count = l->axes + 2;
    p->data_steps.value[0] = l->data_batch_step;
    p->data_steps.value[1] = l->data_channel_step;
    p->output_steps.value[0] = l->output_batch_step;
    p->output_steps.value[1] = l->output_channel_step;
    p->filter = (tconv_shape){l->axes + 3, {l->groups, l->in_channels, l->out_channels}};
    g->data_format = TCONV_NCX;
    g->axes = l->axes;
    g->batch = l->batch;
    g->groups = l->groups;
    g->group_in_channels = l->in_channels;
    g->group_out_channels = l->out_channels;
    for (int a = 0; a < l->axes; a++) {
        const struct tconv_axis *axis = &l->axis[a];
        g->input[a] = axis->input;
        g->kernel[a] = axis->kernel;
        g->stride[a] = axis->stride;
        g->dilation[a] = axis->dilation;
        g->pad_begin[a] = axis->pad;
        g->output[a] = axis->output;
        p->filter.dim[a + 3] = axis->kernel;
        p->data_steps.value[a + 2] = axis->data_step;
        p->output_steps.value[a + 2] = axis->output_step;
    }
    for (int a = 0; a < l->axes + 2; a++)
        p->residual_steps.value[a] = residual_step(l, p->output_steps.value[a]);
    tconv_count_bytes(p, g);
    k->output = tconv_view_of(p, g, TCONV_SPACED_OUTPUT);
}

static uint64_t weights(const struct tconv_loops *l)
{
    uint64_t count = (uint64_t)(l->groups * l->in_channels * l->out_channels);
    for (int a = 0; a < l->axes; a++) count *= (uint64_t)l->axis[a].kernel;
    return count;
}

/* ---- kernel plans ---- */

tconv_status __real_tconv_kernel_plan_write(const struct tconv_request *request,
                                            const struct tconv_candidate *candidate,
                                            struct tconv_kernel_plan *kernel_plan,
                                            tconv_error *error);
tconv_status __wrap_tconv_kernel_plan_write(const struct tconv_request *request,
                                            const struct tconv_candidate *candidate,
                                            struct tconv_kernel_plan *kernel_plan,
                                            tconv_error *error);

static void remember(const struct tconv_request *request, const struct tconv_candidate *candidate,
                     const struct tconv_kernel_plan *p)
{
    const enum tconv_packing packing = candidate->algorithm->packing;
    const size_t bytes = p->table_count * sizeof *p->table;
    char types[TCONV_MAX_OPTIONS];
    tconv_type_options(request, packing, tconv_source_type(request, candidate->algorithm), types,
                       sizeof types);
    const uint64_t hash = hash_of(p->table, bytes);
    struct known **place = &buckets[hash % BUCKETS], *k = *place;
    while (k != NULL && (k->hash != hash || k->table_bytes != bytes ||
                         memcmp(k->run, p->run, sizeof p->run) != 0 ||
                         strcmp(k->types, types) != 0 || memcmp(k->table, p->table, bytes) != 0))
        k = k->next;
    if (k != NULL) return;
    k = fake_memory(sizeof *k);
    k->hash = hash;
    k->table_bytes = bytes;
    k->table = fake_memory(bytes);
    memcpy(k->table, p->table, bytes);
    memcpy(k->types, types, sizeof types);
    k->loops = *request->loops;
    k->epilogue = *request->epilogue;
    k->pack_count = p->pack_count;
    k->run_count = p->run_count;
    memcpy(k->pack, p->pack, sizeof p->pack);
    memcpy(k->run, p->run, sizeof p->run);
    k->filter_bytes = p->filter_bytes;
    k->workspace_bytes = p->workspace_bytes;
    for (int arg = 0; arg <= TCONV_ARG_LOCAL; arg++)
        k->unit[arg] = tconv_arg_unit(request, packing, (enum tconv_arg)arg);
    make_problem(k);
    k->next = *place;
    *place = k;
}

tconv_status __wrap_tconv_kernel_plan_write(const struct tconv_request *request,
                                            const struct tconv_candidate *candidate,
                                            struct tconv_kernel_plan *kernel_plan,
                                            tconv_error *error)
{
    const tconv_status status =
        __real_tconv_kernel_plan_write(request, candidate, kernel_plan, error);
    if (status != TCONV_OK) return status;
    pthread_mutex_lock(&lock);
    remember(request, candidate, kernel_plan);
    pthread_mutex_unlock(&lock);
    return TCONV_OK;
}

/* ---- launches ---- */

/* A launch with its arguments by their roles. */
struct bound {
    const struct known *known;
    const struct tconv_launch *launch;
    bool packs;
    double first, count; /* the part of the launch's work-groups that this one runs, of 1 */
    unsigned char *place[TCONV_ARG_LOCAL + 1]; /* NULL: it has no such argument */
    uint64_t begin[TCONV_ARG_LOCAL + 1], size[TCONV_ARG_LOCAL + 1]; /* in its memory, and of it */
};

static bool has(const struct tconv_launch *launch, enum tconv_arg arg)
{
    for (int i = 0; i < launch->arg_count; i++)
        if (launch->args[i] == arg) return true;
    return false;
}

/* Phases of an output channel that have a filter, a bias, a scale and a slope each. */
static uint64_t own_phases(const struct tconv_loops *loops)
{
    const struct tconv_equivalent *e = &loops->equivalent;
    uint64_t count = 1;
    for (int a = 0; a < e->axes; a++)
        if (e->phase_step[a] > 0) count *= (uint64_t)e->factor[a];
    return count;
}

/* Elements of the filter as the caller has it. */
static uint64_t given_weights(const struct tconv_loops *loops)
{
    const struct tconv_equivalent *e = &loops->equivalent;
    uint64_t count = (uint64_t)(loops->groups * loops->in_channels * loops->out_channels);
    if (e->axes == 0) return weights(loops);
    count *= own_phases(loops);
    for (int a = 0; a < e->axes; a++) count *= (uint64_t)e->kernel[a];
    return count;
}

static uint64_t bytes_needed(const struct bound *b, enum tconv_arg arg)
{
    const struct known *k = b->known;
    const uint64_t channels = (uint64_t)(k->loops.groups * k->loops.out_channels) *
                              own_phases(&k->loops);
    switch (arg) {
    case TCONV_ARG_DATA: return k->geometry.data_bytes;
    case TCONV_ARG_WEIGHTS: return given_weights(&k->loops) * tconv_type_size(k->loops.filter_type);
    case TCONV_ARG_EQUIVALENT: return weights(&k->loops) * tconv_type_size(weight_type(&k->loops));
    case TCONV_ARG_FILTER:
    case TCONV_ARG_FLAGS: return k->filter_bytes;
    case TCONV_ARG_OUTPUT: return k->geometry.output_bytes;
    case TCONV_ARG_RESIDUAL: return k->geometry.residual_bytes;
    case TCONV_ARG_WORKSPACE: return k->workspace_bytes;
    default: return channels * k->unit[arg];
    }
}

/* Empty data have no buffer. A kernel that packs has the parameters of the one that computes, and
 * leaves alone those of the epilogue. */
static bool may_be_missing(const struct bound *b, enum tconv_arg arg)
{
    return bytes_needed(b, arg) == 0 ||
           (b->packs && arg >= TCONV_ARG_BIAS && arg <= TCONV_ARG_RESIDUAL);
}

/* The piece of the launch, or its share: one work-group then stands for those from x to y. */
static bool bind_share(const struct fake_launch *launch, const struct fake_argument *a,
                       struct bound *b)
{
    const size_t *global = b->launch->global, *local = b->launch->local;
    cl_int2 share;
    if (a->kind != FAKE_VALUE || a->size != sizeof share) return false;
    memcpy(&share, a->value, sizeof share);
    if (share.s[1] == 0) return share.s[0] == 0;
    for (int i = 0; i < 3; i++)
        if (launch->global[i] != local[i]) return false;
    const int groups = (int)(global[0] / local[0]);
    b->first = (double)share.s[0] / groups;
    b->count = (double)(share.s[1] - share.s[0]) / groups;
    return share.s[0] >= 0 && share.s[0] < share.s[1] && share.s[1] <= groups;
}

/* Binds the arguments of a launch. False if its kernel plan says otherwise. */
static bool bind(const struct fake_launch *launch, struct bound *b)
{
    const struct fake_argument *a = launch->arguments, *end = a + launch->count;
    for (int i = 0; i < b->launch->arg_count; i++) {
        const enum tconv_arg arg = b->launch->args[i];
        if (!tconv_arg_used(&b->known->epilogue, arg)) continue;
        if (a == end) return false;
        const struct fake_argument *memory = a++;
        if (arg == TCONV_ARG_LOCAL) {
            /* Local memory of the size of a handle looks like no buffer. */
            const bool is_local = memory->kind == FAKE_LOCAL ||
                                  (memory->kind == FAKE_VALUE && memory->size == sizeof(cl_mem));
            if (!is_local || memory->size != b->launch->local_bytes) return false;
            continue;
        }
        if (arg == TCONV_ARG_FIRST) {
            if (memory->kind != FAKE_VALUE || memory->size != sizeof b->launch->first ||
                memcmp(memory->value, &b->launch->first, sizeof b->launch->first) != 0)
                return false;
            continue;
        }
        if (arg == TCONV_ARG_SHARE) {
            if (!bind_share(launch, memory, b)) return false;
            continue;
        }
        const bool is_memory = memory->kind == FAKE_BUFFER || memory->kind == FAKE_POINTER;
        if (arg == TCONV_ARG_TABLE) {
            if (!is_memory) return false;
            continue;
        }
        if (a == end || a->kind != FAKE_VALUE || a->size != sizeof(cl_ulong)) return false;
        cl_ulong offset;
        memcpy(&offset, a++->value, sizeof offset);
        if (arg == TCONV_ARG_NOTHING) {
            if (is_memory) return false;
            continue;
        }
        if (!is_memory && !may_be_missing(b, arg)) return false;
        if (!is_memory) continue;
        b->begin[arg] = offset * b->known->unit[arg];
        b->size[arg] = memory->size;
        b->place[arg] = memory->memory + b->begin[arg];
    }
    return a == end;
}

/* The table of a launch: the last buffer among its arguments. */
static const struct fake_argument *table_of(const struct fake_launch *launch)
{
    unsigned i = launch->count;
    while (i > 0 && (launch->arguments[i - 1].kind == FAKE_LOCAL ||
                     launch->arguments[i - 1].kind == FAKE_VALUE))
        i--;
    return i > 0 && launch->arguments[i - 1].kind == FAKE_BUFFER ? &launch->arguments[i - 1] : NULL;
}

/* The program's options end with those of the launch. */
static bool has_options(const struct fake_launch *launch, const struct bound *b)
{
    const size_t all = strlen(launch->options), own = strlen(b->launch->options);
    return all >= own && strcmp(launch->options + all - own, b->launch->options) == 0;
}

static bool has_extents(const struct fake_launch *launch, struct bound *b)
{
    bool same = launch->offset[0] + launch->global[0] <= b->launch->global[0];
    for (int i = 0; i < 3; i++)
        same = same && launch->local[i] == b->launch->local[i] &&
               (i == 0 || launch->global[i] == b->launch->global[i] ||
                has(b->launch, TCONV_ARG_SHARE));
    b->first = (double)launch->offset[0] / (double)b->launch->global[0];
    b->count = (double)launch->global[0] / (double)b->launch->global[0];
    return same;
}

/* The kernel that makes the equivalent filter of a convolution; its program has the filter's type
 * alone. */
static bool adds_up(const char *kernel)
{
    return strcmp(kernel, "tconv_equivalent") == 0;
}

static const struct known *first_in(uint64_t hash)
{
    pthread_mutex_lock(&lock);
    const struct known *k = buckets[hash % BUCKETS];
    pthread_mutex_unlock(&lock);
    return k;
}

static bool find(const struct fake_launch *launch, struct bound *b)
{
    const struct fake_argument *table = table_of(launch);
    if (table == NULL) return false;
    const uint64_t hash = hash_of(table->memory, table->size);
    for (const struct known *k = first_in(hash); k != NULL; k = k->next) {
        if (k->hash != hash || k->table_bytes != table->size ||
            memcmp(k->table, table->memory, table->size) != 0 ||
            (strstr(launch->options, k->types) == NULL && !adds_up(launch->kernel)))
            continue;
        for (int i = 0; i < k->pack_count + k->run_count; i++) {
            *b = (struct bound){.known = k, .packs = i < k->pack_count};
            b->launch = b->packs ? &k->pack[i] : &k->run[i - k->pack_count];
            if (strcmp(b->launch->kernel, launch->kernel) == 0 && has_options(launch, b) &&
                has_extents(launch, b) && bind(launch, b))
                return true;
        }
    }
    return false;
}

/* A kernel of the tests: it tells at which address a kernel sees a buffer. */
static bool is_where(const struct fake_launch *launch)
{
    return strcmp(launch->kernel, "where") == 0 && launch->count == 2;
}

/* The number of a macro in the options of a launch's program; 0 if it has none. */
static size_t macro(const struct fake_launch *launch, const char *definition)
{
    const char *at = strstr(launch->options, definition);
    return at == NULL ? 0 : (size_t)strtoull(at + strlen(definition), NULL, 10);
}

/* Whether a kernel of cl/any/roofline.cl writes to its first argument, and how many floats. */
static bool is_roofline(const struct fake_launch *launch, size_t *floats)
{
    const size_t chunk = macro(launch, " -DCHUNK=");
    *floats = 0;
    if (chunk == 0) return false;
    if (strcmp(launch->kernel, "peak") == 0) *floats = launch->global[0];
    if (strcmp(launch->kernel, "triad") == 0)
        *floats = launch->global[0] * chunk * macro(launch, " -DVW=");
    return *floats > 0 || strcmp(launch->kernel, "empty") == 0;
}

static cl_int check(struct fake_launch *launch)
{
    struct bound b;
    size_t floats;
    if (is_where(launch)) return CL_SUCCESS;
    if (is_roofline(launch, &floats)) {
        if (floats > 0 && launch->arguments[0].size < floats * sizeof(float))
            fake_die("%s writes %zu floats to %zu bytes", launch->kernel, floats,
                     launch->arguments[0].size);
        return CL_SUCCESS;
    }
    if (!find(launch, &b))
        fake_die("no kernel plan has this launch of %s with \"%s\"", launch->kernel,
                 launch->options);
    for (int arg = 0; arg <= TCONV_ARG_LOCAL; arg++) {
        if (b.place[arg] == NULL) continue;
        const uint64_t bytes = bytes_needed(&b, (enum tconv_arg)arg);
        if ((uintptr_t)b.place[arg] % b.known->unit[arg] != 0)
            fake_die("%s accesses elements of %zu bytes at %p, role %d", launch->kernel,
                     b.known->unit[arg], (void *)b.place[arg], arg);
        if (b.begin[arg] > b.size[arg] || b.size[arg] - b.begin[arg] < bytes)
            fake_die("%s needs %llu bytes from byte %llu on of an argument of %llu bytes, role %d",
                     launch->kernel, (unsigned long long)bytes, (unsigned long long)b.begin[arg],
                     (unsigned long long)b.size[arg], arg);
    }
    return CL_SUCCESS;
}

/* ---- what launches do ---- */

/* Adds up the weights of a convolution behind an upsampling, one after another, tap by tap; or
 * finds the one of a convolution and pixel shuffle. Writes a part of the equivalent filter. */
static void add_up(const struct tconv_loops *l, const struct tconv_equivalent *e,
                   const unsigned char *given, unsigned char *equivalent, double first, double part)
{
    const tconv_type type = weight_type(l);
    const size_t size = tconv_type_size(type);
    const double count = (double)e->elements;
    for (int64_t i = (int64_t)(count * first + 0.5), last = (int64_t)(count * (first + part) + 0.5);
         i < last; i++) {
        int64_t rest = i, t[TCONV_MAX_AXES], points = 1, phase = 0;
        for (int a = e->axes - 1; a >= 0; a--) {
            t[a] = rest % e->taps[a];
            rest /= e->taps[a];
            points *= e->kernel[a];
            phase += t[a] % e->factor[a] * e->phase_step[a];
        }
        const int64_t co = rest % l->out_channels, ci = rest / l->out_channels % l->in_channels;
        const int64_t at = rest / l->out_channels / l->in_channels * e->group_step +
                           ci * e->in_step + co * e->out_step + phase;
        int64_t found = 0;
        int reached = 0;
        double sum = 0;
        for (int64_t p = 0; p < points; p++) {
            int64_t place = at, left = p;
            bool reaches = true;
            for (int a = e->axes - 1; a >= 0; a--) {
                const int64_t j = left % e->kernel[a];
                const int64_t over = t[a] - e->dilation[a] * (e->kernel[a] - 1 - j);
                reaches = reaches && over >= 0 && over < e->factor[a];
                place += j * e->step[a];
                left /= e->kernel[a];
            }
            if (!reaches) continue;
            reached++;
            sum += tconv_oracle_read(l->filter_type, given, place);
            found = place;
        }
        if (reached == 1 && type == l->filter_type) /* integers need not fit a double */
            memcpy(equivalent + (size_t)i * size, given + (size_t)found * size, size);
        else
            tconv_oracle_write(type, equivalent, i, sum);
    }
}

/* Whether an upsampling's packed filter is made from the given one; then it has its elements. */
static bool packs_given(const struct known *k)
{
    return k->loops.equivalent.axes > 0 && !has(&k->pack[0], TCONV_ARG_EQUIVALENT);
}

/* How the filter of an upsampling becomes the equivalent one when it is packed as it is: dense. */
static struct tconv_equivalent dense_given(const struct tconv_loops *l)
{
    struct tconv_equivalent e = l->equivalent;
    e.in_step = 1;
    for (int a = e.axes - 1; a >= 0; a--) {
        e.step[a] = e.in_step;
        e.in_step *= e.kernel[a];
    }
    e.out_step = e.in_step * l->in_channels;
    e.group_step = e.out_step * l->out_channels;
    return e;
}

/* Where the given filter of an upsampling has weight `i` of the dense one. */
static int64_t given_place(const struct tconv_loops *l, int64_t i)
{
    const struct tconv_equivalent *e = &l->equivalent;
    int64_t at = 0;
    for (int a = e->axes - 1; a >= 0; a--) {
        at += i % e->kernel[a] * e->step[a];
        i /= e->kernel[a];
    }
    at += i % l->in_channels * e->in_step;
    i /= l->in_channels;
    return at + i % l->out_channels * e->out_step + i / l->out_channels * e->group_step;
}

/* Where the filter that is packed has weight `i` of the packed one. */
static int64_t place_of(const struct tconv_loops *l, int64_t i)
{
    int64_t at = 0;
    for (int a = l->axes - 1; a >= 0; a--) {
        at += i % l->axis[a].kernel * l->axis[a].filter_step;
        i /= l->axis[a].kernel;
    }
    at += i % l->out_channels * l->filter_out_step;
    i /= l->out_channels;
    return at + i % l->in_channels * l->filter_in_step + i / l->in_channels * l->filter_group_step;
}

static void pack(const struct bound *b)
{
    const struct known *k = b->known;
    const struct tconv_loops *l = &k->loops;
    const bool given = packs_given(k);
    const double count = (double)(given ? given_weights(l) : weights(l));
    const enum tconv_arg source = l->equivalent.axes > 0 && !given ? TCONV_ARG_EQUIVALENT
                                                                   : TCONV_ARG_WEIGHTS;
    const tconv_type from = source == TCONV_ARG_EQUIVALENT ? weight_type(l) : l->filter_type,
                     type = given ? l->filter_type : weight_type(l);
    const size_t size = tconv_type_size(type);
    unsigned char *to = b->place[TCONV_ARG_FILTER];
    if (b->place[source] == NULL) return; /* it prepares */
    if (count * (double)size > (double)k->filter_bytes)
        fake_die("%s has fewer bytes than weights", b->launch->kernel);
    for (uint64_t i = (uint64_t)(count * b->first + 0.5),
                  end = (uint64_t)(count * (b->first + b->count) + 0.5);
         i < end; i++) {
        const int64_t at = given ? given_place(l, (int64_t)i) : place_of(l, (int64_t)i);
        if (from == type) /* integers need not fit a double */
            memcpy(to + i * size, b->place[source] + (size_t)at * size, size);
        else
            tconv_oracle_write(type, to, (int64_t)i, tconv_oracle_read(from, b->place[source], at));
    }
}

/* Whether a launch writes outputs. One that fills outputs which no tap reaches leaves them to the
 * others. */
static bool computes(const struct tconv_launch *launch)
{
    return has(launch, TCONV_ARG_OUTPUT) && has(launch, TCONV_ARG_FILTER);
}

/* Data by their marks: launches behind the first may read the workspace alone. */
enum { KEPT_DATA = 64 };
static struct {
    uint64_t mark;
    size_t size, room;
    unsigned char *bytes;
} kept[KEPT_DATA];

static void keep_data(uint64_t mark, const unsigned char *data, size_t size)
{
    static unsigned next;
    for (int i = 0; i < KEPT_DATA; i++)
        if (kept[i].mark == mark && kept[i].size == size) return;
    const unsigned place = next++ % KEPT_DATA;
    if (kept[place].room < size) kept[place].bytes = fake_memory(kept[place].room = size);
    kept[place].mark = mark;
    kept[place].size = size;
    memcpy(kept[place].bytes, data, size);
}

/* The data of a launch: its argument, or what has the mark in its workspace. NULL if nothing has.
 */
static const unsigned char *data_of(const struct bound *b)
{
    const size_t size = (size_t)b->known->geometry.data_bytes;
    uint64_t mark;
    if (b->place[TCONV_ARG_DATA] != NULL || b->place[TCONV_ARG_WORKSPACE] == NULL)
        return b->place[TCONV_ARG_DATA];
    memcpy(&mark, b->place[TCONV_ARG_WORKSPACE], sizeof mark);
    for (int i = 0; i < KEPT_DATA; i++)
        if (kept[i].mark == mark && kept[i].size == size) return kept[i].bytes;
    return NULL;
}

/* Fills the workspace with the mark of the data, a hash. */
static void mark_workspace(const struct bound *b)
{
    const size_t size = (size_t)b->known->geometry.data_bytes;
    const unsigned char *data = data_of(b);
    if (data == NULL) return;
    const uint64_t mark = hash_of(data, size);
    keep_data(mark, data, size);
    for (uint64_t i = 0; i + sizeof mark <= b->known->workspace_bytes; i += sizeof mark)
        memcpy(b->place[TCONV_ARG_WORKSPACE] + i, &mark, sizeof mark);
}

/* Whether the workspace has the mark, if an earlier launch should have left one. */
static bool has_mark(const struct bound *b)
{
    const struct known *k = b->known;
    const unsigned char *data = data_of(b);
    bool marked = false;
    for (const struct tconv_launch *l = k->run; l < b->launch; l++)
        marked = marked || (has(l, TCONV_ARG_WORKSPACE) && !computes(l));
    if (!marked || b->place[TCONV_ARG_WORKSPACE] == NULL) return true;
    if (data == NULL) return false;
    const uint64_t mark = hash_of(data, (size_t)k->geometry.data_bytes);
    for (uint64_t i = 0; i + sizeof mark <= k->workspace_bytes; i += sizeof mark)
        if (memcmp(b->place[TCONV_ARG_WORKSPACE] + i, &mark, sizeof mark) != 0) return false;
    return true;
}

/* Outputs that were computed before, by a hash of all that they depend on: tests run the same layer
 * again and again. */
enum { KEPT_OUTPUTS = 256 };
static struct {
    uint64_t key;
    size_t room;
    unsigned char *bytes;
} outputs[KEPT_OUTPUTS];

static uint64_t key_of(const struct bound *b, const struct tconv_operands *o, int64_t begin,
                       int64_t end)
{
    static const enum tconv_arg args[] = {TCONV_ARG_BIAS, TCONV_ARG_SCALE, TCONV_ARG_SLOPE,
                                          TCONV_ARG_SLOPE2, TCONV_ARG_RESIDUAL};
    const struct known *k = b->known;
    const int64_t numbers[] = {(int64_t)(uintptr_t)k, begin, end};
    uint64_t key = hash_of(numbers, sizeof numbers);
    key = hash_more(key, o->data, o->data == NULL ? 0 : (size_t)k->geometry.data_bytes);
    key = hash_more(key, o->filter,
                    (size_t)(weights(&k->loops) * tconv_type_size(weight_type(&k->loops))));
    for (size_t i = 0; i < sizeof args / sizeof *args; i++)
        if (b->place[args[i]] != NULL)
            key = hash_more(key, b->place[args[i]], (size_t)bytes_needed(b, args[i]));
    if (k->epilogue.beta != 0) key = hash_more(key, o->before, (size_t)k->geometry.output_bytes);
    return key;
}

/* The operands of one element, for an oracle that takes its channel's number of bias, scale and
 * slope: those of its phase stand there. */
static struct tconv_operands of_phase(const struct bound *b, const struct tconv_operands *o,
                                      int64_t index)
{
    const struct tconv_loops *l = &b->known->loops;
    struct tconv_operands own = *o;
    if (l->phase_axes == 0) return own;
    int64_t points = 1, rest = tconv_view_place(&b->known->output, index), at = l->phase_base;
    for (int a = 0; a < l->axes; a++) points *= l->axis[a].output;
    for (int i = 0; i < l->phase_axes; i++) {
        const struct tconv_phase_axis *p = &l->phase[i];
        const int64_t place = rest / p->output_step;
        rest %= p->output_step;
        at += (p->period == 0 ? place : (place + p->first) % p->period) * p->index_step;
    }
    const int64_t channel = index / points % (l->groups * l->out_channels);
    const enum tconv_arg args[] = {TCONV_ARG_BIAS, TCONV_ARG_SCALE, TCONV_ARG_SLOPE,
                                   TCONV_ARG_SLOPE2};
    const void **arrays[] = {&own.bias, &own.scale, &own.slope, &own.slope2};
    for (int i = 0; i < 4; i++)
        if (*arrays[i] != NULL)
            *arrays[i] = (const char *)*arrays[i] +
                         (at - channel) * (int64_t)b->known->unit[args[i]];
    return own;
}

/* The elements of a part of the outputs, one after another. */
static const unsigned char *outputs_of(const struct bound *b, const struct tconv_operands *o,
                                       int64_t begin, int64_t end)
{
    static unsigned next;
    const tconv_type type = b->known->loops.output_type;
    const size_t size = tconv_type_size(type), bytes = (size_t)(end - begin) * size;
    const uint64_t key = key_of(b, o, begin, end);
    for (int i = 0; i < KEPT_OUTPUTS; i++)
        if (outputs[i].key == key && outputs[i].room >= bytes) return outputs[i].bytes;
    const unsigned slot = next++ % KEPT_OUTPUTS;
    if (outputs[slot].room < bytes) outputs[slot].bytes = fake_memory(outputs[slot].room = bytes);
    outputs[slot].key = key;
    for (int64_t i = 0; i < end - begin; i++) {
        const struct tconv_operands own = of_phase(b, o, begin + i);
        const struct tconv_expected e = tconv_oracle_element(&own, begin + i);
        if (e.exact)
            memcpy(outputs[slot].bytes + (size_t)i * size, &e.bits, size);
        else
            tconv_oracle_write(
                type, outputs[slot].bytes, i,
                b->known->epilogue.requantize ? fmin(fmax(rint(e.value), e.low), e.high) : e.value);
    }
    return outputs[slot].bytes;
}

/* Computes a part of the outputs: the number of this launch among those that compute, and the piece
 * of it. */
static void compute(const struct bound *b)
{
    const struct known *k = b->known;
    unsigned char *sums = NULL;
    if (packs_given(k)) {
        sums = malloc((size_t)weights(&k->loops) * tconv_type_size(weight_type(&k->loops)));
        if (sums == NULL) fake_die("no memory for the equivalent filter");
        const struct tconv_equivalent given = dense_given(&k->loops);
        add_up(&k->loops, &given, b->place[TCONV_ARG_FILTER], sums, 0, 1);
    }
    const struct tconv_operands operands = {
        .problem = &k->problem,
        .geometry = &k->geometry,
        .epilogue = &k->epilogue,
        .error_factor = 1,
        .data = data_of(b),
        .filter = sums != NULL ? sums : b->place[TCONV_ARG_FILTER],
        .bias = b->place[TCONV_ARG_BIAS],
        .scale = b->place[TCONV_ARG_SCALE],
        .slope = b->place[TCONV_ARG_SLOPE],
        .slope2 = b->place[TCONV_ARG_SLOPE2],
        .residual = b->place[TCONV_ARG_RESIDUAL],
        .before = b->place[TCONV_ARG_OUTPUT],
    };
    const size_t size = tconv_type_size(k->loops.output_type);
    int launches = 0, number = 0;
    for (int i = 0; i < k->run_count; i++) {
        if (&k->run[i] == b->launch) number = launches;
        launches += computes(&k->run[i]);
    }
    const double part = (double)tconv_view_elements(&k->output) / launches;
    const int64_t begin = (int64_t)(part * (number + b->first) + 0.5),
                  end = (int64_t)(part * (number + b->first + b->count) + 0.5);
    const bool dense = tconv_view_is_dense(&k->output); /* finding places takes long */
    const unsigned char *results = has_mark(b) ? outputs_of(b, &operands, begin, end) : NULL;
    for (int64_t i = begin; i < end; i++) {
        const int64_t place = dense ? i : tconv_view_place(&k->output, i);
        unsigned char *to = b->place[TCONV_ARG_OUTPUT] + (size_t)place * size;
        if (results == NULL)
            memset(to, 0x7e, size); /* junk */
        else
            memcpy(to, results + (size_t)(i - begin) * size, size);
    }
    free(sums);
}

/* Takes the time that a device with PEAK multiply-adds in a nanosecond needs for kernel `peak`. */
static void take_time(const struct fake_launch *launch)
{
    enum { PEAK = 50 };
    int32_t steps;
    memcpy(&steps, launch->arguments[3].value, sizeof steps);
    const uint64_t ns = (uint64_t)steps * macro(launch, " -DVW=") * macro(launch, " -DCHAINS=") *
                        launch->global[0] / PEAK;
    const struct timespec time = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    nanosleep(&time, NULL);
}

static void run(const struct fake_launch *launch)
{
    struct bound b;
    size_t floats;
    if (is_roofline(launch, &floats)) {
        if (floats > 0) memset(launch->arguments[0].memory, 0, floats * sizeof(float));
        if (strcmp(launch->kernel, "peak") == 0) take_time(launch);
    } else if (is_where(launch)) {
        const cl_ulong address = (uintptr_t)launch->arguments[0].memory;
        memcpy(launch->arguments[1].memory, &address, sizeof address);
    } else if (!find(launch, &b))
        fake_die("the table of %s has changed", launch->kernel);
    else if (b.packs && adds_up(b.launch->kernel))
        add_up(&b.known->loops, &b.known->loops.equivalent, b.place[TCONV_ARG_WEIGHTS],
               b.place[TCONV_ARG_EQUIVALENT], b.first, b.count);
    else if (b.packs)
        pack(&b);
    else if (strstr(launch->options, " -DSM_90A=1") != NULL && !launch->sm_90a)
        return; /* its instructions are comments, or do something else */
    else if (computes(b.launch))
        compute(&b);
    else if (has(b.launch, TCONV_ARG_WORKSPACE))
        mark_workspace(&b);
}

__attribute__((constructor)) static void begin(void)
{
    if (dlopen("libOpenCL.so.1", RTLD_LAZY | RTLD_NOLOAD) != NULL)
        fake_die("the OpenCL loader is there, too: the library makes a call that is not faked");
    fake_set_kernels(&(struct fake_kernels){check, run});
}
