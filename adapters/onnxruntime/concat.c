/* SPDX-License-Identifier: Apache-2.0 */
/* Concatenates a layer's output with other tensors, without a copy of the layer's. */
#include "concat.h"

#include <string.h>

bool fuse_concat(struct node_layer *layer, size_t most, const struct taken *taken)
{
    const OrtNode *concat = reader_of(layer->node[layer->count - 1]);
    const OrtValueInfo *own, *part[MOST_PARTS];
    size_t count, own_part = MOST_PARTS;
    tconv_shape shape;
    tconv_type type, own_type;
    tconv_error error;
    if (concat == NULL || layer->count >= most || layer->count >= MOST_NODES ||
        !is_operator(concat, "Concat") || !is_free(concat, taken) ||
        (integer_of(concat, "axis", 0) != 1 &&
         integer_of(concat, "axis", 0) != 1 - rank_of(layer)) ||
        !succeeded(ort.Node_GetNumInputs(concat, &count), NULL) || count > MOST_PARTS ||
        !succeeded(ort.Node_GetOutputs(layer->node[layer->count - 1], &own, 1), NULL) ||
        tensor_of(own, &shape, &own_type, &error) != TCONV_OK)
        return false;
    for (size_t i = 0; i < count; i++) {
        part[i] = input_of(concat, i);
        if (part[i] == own) own_part = i;
        if (part[i] == NULL || tensor_of(part[i], &shape, &type, &error) != TCONV_OK ||
            type != own_type || (shape.rank != 0 && shape.rank != rank_of(layer)))
            return false; /* rank 0: it is not known */
    }
    if (own_part == MOST_PARTS) return false;
    memcpy(layer->part, part, count * sizeof *part);
    layer->parts = count;
    layer->own_part = own_part;
    layer->node[layer->count++] = concat;
    return true;
}

/* Fails if a part does not have the extents of the layer's output, channels aside. As for ONNX
 * Runtime, a part without channels may have any. */
static tconv_status check_part(const tconv_shape *part, const tconv_shape *own, size_t index,
                               tconv_error *error)
{
    if (part->rank != own->rank)
        return fail(error, TCONV_ERROR_SHAPE,
                    "input %zu of the Concat has rank %d, the output of the layer %d", index,
                    part->rank, own->rank);
    for (int i = 0; i < own->rank; i++)
        if (i != 1 && part->dim[1] != 0 && part->dim[i] != own->dim[i])
            return fail(error, TCONV_ERROR_SHAPE,
                        "input %zu of the Concat has extent %lld at axis %d, the output of the "
                        "layer %lld",
                        index, (long long)part->dim[i], i, (long long)own->dim[i]);
    return TCONV_OK;
}

/* The layer's part has gaps between batch items. */
static tconv_steps steps_between(const tconv_shape *own, int64_t item)
{
    tconv_steps steps = {own->rank, {item}};
    int64_t step = 1;
    for (int i = own->rank - 1; i > 0; i--) {
        steps.value[i] = step;
        step *= own->dim[i];
    }
    return steps;
}

tconv_status whole_of(const struct concat *concat, const OrtKernelContext *context,
                      const tconv_geometry *geometry, struct whole *out, tconv_error *error)
{
    const tconv_shape *own = &geometry->output_shape;
    const size_t element = tconv_type_size(geometry->output_type);
    *out = (struct whole){.shape = *own};
    if (concat->parts == 0) return TCONV_OK;
    const bool empty = geometry->output_bytes == 0;
    const size_t channel =
        empty ? 0 : (size_t)geometry->output_bytes / (size_t)own->dim[0] / (size_t)own->dim[1];
    out->shape.dim[1] = 0;
    for (size_t i = 0; i < concat->parts; i++) {
        struct copied *copied = &out->copied[out->copied_count];
        tconv_shape part = *own;
        const void *data = NULL;
        tconv_status status = TCONV_OK;
        if (i != concat->own)
            status =
                read_tensor(context, concat->input[i], geometry->output_type, &part, &data, error);
        if (status == TCONV_OK) status = check_part(&part, own, i, error);
        if (status != TCONV_OK) return status;
        if (i == concat->own)
            out->own_begin = out->item_bytes;
        else
            *copied = (struct copied){data, out->item_bytes, channel * (size_t)part.dim[1]};
        out->copied_count += i != concat->own;
        out->item_bytes += channel * (size_t)part.dim[1];
        if (__builtin_add_overflow(out->shape.dim[1], part.dim[1], &out->shape.dim[1]))
            return fail(error, TCONV_ERROR_SHAPE, "the Concat has more than 2^63 channels");
    }
    out->batch = empty ? 0 : own->dim[0];
    if (out->batch > 1) out->steps = steps_between(own, (int64_t)(out->item_bytes / element));
    return TCONV_OK;
}

/* ---- copies ---- */

enum { CHUNK = 1 << 17 }; /* bytes that a thread copies at once: fewer than a second cache has */

struct copy {
    const struct whole *whole;
    unsigned char *output;
    size_t item_chunks; /* of all parts */
};

static size_t chunks_of(const struct copied *copied)
{
    return (copied->bytes + CHUNK - 1) / CHUNK;
}

static void copy_chunk(void *user, size_t index)
{
    const struct copy *copy = user;
    const struct copied *copied = copy->whole->copied;
    const size_t item = index / copy->item_chunks;
    size_t chunk = index % copy->item_chunks;
    for (; chunk >= chunks_of(copied); copied++) chunk -= chunks_of(copied);
    const size_t begin = chunk * CHUNK, left = copied->bytes - begin;
    memcpy(copy->output + item * copy->whole->item_bytes + copied->begin + begin,
           copied->data + item * copied->bytes + begin, left < CHUNK ? left : CHUNK);
}

tconv_status copy_parts(const struct whole *whole, const OrtKernelContext *context, void *output,
                        tconv_error *error)
{
    struct copy copy = {whole, output, 0};
    for (size_t i = 0; i < whole->copied_count; i++)
        copy.item_chunks += chunks_of(&whole->copied[i]);
    const size_t chunks = copy.item_chunks * (size_t)whole->batch;
    if (chunks == 1)
        copy_chunk(&copy, 0);
    else if (chunks > 1 &&
             !succeeded(ort.KernelContext_ParallelFor(context, copy_chunk, chunks, 0, &copy),
                        error))
        return error->status;
    return TCONV_OK;
}
