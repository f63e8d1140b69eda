/* SPDX-License-Identifier: Apache-2.0 */
/* tconv-cl report: prints what a bug report needs, as text to paste. What fails becomes a line, and
 * the report goes on. */
#include "tool/commands/report.h"

#include "base/os.h"
#include "tool/bench/layers.h"
#include "tool/system/system.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef TCONV_COMMIT
#define TCONV_COMMIT "unknown" /* not built in a git repository of its own */
#endif
#if defined(__clang__)
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

enum {
    CHECK_SECONDS = 12
}; /* for the checks of all devices, so that PoCL's compiler may be cold */

static const struct poptOption table[] = {
    END_WITH_DEVICE,
};

/* ---- versions and the system ---- */

static json_t *report_versions(void)
{
    char system[500], processor[200];
    system_names(system, sizeof system, processor, sizeof processor);
    report_line(0, "tconv-cl %s (headers %s), commit %s, compiled by %s", tconv_version(),
                TCONV_VERSION_STRING, TCONV_COMMIT, COMPILER);
    report_line(0, "system: %s", system);
    report_line(0, "processor: %s, %d threads", processor[0] == '\0' ? "unknown" : processor,
                system_processors());
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:i}", "library", tconv_version(), "headers",
                     TCONV_VERSION_STRING, "commit", TCONV_COMMIT, "compiler", COMPILER, "system",
                     text_json(system), "processor", text_json(processor), "threads",
                     system_processors());
}

/* ---- the loader and the platforms ---- */

/* Asks the OpenCL loader for one of its texts; ocl-icd and the Khronos loader answer. */
typedef cl_int(CL_API_CALL loader_call)(cl_int what, size_t size, void *value, size_t *needed);
enum { LOADER_OPENCL = 1, LOADER_VERSION, LOADER_NAME };

static loader_call *find_loader_call(void)
{
    static const char call[] = "clGetICDLoaderInfoOCLICD";
    void *library = NULL;
    loader_call *ask = NULL;
    void *(CL_API_CALL * find)(const char *) = NULL;
#if defined(TCONV_OPENCL_LIBRARY)
    library = tconv_os_open_library(TCONV_OPENCL_LIBRARY);
    if (library == NULL) return NULL;
#endif
    if (tconv_os_find_function(library, call, &ask)) return ask;
    if (!tconv_os_find_function(library, "clGetExtensionFunctionAddress", &find)) return NULL;
    void *address = find(call);
    memcpy(&ask, &address, sizeof ask);
    return ask;
}

static json_t *report_loader(void)
{
    char name[100] = "", version[100] = "", opencl[100] = "";
    loader_call *ask = find_loader_call();
    if (ask == NULL || ask(LOADER_NAME, sizeof name, name, NULL) != CL_SUCCESS ||
        ask(LOADER_VERSION, sizeof version, version, NULL) != CL_SUCCESS ||
        ask(LOADER_OPENCL, sizeof opencl, opencl, NULL) != CL_SUCCESS) {
        report_line(0, "OpenCL loader: it does not tell its name");
        return json_null();
    }
    report_line(0, "OpenCL loader: %s %s, %s", name, version, opencl);
    return json_pack("{s:o, s:o, s:o}", "name", text_json(name), "version", text_json(version),
                     "opencl", text_json(opencl));
}

static json_t *report_platform(cl_platform_id platform, struct report_tally *tally)
{
    char name[200] = "", version[200] = "", vendor[200] = "", error[100] = "";
    cl_uint devices = 0;
    clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name, name, NULL);
    clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof version, version, NULL);
    clGetPlatformInfo(platform, CL_PLATFORM_VENDOR, sizeof vendor, vendor, NULL);
    const cl_int code = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &devices);
    if (code != CL_SUCCESS) devices = 0;
    if (code != CL_SUCCESS && code != CL_DEVICE_NOT_FOUND) {
        snprintf(error, sizeof error, "clGetDeviceIDs fails with OpenCL code %d", code);
        report_failure(tally, "platform %s: %s", name, error);
    }
    report_line(0, "platform: %s, %s, %s, %u device%s%s%s", name, vendor, version, devices,
                plural(devices), error[0] == '\0' ? "" : ": ", error);
    return json_pack("{s:o, s:o, s:o, s:i, s:o}", "name", text_json(name), "vendor",
                     text_json(vendor), "version", text_json(version), "devices", (int)devices,
                     "error", text_json(error[0] == '\0' ? NULL : error));
}

static json_t *report_platforms(struct report_tally *tally)
{
    enum { MOST_PLATFORMS = 64 };
    cl_platform_id platforms[MOST_PLATFORMS];
    cl_uint count = 0;
    json_t *list = json_array();
    if (clGetPlatformIDs(MOST_PLATFORMS, platforms, &count) != CL_SUCCESS) count = 0;
    for (cl_uint i = 0; i < count && i < MOST_PLATFORMS; i++)
        json_array_append_new(list, report_platform(platforms[i], tally));
    return list;
}

