/* SPDX-License-Identifier: Apache-2.0 */
/* Which layers a command works on: a suite, the layers of a model, or one layer by its shapes and
 * attributes. */
#ifndef TCONV_TOOL_LAYERS_H
#define TCONV_TOOL_LAYERS_H

#include "suite.h"

/* Reads them as the options say. Without any option about layers, `otherwise` gives them. Options
 * that would not be used are a wrong request. */
enum exit_code choose_layers(struct suite *suite, enum exit_code (*otherwise)(struct suite *suite));

/* The suite inside the tool, for `otherwise`. */
enum exit_code built_in_suite(struct suite *suite);

#endif
