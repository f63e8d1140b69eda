/* SPDX-License-Identifier: Apache-2.0 */
/* tconv-cl run: one layer from files. */
#include "model.h"
#include "npy.h"
#include "out_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct poptOption table[] = {
    {NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)file_table, 0, "Files:", NULL},
    {NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)model_table, 0,
     "A layer of a model, instead of --filter and attributes:", NULL},
    {NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)attribute_table, 0,
     "Attributes (shapes come from the files):", NULL},
    {NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)epilogue_table, 0, "Types and epilogue:", NULL},
    {NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)algorithm_table, 0, "How:", NULL},
    {NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)common_table, 0, "Options:", NULL},
    POPT_AUTOHELP POPT_TABLEEND,
};

/* Everything that a run holds. */
struct job {
    struct npy data, filter, bias, scale, slope, residual, initial;
    tconv_plan_options plan;
    struct suite model;
    tconv_problem problem;
    const void *weights;
    void *output;
};

static enum exit_code check_options(void)
{
    if (options.data == NULL) return wrong_request("--data is missing: the file with the data");
    if (options.output == NULL)
        return wrong_request("--output is missing: where the output is to go");
    if (options.model == NULL && options.filter == NULL)
        return wrong_request("--filter is missing: the file with the filter, or --model");
    if (options.model != NULL && options.filter != NULL)
        return wrong_request(
            "--model and --filter cannot be given together: the model has weights");
    if (options.model == NULL && options.layer != NULL)
        return wrong_request("--layer needs --model");
    if (strcmp(options.output, "-") == 0)
        return wrong_request("--output is -: a .npy file needs a name");
    return out_file_check("--output", options.output);
}

static enum exit_code wrong_type(const struct job *job)
{
    return wrong_request("--type is %s, but --data %s holds %s", options.type, options.data,
                         tconv_type_name(job->data.type));
}

static enum exit_code problem_from_model(struct job *job)
{
    enum exit_code code;
    tconv_problem named =
        TCONV_PROBLEM_INIT; /* only to check the names and lists among the options */
    if ((code = refuse_attributes("a layer of a --model has its own attributes", false)) !=
            EXIT_DONE ||
        (code = read_problem(&job->data.shape, &job->data.shape, &named)) != EXIT_DONE ||
        (code = model_read(options.model, &job->model)) != EXIT_DONE)
        return code;
    struct entry *entry = model_layer(options.model, &job->model, options.layer);
    if (entry == NULL) return EXIT_REQUEST_WRONG;
    if (entry->error == NULL) model_set_data(entry, &job->data.shape);
    if (entry->error != NULL) return model_failure(options.model, entry);
    if (options.type != NULL && named.data_type != job->data.type) return wrong_type(job);
    job->problem = entry->problem;
    job->problem.data_type = job->data.type;
    job->problem.output_type = named.output_type;
    if (options.output_shape != NULL) job->problem.output_shape = named.output_shape;
    job->weights = entry->weights;
    tell_rules(entry->layer, &job->problem);
    return EXIT_DONE;
}

static enum exit_code problem_from_files(struct job *job)
{
    enum exit_code code;
    if ((code = npy_read("--filter", options.filter, &job->filter)) != EXIT_DONE ||
        (code = read_problem(&job->data.shape, &job->filter.shape, &job->problem)) != EXIT_DONE)
        return code;
    if (options.type != NULL && job->problem.data_type != job->data.type) return wrong_type(job);
    job->problem.data_type = job->data.type;
    job->problem.filter_type = job->filter.type;
    job->weights = job->filter.values;
    tell_rules("", &job->problem);
    return EXIT_DONE;
}

