/* SPDX-License-Identifier: Apache-2.0 */
/* tconv-cl shape: resolves a problem's pads and output shape, on the host. */
#include "base/convolves.h"
#include "tool/tool.h"

#include <inttypes.h>
#include <stdio.h>

static const struct poptOption table[] = {
    PART(shape_table, "Shapes:"),
    PART(attribute_table, "Attributes:"),
    END_WITHOUT_DEVICE,
};

static void print_numbers(const char *name, const int64_t *numbers, int count)
{
    char text[NUMBERS_TEXT];
    write_numbers(numbers, count, text, sizeof text);
    printf("%-13s %s\n", name, text);
}

static void print_geometry(const tconv_problem *p, const tconv_geometry *g)
{
    printf("operator      %s\n", tconv_operation_name(p->operation));
    printf("rules         %s\n", tconv_rules_name(p->rules));
    print_numbers("data_shape", p->data.dim, p->data.rank);
    print_numbers("filter_shape", p->filter.dim, p->filter.rank);
    print_numbers("output_shape", g->output_shape.dim, g->output_shape.rank);
    const bool convolves = tconv_convolves(p);
    if (convolves) { /* then these are of the transposed convolution that computes it */
        print_numbers("factors", g->stride, g->axes);
        printf("computed as a transposed convolution:\n");
        print_numbers("kernel", g->kernel, g->axes);
    }
    print_numbers("pads_begin", g->pad_begin, g->axes);
    print_numbers("pads_end", g->pad_end, g->axes);
    if (!convolves) print_numbers("strides", g->stride, g->axes);
    print_numbers("dilations", g->dilation, g->axes);
    printf("groups        %" PRId64 "\n", g->groups);
    printf("macs          %" PRIu64 " useful multiply-adds\n", g->macs);
    printf("bytes         %" PRIu64 " data, %" PRIu64 " filter, %" PRIu64 " output\n",
           g->data_bytes, g->filter_bytes, g->output_bytes);
}

enum exit_code command_shape(int argc, const char **argv)
{
    bool leave;
    enum exit_code code = read_options(
        table, "--data-shape N,C,... --filter-shape CI,CO,... [ATTRIBUTES] [--json FILE]", argc,
        argv, &leave);
    if (leave) return code;
    if (options.device != NULL)
        return wrong_request("--device is given, but shape needs no device");
    tconv_problem p = TCONV_PROBLEM_INIT;
    if ((code = read_problem_with_shapes(&p)) != EXIT_DONE) return code;
    tconv_geometry g = TCONV_GEOMETRY_INIT;
    tconv_error error;
    if (tconv_resolve(&p, &g, &error) != TCONV_OK) return failed_call(&error);
    tell_notes("", &p);
    if (options.json == NULL) {
        print_geometry(&p, &g);
        return EXIT_DONE;
    }
    json_t *shape = json_pack(
        "{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o}", "operator",
        tconv_operation_name(p.operation), "rules", tconv_rules_name(p.rules), "data_shape",
        numbers_json(p.data.dim, p.data.rank), "filter_shape",
        numbers_json(p.filter.dim, p.filter.rank), "output_shape",
        numbers_json(g.output_shape.dim, g.output_shape.rank), "kernel",
        numbers_json(g.kernel, g.axes), "pads_begin", numbers_json(g.pad_begin, g.axes), "pads_end",
        numbers_json(g.pad_end, g.axes), "strides", numbers_json(g.stride, g.axes), "dilations",
        numbers_json(g.dilation, g.axes), "groups", (json_int_t)g.groups, "macs",
        g.macs <= INT64_MAX ? json_integer((json_int_t)g.macs) : json_real((double)g.macs));
    if (tconv_convolves(&p)) /* whose kernel, pads, strides and dilations these are */
        json_object_set_new(shape, "computed_as", json_string("transposed convolution"));
    return write_json(shape);
}
