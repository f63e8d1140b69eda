/* SPDX-License-Identifier: Apache-2.0 */
/* tconv-cl run: computes one layer from files. */
#include "base/checked.h"
#include "base/text.h"
#include "base/view.h"
#include "tool/bench/trial.h"
#include "tool/io/model.h"
#include "tool/io/npy.h"
#include "tool/io/out_file.h"
#include "tool/system/system.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct poptOption table[] = {
    PART(file_table, "Files (- is stdin or stdout):"),
    PART(model_table, "A layer of a model, instead of --filter and attributes:"),
    PART(attribute_table, "Attributes (shapes come from the files):"),
    PART(epilogue_table, "Types and epilogue:"),
    PART(algorithm_table, "How:"),
    END_WITH_DEVICE,
};

enum { MOST_USED = 8 }; /* different plans of a device: slabs at the edges may have their own */

/* The files that a run reads. */
enum input { DATA, FILTER, BIAS, SCALE, SLOPE, SLOPE2, RESIDUAL, INITIAL, INPUTS };
static const struct {
    const char *option;
    char **path;
} inputs[INPUTS] = {
    [DATA] = {"--data", &options.data},
    [FILTER] = {"--filter", &options.filter},
    [BIAS] = {"--bias", &options.bias},
    [SCALE] = {"--scale", &options.scale},
    [SLOPE] = {"--slope", &options.slope},
    [SLOPE2] = {"--slope2", &options.slope2},
    [RESIDUAL] = {"--residual", &options.residual},
    [INITIAL] = {"--initial", &options.initial},
};

/* Everything that a run holds. */
struct job {
    struct npy in[INPUTS];
    tconv_plan_options plan;
    struct suite model;
    tconv_problem problem;
    const void *weights;
    void *output;
    /* With the steps that options give them; or NULL. */
    void *data_in_memory, *filter_in_memory, *residual_in_memory;
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
    if (strcmp(options.output, "-") == 0 && system_is_terminal(stdout))
        return wrong_request(
            "--output is -, but stdout is a terminal: send it to a file or a pipe");
    if (system_names_terminal(options.output))
        return wrong_request("--output %s is a terminal: name a file or a pipe", options.output);
    return EXIT_DONE;
}

static enum exit_code read_input(struct job *job, enum input input)
{
    return npy_read(inputs[input].option, *inputs[input].path, &job->in[input]);
}

static enum exit_code wrong_type(const struct job *job)
{
    return wrong_request("--type is %s, but --data %s holds %s", options.data_type, options.data,
                         tconv_type_name(job->in[DATA].type));
}

static enum exit_code problem_from_model(struct job *job)
{
    enum exit_code code;
    tconv_problem named =
        TCONV_PROBLEM_INIT; /* only to check the names and lists among the options */
    if ((code = refuse_attributes("a layer of a --model has its own attributes", false)) !=
            EXIT_DONE ||
        (code = read_problem(&job->in[DATA].shape, &job->in[DATA].shape, &named)) != EXIT_DONE ||
        (code = model_read(options.model, &job->model)) != EXIT_DONE)
        return code;
    struct entry *entry = model_layer(options.model, &job->model, options.layer);
    if (entry == NULL) return EXIT_REQUEST_WRONG;
    if (entry->error == NULL) model_set_data(entry, &job->in[DATA].shape);
    if (entry->error != NULL) return model_failure(options.model, entry);
    if (options.data_type != NULL && named.data_type != job->in[DATA].type) return wrong_type(job);
    if (options.filter_type != NULL && named.filter_type != entry->weights_type)
        return wrong_request("--filter-type is %s, but the model's filter is %s",
                             options.filter_type, tconv_type_name(entry->weights_type));
    job->problem = entry->problem;
    job->problem.data_type = job->in[DATA].type;
    job->problem.output_type = named.output_type;
    if (options.output_shape != NULL) job->problem.output_shape = named.output_shape;
    job->weights = entry->weights;
    tell_notes(entry->layer, &job->problem);
    return EXIT_DONE;
}

