/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses layers by the options: a suite, a model, or one layer. */
#include "tool/bench/layers.h"

#include "tool/io/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Puts the options' data shape and output shape into a layer of a model. If it is one of `several`
 * layers, the model's extents stay; only an open batch is taken from the options. */
static bool complete(struct entry *entry, const tconv_shape *data, bool several)
{
    tconv_shape *own = &entry->problem.data;
    bool open = own->rank == 0, only_batch = own->rank > 0 && own->dim[0] == -1;
    for (int a = 0; a < own->rank && a < TCONV_MAX_RANK; a++) {
        open = open || own->dim[a] == -1;
        only_batch = only_batch && (a == 0 || own->dim[a] != -1);
    }
    if (data != NULL && several && only_batch)
        own->dim[0] = data->dim[0];
    else if (data != NULL && (open || !several))
        model_set_data(entry, data);
    else if (open && entry->error == NULL)
        entry->error =
            strdup("the model leaves extents of its data open: give them with --data-shape");
    return read_attribute("--output-shape", options.output_shape, entry->problem.data.rank - 2,
                          &entry->problem.output_shape);
}

/* Sets the element types that the options give. */
static void set_types(tconv_problem *p, const tconv_problem *names)
{
    if (options.data_type != NULL) p->data_type = p->filter_type = names->data_type;
    if (options.filter_type != NULL) p->filter_type = names->filter_type;
    if (options.output_type != NULL) p->output_type = names->output_type;
}
static enum exit_code layers_of_model(struct suite *suite)
{
    tconv_problem names = TCONV_PROBLEM_INIT; /* only to check what is among the options */
    tconv_shape data;
    enum exit_code code = refuse_attributes("layers of a --model have their own attributes", false);
    if (code != EXIT_DONE) return code;
    if (!read_scalars(&names) ||
        (options.data_shape != NULL &&
         !read_numbers("--data-shape", options.data_shape, data.dim, TCONV_MAX_RANK, &data.rank)))
        return EXIT_REQUEST_WRONG;
    if ((code = model_read(options.model, suite)) != EXIT_DONE) return code;
    if (options.layer != NULL) {
        const struct entry *only = model_layer(options.model, suite, options.layer);
        if (only == NULL) return EXIT_REQUEST_WRONG;
        char id[32];
        snprintf(id, sizeof id, "%s", only->id);
        if ((code = suite_select(suite, id)) != EXIT_DONE) return code;
    }
    bool fits = options.data_shape == NULL ||
                suite->count == 1; /* a single layer gets its own message */
    for (size_t i = 0; i < suite->count && !fits; i++)
        fits = model_data_fits(&suite->entries[i], &data);
    if (!fits)
        return wrong_request("--data-shape %s fits no layer of --model %s", options.data_shape,
                             options.model);
    for (size_t i = 0; i < suite->count; i++) {
        struct entry *entry = &suite->entries[i];
        set_types(&entry->problem, &names);
        if (!complete(entry, options.data_shape != NULL ? &data : NULL, suite->count > 1))
            return EXIT_REQUEST_WRONG;
        if (entry->error == NULL) tell_notes(entry->layer, &entry->problem);
    }
    return EXIT_DONE;
}

/* The layers that `read` gives, as --ids, --type and --data-format say. */
static enum exit_code layers_of_suite(struct suite *suite, const char *why,
                                      enum exit_code (*read)(struct suite *suite))
{
    tconv_problem names = TCONV_PROBLEM_INIT;
    enum exit_code code = refuse_attributes(why, true);
    if (code == EXIT_DONE && !read_scalars(&names)) code = EXIT_REQUEST_WRONG;
    if (code == EXIT_DONE) code = read(suite);
    if (code == EXIT_DONE && options.ids != NULL) code = suite_select(suite, options.ids);
    for (size_t i = 0; i < suite->count; i++) {
        tconv_problem *p = &suite->entries[i].problem;
        set_types(p, &names);
        if (names.data_format == TCONV_NXC) suite_channels_last(p);
    }
    return code;
}

