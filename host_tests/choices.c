/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the tables of choices.h. */
#include "choices.h"

#include "described.h"
#include "selecting.h"
#include "suite_layer.h"

#include <stdio.h>
#include <string.h>

static const tconv_epilogue bias_only = {.bias = true, .alpha = 1};

/* A rejection: its sentence, and the algorithms and layers that it was said of. */
struct rejection {
    char text[sizeof(struct tconv_reason)];
    unsigned algorithms;
    int layers;
};

enum { REJECTIONS = 64 };

struct rejections {
    struct rejection list[REJECTIONS];
    int count;
};

static void add_rejection(struct rejections *all, int algorithm, const char *text)
{
    int i = 0;
    while (i < all->count && strcmp(all->list[i].text, text) != 0) i++;
    if (i == REJECTIONS) return;
    if (i == all->count) {
        all->list[all->count++] = (struct rejection){.layers = 0};
        snprintf(all->list[i].text, sizeof all->list[i].text, "%s", text);
    }
    all->list[i].algorithms |= 1u << algorithm;
    all->list[i].layers++;
}

/* Prints the choice, its sums, and how many times as long the next algorithm is expected to take.
 */
static bool print_cell(const struct entry *entry, const struct choices *choices, const char *name,
                       struct rejections *rejections)
{
    struct tconv_loops loops;
    struct tconv_candidate best = {0}, next = {0};
    if (!suite_layer(entry, choices->type, choices->format, &loops)) return false;
    const tconv_device_info device = tconv_device_for(described_device(name), &loops);
    const struct tconv_request request = request_for(&loops, &device, &bias_only, TCONV_MATH_EXACT);
    for (int a = 0; tconv_algorithm_at(a) != NULL; a++) {
        const struct tconv_algorithm *algorithm = tconv_algorithm_at(a);
        struct tconv_candidates found;
        struct tconv_reason reason;
        if (algorithm->made_for == TCONV_FOR_VECTORS) continue;
        if (!tconv_enumerate(algorithm, &request, NULL, &found, &reason)) {
            add_rejection(rejections, a, reason.text);
            continue;
        }
        if (best.algorithm == NULL || found.list[0].cost < best.cost) {
            next = best;
            best = found.list[0];
        } else if (next.algorithm == NULL || found.list[0].cost < next.cost)
            next = found.list[0];
    }
    if (best.algorithm == NULL || next.algorithm == NULL) return false;
    struct tconv_kernel_plan kernel_plan = {0};
    if (tconv_kernel_plan_write(&request, &best, &kernel_plan, NULL) != TCONV_OK) return false;
    long sums = 0;
    for (int i = 0; i < kernel_plan.run_count; i++) {
        const long own = sums_of(best.algorithm, &kernel_plan.run[i]);
        if (own > sums) sums = own;
    }
    printf(" `%s`, %ld (`%s` %.2f) |", best.algorithm->name, sums, next.algorithm->name,
           next.cost / best.cost);
    tconv_kernel_plan_clear(&kernel_plan);
    return true;
}

static void print_rejections(const char *device, const struct rejections *rejections)
{
    for (int i = 0; i < rejections->count; i++) {
        const struct rejection *r = &rejections->list[i];
        const char *comma = "";
        int algorithms = 0;
        printf("| %s | ", device);
        for (int a = 0; tconv_algorithm_at(a) != NULL; a++) {
            if ((r->algorithms >> a & 1) == 0) continue;
            printf("%s`%s`", comma, tconv_algorithm_at(a)->name);
            comma = ", ";
            algorithms++;
        }
        printf(" | %d | %s |\n", r->layers / algorithms, r->text);
    }
}

bool print_choices(const struct suite *suite, const struct choices *choices)
{
    enum { COLUMNS = 8 };
    static struct rejections rejections[COLUMNS];
    if (choices->count > COLUMNS) return false;
    printf("| %s %s |", tconv_type_name(choices->type),
           choices->format == TCONV_NXC ? "NXC" : "NCX");
    for (int d = 0; d < choices->count; d++) printf(" %s |", choices->devices[d]);
    printf("\n|---|");
    for (int d = 0; d < choices->count; d++) printf("---|");
    printf("\n");
    for (size_t i = 0; i < suite->count; i++) {
        const struct entry *entry = &suite->entries[i];
        printf("| %s %s |", entry->id, entry->layer);
        for (int d = 0; d < choices->count; d++)
            if (!print_cell(entry, choices, choices->devices[d], &rejections[d])) {
                fprintf(stderr, "%s has no choice on %s\n", entry->id, choices->devices[d]);
                return false;
            }
        printf("\n");
    }
    printf("\n| device | rejected | layers | why |\n|---|---|---|---|\n");
    for (int d = 0; d < choices->count; d++) print_rejections(choices->devices[d], &rejections[d]);
    return true;
}