static enum exit_code problem_from_files(struct job *job)
{
    enum exit_code code;
    if ((code = read_input(job, FILTER)) != EXIT_DONE ||
        (code = read_problem(&job->in[DATA].shape, &job->in[FILTER].shape, &job->problem)) !=
            EXIT_DONE)
        return code;
    if (options.data_type != NULL && job->problem.data_type != job->in[DATA].type)
        return wrong_type(job);
    job->problem.data_type = job->in[DATA].type;
    if (options.filter_type != NULL && job->problem.filter_type != job->in[FILTER].type)
        return wrong_request("--filter-type is %s, but --filter %s holds %s", options.filter_type,
                             options.filter, tconv_type_name(job->in[FILTER].type));
    job->problem.filter_type = job->in[FILTER].type;
    job->weights = job->in[FILTER].values;
    tell_notes("", &job->problem);
    return EXIT_DONE;
}

/* Failed work if a file that is read in place was changed meanwhile. */
static enum exit_code inputs_unchanged(const struct job *job)
{
    enum exit_code code = EXIT_DONE;
    for (int i = 0; i < INPUTS && code == EXIT_DONE; i++)
        code = npy_unchanged(inputs[i].option, *inputs[i].path, &job->in[i]);
    return code;
}

/* Reads a file with one number for each output channel. */
static enum exit_code read_channels(struct job *job, enum input input, tconv_type type,
                                    int64_t channels)
{
    const char *const option = inputs[input].option;
    const struct npy *npy = &job->in[input];
    if (*inputs[input].path == NULL) return EXIT_DONE;
    const enum exit_code code = read_input(job, input);
    if (code != EXIT_DONE) return code;
    if (npy->type != type)
        return wrong_request("%s holds %s, but must hold %s", option, tconv_type_name(npy->type),
                             tconv_type_name(type));
    if (npy->shape.rank != 1 || npy->shape.dim[0] != channels)
        return wrong_request(
            "%s has rank %d and %" PRId64
            " elements at axis 0: it must have one axis with the %" PRId64 " output channels",
            option, npy->shape.rank, npy->shape.rank == 0 ? 1 : npy->shape.dim[0], channels);
    return EXIT_DONE;
}