/* One number for each output channel. */
static enum exit_code read_channels(const char *option, const char *path, tconv_type type,
                                    int64_t channels, struct npy *npy)
{
    if (path == NULL) return EXIT_DONE;
    const enum exit_code code = npy_read(option, path, npy);
    if (code != EXIT_DONE) return code;
    if (npy->type != type)
        return wrong_request("%s holds %s, but %s is needed", option, tconv_type_name(npy->type),
                             tconv_type_name(type));
    if (npy->shape.rank != 1 || npy->shape.dim[0] != channels)
        return wrong_request(
            "%s has rank %d and %" PRId64 " elements at axis 0: one axis with the %" PRId64
            " output channels is needed",
            option, npy->shape.rank, npy->shape.rank == 0 ? 1 : npy->shape.dim[0], channels);
    return EXIT_DONE;
}

/* A tensor like the output. */
static enum exit_code read_like_output(const char *option, const char *path,
                                       const tconv_geometry *g, struct npy *npy)
{
    if (path == NULL) return EXIT_DONE;
    const enum exit_code code = npy_read(option, path, npy);
    if (code != EXIT_DONE) return code;
    if (npy->type != g->output_type)
        return wrong_request("%s holds %s, but the output is %s", option,
                             tconv_type_name(npy->type), tconv_type_name(g->output_type));
    bool same = npy->shape.rank == g->output_shape.rank;
    for (int i = 0; same && i < npy->shape.rank; i++) {
        same = npy->shape.dim[i] == g->output_shape.dim[i];
        if (!same)
            return wrong_request("%s has extent %" PRId64
                                 " at axis %d, but the output has %" PRId64,
                                 option, npy->shape.dim[i], i, g->output_shape.dim[i]);
    }
    return same ? EXIT_DONE
                : wrong_request("%s has rank %d, but the output has %d", option, npy->shape.rank,
                                g->output_shape.rank);
}

/* The epilogue and the files that belong to it. */
static enum exit_code read_epilogue_files(struct job *job, const tconv_geometry *g)
{
    tconv_epilogue *e = &job->plan.epilogue;
    if (!read_epilogue(e)) return EXIT_REQUEST_WRONG;
    const tconv_type number = job->problem.data_type == TCONV_F64 ? TCONV_F64 : TCONV_F32;
    const int64_t channels = g->groups * g->group_out_channels;
    const bool slopes = tconv_activation_slopes(e->activation);
    if (slopes && options.slope == NULL)
        return wrong_request(
            "--slope is missing: --activation %s takes one number for each output channel",
            tconv_activation_name(e->activation));
    if (!slopes && options.slope != NULL)
        return wrong_request("--slope is given, but only --activation prelu and snake take it");
    if ((e->beta != 0) != (options.initial != NULL))
        return wrong_request(
            "%s", e->beta != 0 ? "--initial is missing: --beta needs what the output was before"
                               : "--initial is given, but without --beta it has no effect");
    enum exit_code code;
    if ((code = read_channels("--bias", options.bias, e->requantize ? TCONV_F32 : g->output_type,
                              channels, &job->bias)) != EXIT_DONE ||
        (code = read_channels("--scale", options.scale, number, channels, &job->scale)) !=
            EXIT_DONE ||
        (code = read_channels("--slope", options.slope, number, channels, &job->slope)) !=
            EXIT_DONE ||
        (code = read_like_output("--residual", options.residual, g, &job->residual)) != EXIT_DONE ||
        (code = read_like_output("--initial", options.initial, g, &job->initial)) != EXIT_DONE)
        return code;
    e->bias = options.bias != NULL;
    e->scale = options.scale != NULL;
    e->residual = options.residual != NULL;
    return EXIT_DONE;
}

/* The family that tconv_host_run takes: asked of a plan of the same kind, whose programs are there already. */
static void name_algorithm(tconv_host *host, const struct job *job, char *name, size_t size)
{
    tconv_plan *plan;
    snprintf(name, size, "?");
    if (tconv_plan_create(tconv_host_device(host), &job->problem, &job->plan, &plan, NULL) !=
        TCONV_OK)
        return;
    snprintf(name, size, "%s", tconv_plan_algorithm(plan));
    tconv_plan_release(plan);
}

