/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the listing of listing.h: the launches of layers on described GPUs, as JSON lines. */
#include "listing.h"

#include "described.h"
#include "selecting.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Devices of the vendors whose speed can be predicted, with and without matrix units. */
static const char *const cards[] = {"NVIDIA",   "NVIDIA mma", "AMD",
                                    "AMD CDNA", "AMD wmma",   "AMD mfma"};

/* An argument is a number, null for memory, or the numbers of a buffer that steers the kernel. */
static void print_args(const struct tconv_launch *launch, const struct tconv_request *request,
                       const struct tconv_kernel_plan *kernel_plan)
{
    const char *comma = "";
    for (int a = 0; a < launch->arg_count; a++) {
        const enum tconv_arg arg = launch->args[a];
        if (!tconv_arg_used(request->epilogue, arg)) continue;
        printf("%s", comma);
        comma = ",";
        if (arg == TCONV_ARG_LOCAL) {
            printf("null");
        } else if (arg == TCONV_ARG_TABLE) {
            printf("{\"i64\":[");
            for (size_t i = 0; i < kernel_plan->table_count; i++)
                printf("%s%" PRId64, i == 0 ? "" : ",", kernel_plan->table[i]);
            printf("]}");
        } else if (arg == TCONV_ARG_SHARE) {
            printf("0"); /* of both numbers */
        } else {
            printf("null,0");
        }
    }
}

static bool has(const struct tconv_launch *launch, enum tconv_arg arg)
{
    for (int a = 0; a < launch->arg_count; a++)
        if (launch->args[a] == arg) return true;
    return false;
}

/* Bytes that a launch must move from and to DRAM: what it is bound to, once. A launch without a
 * filter only copies: it reads no more of the data than it writes into the workspace. One that
 * finishes what an earlier one added up reads data and filter only where weights are not finite. */
static uint64_t bytes_of(const struct tconv_launch *launch,
                         const struct tconv_kernel_plan *kernel_plan,
                         const tconv_geometry *geometry)
{
    const bool finishes = launch != kernel_plan->run && launch->macs == 0 &&
                          kernel_plan->run->macs > 0;
    const bool filter = has(launch, TCONV_ARG_FILTER) && !finishes;
    uint64_t data = finishes ? 0 : geometry->data_bytes, bytes = 0;
    if (!filter && data > kernel_plan->workspace_bytes) data = kernel_plan->workspace_bytes;
    if (has(launch, TCONV_ARG_DATA)) bytes += data;
    if (has(launch, TCONV_ARG_WORKSPACE)) bytes += kernel_plan->workspace_bytes;
    if (filter) bytes += geometry->filter_bytes;
    if (has(launch, TCONV_ARG_OUTPUT)) bytes += geometry->output_bytes;
    return bytes;
}

static bool print_launch(int number, const struct tconv_request *request,
                         const struct tconv_kernel_plan *kernel_plan,
                         const struct tconv_algorithm *algorithm, const tconv_geometry *geometry)
{
    const struct tconv_launch *launch = &kernel_plan->run[number];
    char text[TCONV_MAX_OPTIONS];
    if (!tconv_launch_all_options(launch, request, algorithm, text, sizeof text)) return false;
    double counted = 0; /* by the algorithm, in all launches */
    for (int i = 0; i < kernel_plan->run_count; i++) counted += kernel_plan->run[i].macs;
    const bool last = number == kernel_plan->run_count - 1;
    const double macs = counted == 0 && last ? (double)geometry->macs : launch->macs;
    printf("%s{\"kernel\":\"%s\",\"sources\":[\"%s\"],", number == 0 ? "" : ",", launch->kernel,
           algorithm->source);
    printf("\"options\":\"%s\",\"global\":[%zu,%zu,%zu],\"local\":[%zu,%zu,%zu],"
           "\"local_bytes\":%zu,\"macs\":%.0f,\"bytes\":%" PRIu64 ",\"args\":[",
           text, launch->global[0], launch->global[1], launch->global[2], launch->local[0],
           launch->local[1], launch->local[2], launch->local_bytes, macs,
           bytes_of(launch, kernel_plan, geometry));
    print_args(launch, request, kernel_plan);
    printf("]");
    if (launch->trips[0] > 0)
        printf(",\"trips\":[%.6g,%.6g,%.6g]", launch->trips[0], launch->trips[1], launch->trips[2]);
    printf("}");
    return true;
}

static bool print_layer(const char *device, const struct entry *entry,
                        const struct listing *listing)
{
    tconv_problem problem = entry->problem;
    problem.data_type = problem.filter_type = listing->type;
    if (listing->format == TCONV_NXC) suite_channels_last(&problem);
    tconv_geometry geometry = TCONV_GEOMETRY_INIT;
    tconv_error error;
    if (entry->error != NULL || tconv_resolve(&problem, &geometry, &error) != TCONV_OK) {
        fprintf(stderr, "%s: %s\n", entry->id, entry->error != NULL ? entry->error : error.message);
        return false;
    }
    struct tconv_loops loops;
    tconv_loops_init(&loops, &problem, &geometry);
    tconv_epilogue epilogue = TCONV_EPILOGUE_INIT;
    epilogue.bias = true;
    const tconv_device_info info = tconv_device_for(described_device(device), &loops);
    const struct tconv_request request = request_for(&loops, &info, &epilogue, listing->math);
    struct tconv_reason reason;
    struct tconv_pattern pattern;
    struct tconv_candidate best;
    if (!tconv_pattern_read(listing->algorithm, &pattern, &reason) ||
        !tconv_choose(&request, &pattern, 0, &best, &reason)) {
        fprintf(stderr, "%s on %s is left out: %s\n", entry->id, device, reason.text);
        return listing->algorithm != NULL;
    }
    const struct tconv_algorithm *algorithm = best.algorithm;
    struct tconv_kernel_plan kernel_plan = {0};
    if (tconv_kernel_plan_write(&request, &best, &kernel_plan, &error) != TCONV_OK) {
        fprintf(stderr, "%s: %s\n", entry->id, error.message);
        return false;
    }
    printf("{\"device\":\"%s\",\"layer\":\"%s\",\"type\":\"%s\",\"data_format\":\"%s\","
           "\"algorithm\":\"%s\",\"expected_us\":%.1f,\"macs\":%" PRIu64 ",\"bytes\":%" PRIu64
           ",\"launches\":[",
           device, entry->id, tconv_type_name(listing->type),
           listing->format == TCONV_NXC ? "NXC" : "NCX", algorithm->name,
           1e3 * tconv_machine_ms(&request.machine, best.cost), geometry.macs,
           geometry.data_bytes + geometry.filter_bytes + geometry.output_bytes);
    bool done = true;
    for (int i = 0; i < kernel_plan.run_count && done; i++)
        done = print_launch(i, &request, &kernel_plan, algorithm, &geometry);
    printf("]}\n");
    tconv_kernel_plan_clear(&kernel_plan);
    return done;
}

bool print_listing(const struct suite *suite, const struct listing *listing)
{
    const char *const *devices = listing->device != NULL ? &listing->device : cards;
    const size_t count = listing->device != NULL ? 1 : sizeof cards / sizeof *cards;
    bool done = true;
    for (size_t d = 0; d < count; d++)
        for (size_t i = 0; i < suite->count; i++)
            done = print_layer(devices[d], &suite->entries[i], listing) && done;
    return done;
}
