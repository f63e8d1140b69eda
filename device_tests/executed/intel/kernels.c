/* SPDX-License-Identifier: Apache-2.0 */
/* Reads how the compiler describes kernels (the section .ze_info of its binaries): what a kernel
 * gets before it begins, and which arguments are surfaces. The text has one "key: value" a line;
 * a dash begins an element of a list. */
#include "thread.h"

#include <stdio.h>
#include <stdlib.h>

/* What may stand in the payload. Others stay 0: private memory, which kernels must not use. */
static const struct {
    const char *name;
    enum payload_kind what;
} argument_types[] = {
    {"global_id_offset", GLOBAL_OFFSET},
    {"local_size", LOCAL_SIZE},
    {"enqueued_local_size", LOCAL_SIZE},
    {"global_size", GLOBAL_SIZE},
    {"group_count", GROUP_COUNT},
    {"work_dimensions", DIMENSIONS},
    {"arg_bypointer", ADDRESS},
    {"buffer_address", ADDRESS},
    {"arg_byvalue", VALUE},
    {"buffer_offset", SURFACE_OFFSET},
    {"private_base_stateless", IGNORED},
};

/* A list of a kernel that is read. */
enum section { OTHER, PAYLOAD, THREAD_PAYLOAD, TABLE };

static struct kernel *add_kernel(struct code *code, const char *name)
{
    void *list = realloc(code->kernels, (size_t)(code->kernel_count + 1) * sizeof *code->kernels);
    if (list == NULL) return NULL;
    code->kernels = list;
    struct kernel *kernel = &code->kernels[code->kernel_count++];
    *kernel = (struct kernel){.entry = -1};
    snprintf(kernel->name, sizeof kernel->name, "%s", name);
    for (int i = 0; i < MOST_SURFACES; i++) kernel->surface[i] = -1;
    return kernel;
}

static bool begin_entry(struct kernel *kernel, const char *type)
{
    if (kernel->count == MOST_ENTRIES) return false;
    struct payload_entry *entry = &kernel->list[kernel->count++];
    *entry = (struct payload_entry){.what = IGNORED};
    for (size_t i = 0; i < sizeof argument_types / sizeof *argument_types; i++)
        if (strcmp(type, argument_types[i].name) == 0) {
            entry->what = argument_types[i].what;
            return true;
        }
    fprintf(stderr, "unknown part of the payload: %s\n", type);
    return false;
}

/* A line of an entry of the payload. */
static bool set_entry(struct kernel *kernel, const char *key, const char *value)
{
    struct payload_entry *entry = &kernel->list[kernel->count - 1];
    if (strcmp(key, "arg_type") == 0) return begin_entry(kernel, value);
    if (kernel->count == 0) return false;
    if (strcmp(key, "offset") == 0) entry->offset = atoi(value);
    if (strcmp(key, "size") == 0) entry->size = atoi(value);
    if (strcmp(key, "arg_index") == 0) entry->argument = atoi(value);
    if (strcmp(key, "source_offset") == 0) entry->source = atoi(value);
    if (strcmp(key, "addrspace") == 0 && strcmp(value, "local") == 0) entry->what = LOCAL_POINTER;
    return entry->offset >= 0 && entry->size >= 0;
}

static bool set_value(struct kernel *kernel, enum section section, int *surface, const char *key,
                      const char *value)
{
    if (section == PAYLOAD) return set_entry(kernel, key, value);
    if (section == THREAD_PAYLOAD && strcmp(key, "size") == 0) kernel->item_bytes += atoi(value);
    if (section == THREAD_PAYLOAD && strcmp(key, "arg_type") == 0)
        return strcmp(value, "local_id") == 0;
    if (section == TABLE && strcmp(key, "bti_value") == 0) *surface = atoi(value);
    if (section == TABLE && (*surface < 0 || *surface >= MOST_SURFACES)) return false;
    if (section == TABLE && strcmp(key, "arg_index") == 0) kernel->surface[*surface] = atoi(value);
    if (strcmp(key, "simd_size") == 0) kernel->lanes = atoi(value);
    if (strcmp(key, "slm_size") == 0) kernel->local_bytes = (uint32_t)atoi(value);
    if (strcmp(key, "inline_data_payload_size") == 0) kernel->inline_bytes = atoi(value);
    return true;
}

bool kernels_read(struct code *code, char *text)
{
    struct kernel *kernel = NULL;
    enum section section = OTHER;
    int surface = 0;
    bool done = true;
    for (char *line = strtok(text, "\n"); line != NULL && done; line = strtok(NULL, "\n")) {
        char key[60] = "", value[100] = "";
        const int indent = (int)strspn(line, " -");
        sscanf(line + indent, "%59[^:]: %99s", key, value);
        if (indent == 4 && strcmp(key, "name") == 0) {
            kernel = add_kernel(code, value);
            done = kernel != NULL;
        } else if (kernel != NULL && *value == '\0') {
            section = strcmp(key, "payload_arguments") == 0              ? PAYLOAD
                      : strcmp(key, "per_thread_payload_arguments") == 0 ? THREAD_PAYLOAD
                      : strcmp(key, "binding_table_indices") == 0        ? TABLE
                                                                         : OTHER;
        } else if (kernel != NULL) {
            done = set_value(kernel, section, &surface, key, value);
        }
        if (!done) fprintf(stderr, "not understood: %s\n", line);
    }
    for (int i = 0; i < code->kernel_count; i++)
        done = done && (code->kernels[i].lanes == 8 || code->kernels[i].lanes == 16 ||
                        code->kernels[i].lanes == 32);
    return done && code->kernel_count > 0;
}