/* Reads a file with a tensor like the output. */
static enum exit_code read_like_output(struct job *job, enum input input, const tconv_geometry *g)
{
    const char *const option = inputs[input].option;
    const struct npy *npy = &job->in[input];
    if (*inputs[input].path == NULL) return EXIT_DONE;
    const enum exit_code code = read_input(job, input);
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

/* Reads the epilogue and its files. */
static enum exit_code read_epilogue_files(struct job *job, const tconv_geometry *g)
{
    tconv_epilogue *e = &job->plan.epilogue;
    if (!read_epilogue(e)) return EXIT_REQUEST_WRONG;
    const tconv_type number = tconv_scale_type(job->problem.data_type);
    const int64_t channels = g->epilogue_channels;
    const int slopes = tconv_activation_slope_count(e->activation);
    for (int i = 0; i < 2; i++) {
        const char *const option = inputs[SLOPE + i].option, *const given = *inputs[SLOPE + i].path;
        if (slopes > i && given == NULL)
            return wrong_request("%s is missing: --activation %s takes %s for each output channel",
                                 option, tconv_activation_name(e->activation),
                                 slopes == 1 ? "one number" : "two numbers");
        if (slopes <= i && given != NULL)
            return wrong_request("%s is given, but is only for --activation %s", option,
                                 activation_names(i + 1).text);
    }
    if ((e->beta != 0) != (options.initial != NULL))
        return wrong_request("%s", e->beta != 0
                                       ? "--initial is missing: --beta needs the initial output"
                                       : "--initial is given, but without --beta it has no effect");
    enum exit_code code;
    if ((code = read_channels(job, BIAS, tconv_bias_type(e, g->output_type), channels)) !=
            EXIT_DONE ||
        (code = read_channels(job, SCALE, number, channels)) != EXIT_DONE ||
        (code = read_channels(job, SLOPE, number, channels)) != EXIT_DONE ||
        (code = read_channels(job, SLOPE2, number, channels)) != EXIT_DONE ||
        (code = read_like_output(job, RESIDUAL, g)) != EXIT_DONE ||
        (code = read_like_output(job, INITIAL, g)) != EXIT_DONE)
        return code;
    e->bias = options.bias != NULL;
    e->scale = options.scale != NULL;
    e->residual = options.residual != NULL;
    return EXIT_DONE;
}

/* True if an option gives steps to the tensor. */
static bool has_steps(const struct job *job, enum tconv_spaced tensor)
{
    return tconv_given_steps(&job->problem, tensor)->count != 0;
}

/* Copies a tensor of a file, which is dense, to where its steps have it. */
static enum exit_code lay_out(const struct job *job, const tconv_geometry *g,
                              enum tconv_spaced tensor, tconv_type type, uint64_t bytes,
                              const void *dense, void **spaced)
{
    if (dense == NULL || !has_steps(job, tensor)) return EXIT_DONE;
    *spaced = bytes > PTRDIFF_MAX ? NULL : calloc(1, bytes == 0 ? 1 : (size_t)bytes);
    if (*spaced == NULL)
        return failed_work("a tensor with steps needs %" PRIu64 " bytes of host memory", bytes);
    const struct tconv_view view = tconv_view_of(&job->problem, g, tensor);
    tconv_view_scatter(&view, tconv_type_size(type), dense, *spaced);
    return EXIT_DONE;
}

static enum exit_code lay_out_inputs(struct job *job, const tconv_geometry *g)
{
    const enum exit_code code = lay_out(job, g, TCONV_SPACED_DATA, job->problem.data_type,
                                        g->data_bytes, job->in[DATA].values, &job->data_in_memory);
    if (code != EXIT_DONE) return code;
    const enum exit_code filter = lay_out(job, g, TCONV_SPACED_FILTER, job->problem.filter_type,
                                          g->filter_bytes, job->weights, &job->filter_in_memory);
    if (filter != EXIT_DONE) return filter;
    return lay_out(job, g, TCONV_SPACED_RESIDUAL, g->output_type, g->residual_bytes,
                   job->in[RESIDUAL].values, &job->residual_in_memory);
}

/* Makes the output's memory, with the initial output if there is one. */
static enum exit_code make_output(struct job *job, const tconv_geometry *g)
{
    const enum exit_code code = lay_out(job, g, TCONV_SPACED_OUTPUT, g->output_type,
                                        g->output_bytes, job->in[INITIAL].values, &job->output);
    if (code != EXIT_DONE || job->output != NULL) return code;
    job->output = tconv_allocate(g->output_bytes);
    if (job->output == NULL)
        return failed_work("the output needs %" PRIu64 " bytes of host memory", g->output_bytes);
    if (job->in[INITIAL].values != NULL)
        memcpy(job->output, job->in[INITIAL].values, (size_t)g->output_bytes);
    return EXIT_DONE;
}

/* A distinct plan of a device. */
struct used {
    char algorithm[40], tile[TILE_TEXT], source[16];
    char *passed_over; /* from malloc, or NULL: tconv_plan_passed_over */
    char *not_stored;  /* likewise: tconv_plan_not_stored */
};

/* A device of a run. One thread at a time computes with it, and makes its plans. */
struct device {
    int number;
    tconv_device *device;
    struct used used[MOST_USED];
    int used_count;
};

/* The devices of a run, and the facts that its report tells. */
struct devices {
    int count;
    struct device device[MOST_DEVICES];
    int64_t limit; /* MiB of device memory for tensors; 0: the library's */
    int64_t slabs; /* 0: the tensors were computed whole, by the first device */
    struct npy *data;
    struct npy_out *out; /* NULL: the output is in memory */
};

/* Keeps what the report tells of a plan that computes: another plan of the same problem may be of
 * another algorithm. */
static void hear_plan(void *context, const tconv_trace_event *event)
{
    struct device *device = context;
    for (int i = 0; i < device->used_count; i++)
        if (strcmp(device->used[i].algorithm, event->algorithm) == 0 &&
            strcmp(device->used[i].tile, event->tile) == 0)
            return;
    if (device->used_count == MOST_USED) return;
    struct used *used = &device->used[device->used_count++];
    snprintf(used->algorithm, sizeof used->algorithm, "%s", event->algorithm);
    snprintf(used->tile, sizeof used->tile, "%s", event->tile);
    snprintf(used->source, sizeof used->source, "%s", event->source);
    used->passed_over = plan_text(event->plan, tconv_plan_passed_over);
    used->not_stored = plan_text(event->plan, tconv_plan_not_stored);
}

static enum exit_code open_devices(struct devices *devices)
{
    int numbers[MOST_DEVICES];
    enum exit_code code = choose_devices(numbers, MOST_DEVICES, &devices->count);
    tconv_error error;
    for (int i = 0; i < devices->count && code == EXIT_DONE; i++) {
        struct device *device = &devices->device[i];
        device->number = numbers[i];
        if (tconv_device_open(numbers[i], &device->device, &error) != TCONV_OK ||
            tconv_device_set_trace(device->device, TCONV_TRACE_PLAN, hear_plan, device, &error) !=
                TCONV_OK)
            code = failed_call(&error);
    }
    return code;
}

static void close_devices(struct devices *devices)
{
    for (int i = 0; i < devices->count; i++) {
        struct device *device = &devices->device[i];
        tconv_device_release(device->device);
        for (int u = 0; u < device->used_count; u++) {
            free(device->used[u].passed_over);
            free(device->used[u].not_stored);
        }
    }
}

/* Tells of each plan which faster algorithms were passed over, as bench does, and that the result
 * of a search is not stored. */
static void tell_choices(const struct devices *devices)
{
    for (int i = 0; i < devices->count; i++)
        for (int u = 0; u < devices->device[i].used_count; u++) {
            const struct used *used = &devices->device[i].used[u];
            tell_plan("", used->passed_over, used->not_stored);
        }
}

static const char *name_of(const struct device *device)
{
    return tconv_device_properties(device->device)->name;
}

/* Adds the plans of a device: "plans" in the JSON. */
static void add_plans(json_t *plans, const struct device *device)
{
    for (int u = 0; u < device->used_count; u++) {
        const struct used *used = &device->used[u];
        json_array_append_new(plans, json_pack("{s:i, s:s, s:s, s:s, s:o}", "device",
                                               device->number, "algorithm", used->algorithm, "tile",
                                               used->tile, "chosen_by", used->source, "passed_over",
                                               text_json(used->passed_over)));
    }
}

static json_t *report_json(const struct devices *devices, const char *algorithm,
                           const tconv_geometry *geometry)
{
    const struct device *first = &devices->device[0];
    json_t *numbers = json_array(), *plans = json_array();
    for (int i = 0; i < devices->count; i++) {
        const struct device *device = &devices->device[i];
        if (device->used_count > 0) json_array_append_new(numbers, json_integer(device->number));
        add_plans(plans, device);
    }
    return json_pack(
        "{s:o, s:o, s:s, s:o, s:i, s:o, s:o, s:I}", "output", text_json(options.output),
        "output_shape", numbers_json(geometry->output_shape.dim, geometry->output_shape.rank),
        "algorithm", algorithm, "plans", plans, "device", first->number, "device_name",
        text_json(name_of(first)), "devices", numbers, "slabs", (json_int_t)devices->slabs);
}

/* The algorithms that computed: usually one, on each device, for all slabs. */
static void name_algorithms(const struct devices *devices, struct tconv_text *names)
{
    const char *seen[MOST_DEVICES * MOST_USED];
    int count = 0;
    for (int i = 0; i < devices->count; i++)
        for (int u = 0; u < devices->device[i].used_count; u++) {
            const char *name = devices->device[i].used[u].algorithm;
            int s = 0;
            while (s < count && strcmp(seen[s], name) != 0) s++;
            if (s < count) continue;
            tconv_text_add(names, "%s%s", count == 0 ? "" : " and ", name);
            seen[count++] = name;
        }
}

static enum exit_code report(const struct devices *devices, const tconv_geometry *geometry)
{
    char algorithms[MOST_DEVICES * MOST_USED * 45] = "";
    struct tconv_text names = tconv_text_begin(algorithms, sizeof algorithms);
    name_algorithms(devices, &names);
    tell_choices(devices);
    if (options.json != NULL) return write_json(report_json(devices, algorithms, geometry));
    if (options.quiet || strcmp(options.output, "-") == 0) return EXIT_DONE;
    char shape[NUMBERS_TEXT];
    write_numbers(geometry->output_shape.dim, geometry->output_shape.rank, shape, sizeof shape);
    printf("%s: shape %s, computed by %s", options.output, shape, algorithms);
    if (devices->slabs > 0)
        printf(" in %" PRId64 " slab%s", devices->slabs, plural(devices->slabs));
    const char *between = " on";
    for (int i = 0; i < devices->count; i++) {
        const struct device *device = &devices->device[i];
        if (device->used_count == 0) continue; /* the others were faster */
        printf("%s device %d, %s", between, device->number, name_of(device));
        between = " and";
    }
    printf("\n");
    return EXIT_DONE;
}

static bool slab_is_done(void *user, const tconv_slab *slab, int64_t done, int64_t slabs)
{
    struct devices *devices = user;
    (void)slab;
    if (slabs == 1) return true;
    devices->slabs = slabs;
    progress((int)(done * 1000 / slabs), 1000, "computing");
    npy_drop(&devices->data->mapping);
    if (devices->out != NULL) npy_drop(&devices->out->mapping);
    return true;
}

/* Computes into `output`, in memory of the problem's steps. */
static enum exit_code run_layer(const struct job *job, struct devices *devices, void *output)
{
    tconv_device *opened[MOST_DEVICES];
    tconv_layer *layer = NULL;
    tconv_tensors tensors = TCONV_TENSORS_INIT;
    tconv_run run = TCONV_RUN_INIT;
    tconv_error error;
    for (int i = 0; i < devices->count; i++) opened[i] = devices->device[i].device;
    tensors.data.host = job->data_in_memory != NULL ? job->data_in_memory : job->in[DATA].values;
    tensors.filter.host = job->filter_in_memory != NULL ? job->filter_in_memory : job->weights;
    tensors.bias.host = job->in[BIAS].values;
    tensors.scale.host = job->in[SCALE].values;
    tensors.slope.host = job->in[SLOPE].values;
    tensors.slope2.host = job->in[SLOPE2].values;
    tensors.residual.host = job->residual_in_memory != NULL ? job->residual_in_memory
                                                            : job->in[RESIDUAL].values;
    tensors.output.host = output;
    run.memory_limit = (uint64_t)devices->limit << 20;
    run.progress = slab_is_done;
    run.user = devices;
    tconv_status status =
        tconv_layer_create(opened, devices->count, TCONV_FILTER_VARIES, &layer, &error);
    if (status == TCONV_OK)
        status = tconv_layer_run(layer, &job->problem, &job->plan, &tensors, &run, &error);
    progress(0, 0, "");
    tconv_layer_release(layer);
    return status == TCONV_OK ? inputs_unchanged(job) : failed_call(&error);
}

/* Writes an output that has steps, without what lies between its elements. */
static void gather(const struct job *job, const tconv_geometry *geometry, void *dense)
{
    const struct tconv_view view = tconv_view_of(&job->problem, geometry, TCONV_SPACED_OUTPUT);
    tconv_view_gather(&view, tconv_type_size(geometry->output_type), job->output, dense);
}

/* Computes into the file, which may be larger than the memory. */
static enum exit_code compute_into_file(struct job *job, struct devices *devices,
                                        const tconv_geometry *geometry)
{
    struct npy_out out;
    enum exit_code code =
        npy_write_begin(options.output, geometry->output_type, &geometry->output_shape, &out);
    if (code != EXIT_DONE) return code;
    devices->out = &out;
    const bool steps = has_steps(job, TCONV_SPACED_OUTPUT);
    if (steps)
        code = make_output(job, geometry);
    else if (job->in[INITIAL].values != NULL)
        memcpy(out.values, job->in[INITIAL].values, (size_t)geometry->output_bytes);
    if (code == EXIT_DONE) code = run_layer(job, devices, steps ? job->output : out.values);
    if (code == EXIT_DONE && steps) gather(job, geometry, out.values);
    if (code == EXIT_DONE) return npy_write_end(&out);
    npy_write_discard(&out);
    return code;
}

/* Computes into memory, and writes it. */
static enum exit_code compute_and_write(struct job *job, struct devices *devices,
                                        const tconv_geometry *geometry)
{
    enum exit_code code = make_output(job, geometry);
    if (code == EXIT_DONE) code = run_layer(job, devices, job->output);
    if (code != EXIT_DONE) return code;
    if (has_steps(job, TCONV_SPACED_OUTPUT)) {
        const struct tconv_view view = tconv_view_of(&job->problem, geometry, TCONV_SPACED_OUTPUT);
        const uint64_t bytes = (uint64_t)tconv_view_elements(&view) *
                               tconv_type_size(geometry->output_type);
        void *dense = tconv_allocate(bytes);
        if (dense == NULL)
            return failed_work("the output needs %" PRIu64 " bytes of host memory", bytes);
        gather(job, geometry, dense);
        free(job->output);
        job->output = dense;
    }
    return npy_write(options.output, geometry->output_type, &geometry->output_shape, job->output);
}

static enum exit_code compute(struct job *job)
{
    tconv_error error;
    tconv_geometry geometry = TCONV_GEOMETRY_INIT;
    if (tconv_resolve(&job->problem, &geometry, &error) != TCONV_OK) return failed_call(&error);
    struct devices devices = {0};
    enum exit_code code = read_number("--memory-limit", options.memory_limit, 1, INT64_MAX >> 20,
                                      " MiB", &devices.limit)
                              ? EXIT_DONE
                              : EXIT_REQUEST_WRONG;
    if (code == EXIT_DONE) code = read_epilogue_files(job, &geometry);
    if (code == EXIT_DONE) code = lay_out_inputs(job, &geometry);
    job->plan.algorithm = options.algorithm;
    job->plan.math = chosen_math();
    if (code == EXIT_DONE && (code = open_devices(&devices)) == EXIT_DONE) {
        devices.data = &job->in[DATA];
        code = out_file_replaces(options.output) && geometry.output_bytes != 0
                   ? compute_into_file(job, &devices, &geometry)
                   : compute_and_write(job, &devices, &geometry);
        if (code == EXIT_DONE) code = report(&devices, &geometry);
    }
    close_devices(&devices);
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
    if ((code = check_options()) == EXIT_DONE && (code = read_input(&job, DATA)) == EXIT_DONE &&
        (code = options.model != NULL ? problem_from_model(&job) : problem_from_files(&job)) ==
            EXIT_DONE)
        code = compute(&job);
    for (int i = 0; i < INPUTS; i++) npy_free(&job.in[i]);
    suite_free(&job.model);
    free(job.output);
    free(job.data_in_memory);
    free(job.filter_in_memory);
    free(job.residual_in_memory);
    return code;
}