/* ---- devices ---- */

static void tell(const char *line)
{
    report_line(5, "%s", line);
}

static json_t *report_extensions(cl_device_id device)
{
    size_t size = 0;
    char *text = NULL;
    if (clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, 0, NULL, &size) == CL_SUCCESS && size > 0)
        text = calloc(size + 1, 1);
    if (text != NULL &&
        clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, size, text, NULL) != CL_SUCCESS)
        text[0] = '\0';
    const char *shown = text == NULL ? "" : text + strspn(text, " ");
    report_line(5, "extensions: %s", shown[0] == '\0' ? "none" : shown);
    json_t *json = text_json(shown);
    free(text);
    return json;
}

struct stored_counts {
    int used, imported, foreign, damaged;
};

static void count_stored(void *context, const tconv_stored_search *stored)
{
    struct stored_counts *c = context;
    c->used += stored->state == TCONV_RECORD_USED;
    c->imported += stored->state == TCONV_RECORD_IMPORTED;
    c->foreign += stored->state == TCONV_RECORD_FOREIGN;
    c->damaged += stored->state == TCONV_RECORD_DAMAGED;
}

static void count_file(void *context, const struct tconv_os_file *file)
{
    json_int_t *counts = context;
    counts[0] += file->ordinary;
    counts[1] += file->ordinary ? (json_int_t)file->size : 0;
}

/* The cache as an object of this device sees it. */
static json_t *report_cache(const tconv_device *device)
{
    const char *folder = tconv_device_search_folder(device);
    struct stored_counts stored = {0, 0, 0, 0};
    json_int_t counts[2] = {0, 0}; /* files, bytes */
    bool absent = false;
    struct tconv_os_reason reason = {""};
    char refused[sizeof reason + 20];
    if (folder == NULL) {
        report_line(5, "cache: none");
        return json_null();
    }
    struct tconv_os_folder *opened = tconv_os_folder_open(folder, &absent, &reason);
    if (opened != NULL) tconv_os_folder_visit(opened, count_file, counts);
    if (opened != NULL) tconv_os_folder_close(opened);
    tconv_device_stored_searches(device, count_stored, &stored, NULL);
    snprintf(refused, sizeof refused, "refused: %s", reason.text);
    const char *state = opened != NULL ? "used" : absent ? "not made yet" : refused;
    report_line(5, "cache: %s (%s), %lld files, %lld bytes", folder, state, (long long)counts[0],
                (long long)counts[1]);
    report_line(5,
                "stored searches: %d used, %d imported, %d of other devices, drivers or versions, "
                "%d damaged",
                stored.used, stored.imported, stored.foreign, stored.damaged);
    return json_pack("{s:o, s:s, s:b, s:I, s:I, s:i, s:i, s:i, s:i}", "folder",
                     private_json(folder), "state", state, "programs",
                     tconv_device_cache(device) != NULL, "files", counts[0], "bytes", counts[1],
                     "searches_used", stored.used, "searches_imported", stored.imported,
                     "searches_foreign", stored.foreign, "searches_damaged", stored.damaged);
}

/* Reports a failed call about a device, and returns its sentence. */
static json_t *device_failed(int number, const tconv_error *error, struct report_tally *tally)
{
    report_line(5, "failed: %s", error->message);
    report_failure(tally, "device %d: %s", number, error->message);
    return private_json(error->message);
}

static json_t *report_device(int number, int preferred, const struct suite *layers, double seconds,
                             struct report_tally *tally)
{
    tconv_error error;
    cl_device_id id = NULL;
    struct opened opened;
    tconv_device_info info = TCONV_DEVICE_INFO_INIT;
    char name[300] = "unknown";
    json_t *json = json_pack("{s:i, s:n}", "number", number, "error");
    report_line(0, "%s", "");
    if (tconv_device_at(number, NULL, &id, &error) == TCONV_OK)
        clGetDeviceInfo(id, CL_DEVICE_NAME, sizeof name, name, NULL);
    report_line(0, "device %d%s: %s", number, number == preferred ? " (the default)" : "", name);
    if (id == NULL || tconv_device_describe(id, &info, &error) != TCONV_OK) {
        json_object_set_new(json, "error", device_failed(number, &error, tally));
        return json;
    }
    describe_device(&info, tell);
    json_object_set_new(json, "extensions", report_extensions(id));
    const bool opens = device_open(number, &opened, &error) == TCONV_OK;
    const int threads = opens ? tconv_device_threads(opened.device) : -1;
    json_object_update_missing_new(json, device_json(number, &info, threads));
    if (!opens) {
        json_object_set_new(json, "error", device_failed(number, &error, tally));
        return json;
    }
    describe_threads(&info, threads, tell);
    json_object_set_new(json, "cache", report_cache(opened.device));
    report_line(5, "check:");
    json_object_set_new(json, "check", report_check(number, &opened, layers, seconds, tally));
    device_close(&opened);
    return json;
}