static enum exit_code chosen_suite(struct suite *suite)
{
    return suite_read(options.suite, suite);
}

static enum exit_code one_layer(struct suite *suite)
{
    tconv_problem problem = TCONV_PROBLEM_INIT;
    const enum exit_code code = read_problem_with_shapes(&problem);
    if (code != EXIT_DONE) return code;
    tconv_geometry geometry = TCONV_GEOMETRY_INIT;
    tconv_error error;
    if (tconv_resolve(&problem, &geometry, &error) != TCONV_OK) return failed_call(&error);
    struct entry *entry = suite_add(suite, "1", "by options");
    if (entry == NULL) return failed_work("no memory");
    entry->problem = problem;
    tell_notes("", &problem);
    return EXIT_DONE;
}

enum exit_code built_in_suite(struct suite *suite)
{
    return suite_read(NULL, suite);
}

enum exit_code built_in_checks(struct suite *suite)
{
    return suite_read_own("check.csv", suite);
}

enum exit_code choose_layers(struct suite *suite, enum exit_code (*otherwise)(struct suite *suite))
{
    *suite = (struct suite){NULL, 0};
    const bool by_suite = options.suite != NULL || options.ids != NULL;
    const bool by_shape = options.filter_shape != NULL ||
                          (options.data_shape != NULL && options.model == NULL);
    if (options.model == NULL && options.layer != NULL)
        return wrong_request("--layer needs --model");
    if (options.model != NULL && by_suite)
        return wrong_request("--model and %s cannot be given together",
                             options.suite != NULL ? "--suite" : "--ids");
    if (by_shape && by_suite)
        return wrong_request("%s and a layer's shapes cannot be given together",
                             options.suite != NULL ? "--suite" : "--ids");
    if (options.model != NULL) return layers_of_model(suite);
    if (by_shape) return one_layer(suite);
    if (by_suite)
        return layers_of_suite(suite, "the layers of a suite have their own attributes",
                               chosen_suite);
    return layers_of_suite(suite, "a layer needs --data-shape and --filter-shape, too", otherwise);
}

enum exit_code work_open(struct work *work, enum exit_code (*otherwise)(struct suite *suite))
{
    tconv_error error;
    *work = (struct work){.number = 0};
    enum exit_code code = choose_layers(&work->suite, otherwise);
    if (code == EXIT_DONE) code = choose_device(&work->number);
    if (code == EXIT_DONE && device_open(work->number, &work->opened, &error) != TCONV_OK)
        code = failed_call(&error);
    return code;
}

void work_close(struct work *work)
{
    device_close(&work->opened);
    suite_free(&work->suite);
}

void failures_add(struct failures *f, const struct entry *entry, const char *algorithm,
                  tconv_status status, const char *error)
{
    if (f->count++ == 0)
        snprintf(f->first, sizeof f->first, "%s %s%s%s: %s", entry->id, entry->layer,
                 algorithm == NULL ? "" : ", ", algorithm == NULL ? "" : algorithm, error);
    f->wrong_requests += tconv_status_is_request(status);
}

bool is_failure(tconv_status status, size_t layers)
{
    return status != TCONV_OK && status != TCONV_ERROR_CANCELLED &&
           (status != TCONV_ERROR_DEVICE_MEMORY || layers == 1);
}

enum exit_code failures_verdict(const struct failures *f, const char *so_far, const char *what)
{
    if (interrupted())
        return failed_work("interrupted: %s, %d failed%s%s", so_far, f->count,
                           f->count > 0 ? ", the first: " : "", f->first);
    if (f->count == 0) return EXIT_DONE;
    char others[80] = "";
    if (f->count > 1) snprintf(others, sizeof others, "%d %s, the first: ", f->count, what);
    return f->wrong_requests == f->count ? wrong_request("%s%s", others, f->first)
                                         : failed_work("%s%s", others, f->first);
}
