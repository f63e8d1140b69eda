/* SPDX-License-Identifier: Apache-2.0 */
/* The transposed convolutions of an OpenVINO model: `name.xml` with its weights in `name.bin`. */
#ifndef TCONV_TOOL_MODEL_H
#define TCONV_TOOL_MODEL_H

#include "tool/io/suite.h"

/* Finds the (Group)ConvolutionBackpropData layers of a model, in the file's order, with attributes,
 * weights and constant output shapes, under the `openvino` rules (or those of --rules); and the
 * operators of tconv_cl.openvino.convert, without what was fused into them. An entry's
 * id is its number in the model, its layer the layer's name. Extents of the data that the model
 * leaves open are -1. A layer that cannot be read gets an entry with an error. */
enum exit_code model_read(const char *path, struct suite *suite);

/* Finds the layer called `name`, or number `name`; without a name the only layer. NULL after a
 * message. */
struct entry *model_layer(const char *path, const struct suite *suite, const char *name);

/* True if the shape contradicts none of the data extents that the model gives. */
bool model_data_fits(const struct entry *entry, const tconv_shape *data);

/* The path of a model's weights; the caller frees it. NULL if memory is missing. */
char *model_weights_path(const char *path);

/* Puts the extents of `data` into the entry. False, with the entry's error set, if they contradict
 * the model's. */
bool model_set_data(struct entry *entry, const tconv_shape *data);

/* Prints the error of an entry. The code says whether the file or the request is to blame. */
enum exit_code model_failure(const char *path, const struct entry *entry);

#endif