/* ---- the environment ---- */

/* Variables that this library, its OpenCL loader or OpenCL implementations read. */
static bool matters(const char *name, size_t length)
{
    static const char *const prefixes[] = {"TCONV_CL_", "POCL_",      "OCL_ICD_",
                                           "OPENCL_",   "CL_CONFIG_", "RUSTICL_",
                                           "LP_",       "GPU_",       "NEO"};
    static const char *const names[] = {"LD_LIBRARY_PATH", "LD_PRELOAD", "XDG_CACHE_HOME",
                                        "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0) return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == length && strncmp(name, names[i], length) == 0) return true;
    return false;
}

static json_t *report_environment(void)
{
    json_t *variables = json_object();
    report_line(0, "%s", "");
    report_line(0, "environment:");
    for (char **at = system_environment(); *at != NULL; at++) {
        const char *equals = strchr(*at, '=');
        if (equals == NULL || !matters(*at, (size_t)(equals - *at))) continue;
        const bool own = sets_pocl_devices() && strncmp(*at, "POCL_DEVICES=", 13) == 0;
        report_line(5, "%s%s", *at, own ? " (set by tconv-cl)" : "");
        json_object_setn_new(variables, *at, (size_t)(equals - *at), private_json(equals + 1));
    }
    if (json_object_size(variables) == 0) report_line(5, "no variable that matters is set");
    return variables;
}

/* ---- the command ---- */

/* The devices that --device names, or all. */
static enum exit_code choose(int *numbers, int *count, struct report_tally *tally)
{
    tconv_error error;
    *count = 0;
    if (options.device != NULL) return choose_devices(numbers, MOST_DEVICES, count);
    if (tconv_device_count(count, &error) != TCONV_OK) {
        report_failure(tally, "%s", error.message);
        return EXIT_DONE;
    }
    *count = *count > MOST_DEVICES ? MOST_DEVICES : *count;
    for (int i = 0; i < *count; i++) numbers[i] = i;
    return EXIT_DONE;
}

static enum exit_code report(const int *numbers, int count, const struct suite *layers,
                             struct report_tally *tally)
{
    tconv_error error;
    int preferred = -1;
    json_t *version = report_versions(), *loader = report_loader(),
           *platforms = report_platforms(tally), *devices = json_array();
    if (tconv_device_default(&preferred, &error) != TCONV_OK) {
        report_line(0, "failed: %s", error.message);
        report_failure(tally, "%s", error.message);
    }
    json_t *variables = report_environment();
    const double end = tconv_os_seconds() + CHECK_SECONDS;
    for (int i = 0; i < count; i++)
        json_array_append_new(devices,
                              report_device(numbers[i], preferred, layers,
                                            (end - tconv_os_seconds()) / (count - i), tally));
    report_line(0, "%s", "");
    if (!options.quiet)
        report_line(0, "%d check%s passed, %d refused, %d skipped; %d failure%s", tally->passed,
                    plural(tally->passed), tally->refused, tally->skipped, tally->failed,
                    plural(tally->failed));
    json_t *json = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:i, s:i, s:i}", "version",
                             version, "loader", loader, "platforms", platforms, "default",
                             preferred < 0 ? json_null() : json_integer(preferred), "environment",
                             variables, "devices", devices, "passed", tally->passed, "refused",
                             tally->refused, "skipped", tally->skipped, "failed", tally->failed);
    return write_json(json);
}

enum exit_code command_report(int argc, const char **argv)
{
    bool leave;
    int numbers[MOST_DEVICES], count;
    struct suite layers = {NULL, 0};
    struct report_tally tally = {.first = ""};
    enum exit_code code = read_options(table, "[--device N] [--json FILE]", argc, argv, &leave);
    if (leave) return code;
    code = choose(numbers, &count, &tally);
    if (code == EXIT_DONE) code = built_in_checks(&layers);
    if (code == EXIT_DONE) {
        watch_interrupts();
        code = report(numbers, count, &layers, &tally);
    }
    suite_free(&layers);
    if (code != EXIT_DONE) return code;
    if (interrupted()) return failed_work("interrupted: the report lacks checks");
    if (tally.failed == 0) return EXIT_DONE;
    char *first = without_home(tally.first); /* people paste stderr, too */
    code = failed_work("%d failure%s, the first: %s", tally.failed, plural(tally.failed),
                       first == NULL ? "" : first);
    free(first);
    return code;
}
