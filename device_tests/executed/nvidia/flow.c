/* SPDX-License-Identifier: Apache-2.0 */
/* Finds where lanes meet again that a branch has sent different ways: at the first operation that
 * all ways to the end of the kernel come to, the branch's nearest post-dominator. By the method of
 * Cooper, Harvey and Kennedy, on the graph of ways back from the end. */
#include "decode.h"

#include <stdlib.h>

struct flow {
    const struct kernel *kernel;
    int *back, *first; /* the operations that lead to i: back[first[i]] to back[first[i + 1] - 1] */
    int *order, *place; /* order[place[i]] is i; the end has the highest place */
    int *next;          /* the nearest post-dominator of each; -1: not known yet */
    int *stack, *tried;
    int found;
};

/* Where an operation may lead to: 0 to 2 operations. */
static int ways(const struct kernel *kernel, int i, int to[2])
{
    const struct operation *op = &kernel->list[i];
    int count = 0;
    if (op->run == branch) to[count++] = op->target;
    if (op->run == end_lanes) to[count++] = kernel->count;
    if ((op->run != branch && op->run != end_lanes) || op->guard.size != 0) to[count++] = i + 1;
    return count;
}

static void find_ways_back(struct flow *f)
{
    const int end = f->kernel->count;
    int to[2];
    for (int i = 0; i < end; i++)
        for (int k = ways(f->kernel, i, to); k > 0; k--) f->first[to[k - 1] + 1]++;
    for (int i = 0; i <= end; i++) f->first[i + 1] += f->first[i];
    for (int i = 0; i <= end; i++) f->tried[i] = f->first[i];
    for (int i = 0; i < end; i++)
        for (int k = ways(f->kernel, i, to); k > 0; k--) f->back[f->tried[to[k - 1]]++] = i;
}

/* Numbers operations when all that lead to them have numbers, as far as loops allow. */
static void walk(struct flow *f)
{
    const int end = f->kernel->count;
    int depth = 0;
    for (int i = 0; i <= end; i++) f->tried[i] = -1;
    f->stack[depth++] = end;
    f->tried[end] = f->first[end];
    while (depth > 0) {
        const int i = f->stack[depth - 1];
        if (f->tried[i] == f->first[i + 1]) {
            f->place[i] = f->found;
            f->order[f->found++] = i;
            depth--;
            continue;
        }
        const int before = f->back[f->tried[i]++];
        if (f->tried[before] >= 0) continue;
        f->tried[before] = f->first[before];
        f->stack[depth++] = before;
    }
}

static int common(const struct flow *f, int a, int b)
{
    while (a != b) {
        if (f->place[a] < f->place[b])
            a = f->next[a];
        else
            b = f->next[b];
    }
    return a;
}

static void find_next(struct flow *f)
{
    bool changed = true;
    f->next[f->kernel->count] = f->kernel->count;
    while (changed) {
        changed = false;
        for (int n = f->found - 2; n >= 0; n--) {
            const int i = f->order[n];
            int to[2], next = -1;
            const int count = ways(f->kernel, i, to);
            for (int k = 0; k < count; k++) {
                if (f->next[to[k]] < 0) continue;
                next = next < 0 ? to[k] : common(f, next, to[k]);
            }
            changed |= next != f->next[i];
            f->next[i] = next;
        }
    }
}

bool find_joins(struct kernel *kernel)
{
    const size_t count = (size_t)kernel->count + 2;
    struct flow f = {.kernel = kernel};
    int *all = calloc(8 * count, sizeof *all);
    if (all == NULL) return false;
    f.first = all;
    f.order = all + count;
    f.place = all + 2 * count;
    f.next = all + 3 * count;
    f.stack = all + 4 * count;
    f.tried = all + 5 * count;
    f.back = all + 6 * count; /* two ways of each */
    for (size_t i = 0; i < count; i++) f.next[i] = -1;
    find_ways_back(&f);
    walk(&f);
    find_next(&f);
    for (int i = 0; i < kernel->count; i++)
        if (kernel->list[i].run == branch) kernel->list[i].join = f.next[i];
    free(all);
    return true;
}