static enum exit_code report(tconv_host *host, const struct job *job,
                             const tconv_geometry *geometry, int number)
{
    char algorithm[40];
    name_algorithm(host, job, algorithm, sizeof algorithm);
    const tconv_device_info *device = tconv_device_properties(tconv_host_device(host));
    if (options.json != NULL) {
        json_t *shape = json_array();
        for (int i = 0; i < geometry->output_shape.rank; i++)
            json_array_append_new(shape, json_integer(geometry->output_shape.dim[i]));
        return write_json(json_pack(
            "{s:o, s:o, s:s, s:i, s:o}", "output", text_json(options.output), "output_shape", shape,
            "algorithm", algorithm, "device", number, "device_name", text_json(device->name)));
    }
    printf("%s: shape", options.output);
    for (int i = 0; i < geometry->output_shape.rank; i++)
        printf("%s%" PRId64, i == 0 ? " " : ",", geometry->output_shape.dim[i]);
    printf(", computed by %s on device %d, %s\n", algorithm, number, device->name);
    return EXIT_DONE;
}

static enum exit_code compute(struct job *job)
{
    tconv_error error;
    tconv_geometry geometry = TCONV_GEOMETRY_INIT;
    if (tconv_resolve(&job->problem, &geometry, &error) != TCONV_OK) return failed_call(&error);
    int number;
    enum exit_code code;
    if ((code = read_epilogue_files(job, &geometry)) != EXIT_DONE ||
        (code = choose_device(&number)) != EXIT_DONE)
        return code;
    job->output = malloc(geometry.output_bytes == 0 ? 1 : (size_t)geometry.output_bytes);
    if (job->output == NULL)
        return failed_work("the output needs %" PRIu64 " bytes of host memory",
                           geometry.output_bytes);
    tconv_host *host;
    if (tconv_host_create(number, &host, &error) != TCONV_OK) return failed_call(&error);
    if (job->initial.values != NULL)
        memcpy(job->output, job->initial.values, (size_t)geometry.output_bytes);
    tconv_arrays arrays = TCONV_ARRAYS_INIT;
    arrays.data = job->data.values;
    arrays.filter = job->weights;
    arrays.bias = job->bias.values;
    arrays.scale = job->scale.values;
    arrays.slope = job->slope.values;
    arrays.residual = job->residual.values;
    arrays.output = job->output;
    job->plan.algorithm = options.algorithm;
    job->plan.math = chosen_math();
    if (tconv_host_run(host, &job->problem, &job->plan, &arrays, &error) != TCONV_OK)
        code = failed_call(&error);
    else if ((code = npy_write(options.output, geometry.output_type, &geometry.output_shape,
                               job->output)) == EXIT_DONE)
        code = report(host, job, &geometry, number);
    tconv_host_release(host);
    return code;
}

enum exit_code command_run(int argc, const char **argv)
{
    bool leave;
    enum exit_code code = read_options(
        table, "--data X.npy (--filter W.npy [ATTRIBUTES] | --model FILE.xml) --output Y.npy", argc,
        argv, &leave);
    if (leave) return code;
    struct job job = {.problem = TCONV_PROBLEM_INIT, .plan = TCONV_PLAN_OPTIONS_INIT};
    if ((code = check_options()) == EXIT_DONE &&
        (code = npy_read("--data", options.data, &job.data)) == EXIT_DONE &&
        (code = options.model != NULL ? problem_from_model(&job) : problem_from_files(&job)) ==
            EXIT_DONE)
        code = compute(&job);
    npy_free(&job.data);
    npy_free(&job.filter);
    npy_free(&job.bias);
    npy_free(&job.scale);
    npy_free(&job.slope);
    npy_free(&job.residual);
    npy_free(&job.initial);
    suite_free(&job.model);
    free(job.output);
    return code;
}
