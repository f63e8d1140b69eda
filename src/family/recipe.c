/* SPDX-License-Identifier: Apache-2.0 */
/* Writing recipes: small helpers that all families share. */
#include "family/family.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool tconv_recipe_table(struct tconv_recipe *recipe, size_t count)
{
    recipe->table = calloc(count, sizeof *recipe->table);
    recipe->table_count = count;
    return recipe->table != NULL;
}

void tconv_recipe_clear(struct tconv_recipe *recipe)
{
    free(recipe->table);
    recipe->table = NULL;
    recipe->table_count = 0;
}

void tconv_recipe_layout(struct tconv_recipe *recipe, const char *family,
                         const struct tconv_layer *layer, const int64_t *kernel, int axes)
{
    int used = snprintf(recipe->layout, sizeof recipe->layout,
                        "%s %s g%" PRId64 " i%" PRId64 " o%" PRId64 " k", family,
                        tconv_type_name(layer->type), layer->groups, layer->in_channels,
                        layer->out_channels);
    for (int a = 0; a < axes; a++) {
        assert(used > 0 && (size_t)used < sizeof recipe->layout);
        used += snprintf(recipe->layout + used, sizeof recipe->layout - (size_t)used, "%s%" PRId64,
                         a == 0 ? "" : "x", kernel[a]);
    }
}

static struct tconv_launch *one_more(struct tconv_launch *launches, int *count, const char *kernel)
{
    assert(*count < TCONV_MAX_LAUNCHES);
    struct tconv_launch *launch = &launches[(*count)++];
    *launch = (struct tconv_launch){.kernel = kernel, .global = {1, 1, 1}, .local = {1, 1, 1}};
    return launch;
}

struct tconv_launch *tconv_recipe_pack(struct tconv_recipe *recipe, const char *kernel)
{
    return one_more(recipe->pack, &recipe->pack_count, kernel);
}

struct tconv_launch *tconv_recipe_run(struct tconv_recipe *recipe, const char *kernel)
{
    return one_more(recipe->run, &recipe->run_count, kernel);
}

void tconv_launch_option(struct tconv_launch *launch, const char *name, int64_t value)
{
    const size_t used = strlen(launch->options);
    const int length = snprintf(launch->options + used, sizeof launch->options - used,
                                " -D%s=%" PRId64, name, value);
    assert(length > 0 && (size_t)length < sizeof launch->options - used);
    (void)length;
}

void tconv_launch_all_options(const struct tconv_launch *launch,
                              const struct tconv_request *request, char *text, size_t size)
{
    /* Where a sub-group has 16 lanes at least, Intel's compiler (IGC 1.0.12504) takes 32 unless told,
     * even if sums then go to memory; with 8 it finds the right number itself. */
    const uint32_t lanes = request->device->subgroup_least;
    char subgroup[30] = "";
    if (lanes >= 16 && request->device->kind == TCONV_DEVICE_GPU)
        snprintf(subgroup, sizeof subgroup, " -DSUBGROUP=%" PRIu32, lanes);
    snprintf(text, size, "-cl-std=CL1.2 -DTYPE_F32 -DUSE_FMA=%d -DBIAS=%d%s%s",
             request->device->fma, request->bias, subgroup, launch->options);
}

void tconv_launch_args(struct tconv_launch *launch, const enum tconv_arg *args, int count)
{
    assert(count <= TCONV_MAX_ARGS);
    memcpy(launch->args, args, (size_t)count * sizeof *args);
    launch->arg_count = count;
}

void tconv_launch_items(struct tconv_launch *launch, int dimension, int64_t count, size_t group,
                        const tconv_device_info *device)
{
    while (group > 1 &&
           (group > device->work_group_limit || group > device->work_item_limit[dimension]))
        group /= 2;
    size_t groups = ((size_t)count + group - 1) / group;
    if (dimension > 0 && groups > TCONV_GRID_LIMIT) groups = TCONV_GRID_LIMIT;
    launch->local[dimension] = group;
    launch->global[dimension] = groups * group;
}

bool tconv_refuse(struct tconv_reason *reason, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason->text, sizeof reason->text, format, arguments);
    va_end(arguments);
    return false;
}
