/* SPDX-License-Identifier: Apache-2.0 */
/* tconv-cl algorithms: prints each algorithm's name and summary. */
#include "tool/tool.h"

#include <stdio.h>

static const struct poptOption table[] = {
    END_WITHOUT_DEVICE,
};

enum exit_code command_algorithms(int argc, const char **argv)
{
    bool leave;
    const enum exit_code code = read_options(table, "[--json FILE]", argc, argv, &leave);
    if (leave) return code;
    if (options.device != NULL)
        return wrong_request("--device is given, but algorithms lists those of every device");
    if (options.json == NULL) {
        print_algorithms();
        return EXIT_DONE;
    }
    json_t *list = json_array();
    for (int i = 0; tconv_algorithm_name(i) != NULL; i++)
        json_array_append_new(list,
                              json_pack("{s:s, s:s}", "name", tconv_algorithm_name(i), "summary",
                                        tconv_algorithm_summary(tconv_algorithm_name(i))));
    return write_json(json_pack("{s:o}", "algorithms", list));
}
