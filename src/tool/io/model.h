/* SPDX-License-Identifier: Apache-2.0 */
/* The transposed convolutions of an OpenVINO model: `name.xml` with its weights in `name.bin`. */
#ifndef TCONV_TOOL_MODEL_H
#define TCONV_TOOL_MODEL_H

#include "tool/io/suite.h"

/* Finds the (Group)ConvolutionBackpropData layers of a model, in the file's order, with attributes,
 * weights and constant output shapes, under the `openvino` rules (or those of --rules). An entry's
 * id is its number in the model, its layer the layer's name. Extents of the data that the model
 * leaves open are -1. A layer that cannot be read gets an entry with an error. */
enum exit_code model_read(const char *path, struct suite *suite);

/* The only layer, or the one that `name` names, by its name or else by its number; NULL after a
 * message. */
struct entry *model_layer(const char *path, const struct suite *suite, const char *name);

/* Whether data of that shape contradict nothing that the model says of the entry's. */
bool model_data_fits(const struct entry *entry, const tconv_shape *data);

/* Where the weights of a model are; the caller frees it, NULL where memory is missing. */
char *model_weights_path(const char *path);

/* Puts the extents of `data` into the entry; false, with the entry's error set, where they
 * contradict those of the model. */
bool model_set_data(struct entry *entry, const tconv_shape *data);

/* Tells the error of an entry; the code says whether the file or the request is to blame. */
enum exit_code model_failure(const char *path, const struct entry *entry);

#endif
