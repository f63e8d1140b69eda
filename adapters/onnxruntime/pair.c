/* SPDX-License-Identifier: Apache-2.0 */
/* Reads nearest upsampling and the convolution behind it, or a convolution and the pixel shuffle
 * behind it, as one layer, if each output is the one that the two nodes compute. For upsampling,
 * the element u must be the element floor(u / factor). */
#include "pair.h"

#include "constant.h"

#include <math.h>
#include <string.h>

enum { RESIZE_OF_ATTRIBUTES = 11 }; /* the version of Resize since which attributes say the mode */

static bool enlarges(const OrtNode *node)
{
    return node != NULL && (is_operator(node, "Resize") || is_operator(node, "Upsample"));
}

/* The node that enlarges the data of a convolution; NULL if none does. */
static const OrtNode *enlarger_of(const OrtNode *conv)
{
    const OrtNode *node = producer_of(input_of(conv, TENSOR_DATA));
    return enlarges(node) ? node : NULL;
}

/* True if nearest neighbours enlarge a part of what is concatenated before a convolution. */
static bool is_concatenated(const OrtNode *conv)
{
    const OrtNode *concat = producer_of(input_of(conv, TENSOR_DATA));
    if (concat == NULL || !is_operator(concat, "Concat")) return false;
    for (size_t i = 0; i < MOST_INPUTS; i++) {
        const OrtNode *node = producer_of(input_of(concat, i));
        char mode[MOST_WORD];
        if (!enlarges(node)) continue;
        word_of(node, "mode", "nearest", mode);
        if (strcmp(mode, "nearest") == 0) return true;
    }
    return false;
}

/* The node that shuffles the output of a convolution; NULL if none does. */
static const OrtNode *shuffler_of(const OrtNode *conv)
{
    const OrtNode *node = reader_of(conv);
    return node != NULL && is_operator(node, "DepthToSpace") ? node : NULL;
}

bool is_pair(const OrtNode *node)
{
    return is_conv(node) &&
           (enlarger_of(node) != NULL || shuffler_of(node) != NULL || is_concatenated(node));
}

/* ---- which element is the nearest ---- */

static bool is_any(const char *word, const char *const *words)
{
    while (*words != NULL && strcmp(word, *words) != 0) words++;
    return *words != NULL;
}

/* True if a Resize with these attributes takes the element floor(u / s) for every integer factor s
 * up to `most`. */
static bool takes_floor(const char *coordinates, const char *rounding, int64_t most)
{
    static const char *const half[] = {"half_pixel", "pytorch_half_pixel", "half_pixel_symmetric",
                                       NULL};
    static const char *const nearest[] = {"round_prefer_floor", "round_prefer_ceil", NULL};
    if (is_any(coordinates, half)) return is_any(rounding, nearest);
    if (strcmp(coordinates, "tf_half_pixel_for_nn") == 0) return strcmp(rounding, "floor") == 0;
    if (strcmp(coordinates, "asymmetric") == 0)
        return strcmp(rounding, "floor") == 0 ||
               (most == 2 && strcmp(rounding, "round_prefer_floor") == 0);
    return strcmp(coordinates, "align_corners") == 0 && most == 2 && is_any(rounding, nearest);
}

static tconv_status check_modes(const OrtNode *node, int version, int64_t most, tconv_error *error)
{
    char mode[MOST_WORD], coordinates[MOST_WORD], rounding[MOST_WORD], policy[MOST_WORD];
    word_of(node, "mode", "nearest", mode);
    if (strcmp(mode, "nearest") != 0)
        return fail(error, TCONV_ERROR_UNSUPPORTED, "its mode is %s, not nearest", mode);
    if (version < RESIZE_OF_ATTRIBUTES) return TCONV_OK; /* asymmetric, floor */
    word_of(node, "coordinate_transformation_mode", "half_pixel", coordinates);
    word_of(node, "nearest_mode", "round_prefer_floor", rounding);
    word_of(node, "keep_aspect_ratio_policy", "stretch", policy);
    if (!takes_floor(coordinates, rounding, most))
        return fail(error, TCONV_ERROR_UNSUPPORTED,
                    "with coordinate_transformation_mode %s, nearest_mode %s and a factor of %lld "
                    "it does not repeat each element",
                    coordinates, rounding, (long long)most);
    if (strcmp(policy, "stretch") != 0 || integer_of(node, "antialias", 0) != 0)
        return fail(error, TCONV_ERROR_UNSUPPORTED,
                    "it has antialias or a keep_aspect_ratio_policy");
    return TCONV_OK;
}

/* ---- factors ---- */

/* The scales or the sizes of the enlarging node: one number for each of `axis`. */
struct scaling {
    int axis[TCONV_MAX_RANK], count;
    double number[TCONV_MAX_RANK];
    bool are_sizes;
};

/* Finds the axes for which the node has numbers: all, or those of its attribute. */
static bool axes_of(const OrtNode *node, int rank, struct scaling *out)
{
    int64_t axes[TCONV_MAX_RANK];
    size_t size = sizeof axes;
    const bool given = attribute_of(node, "axes", ORT_OP_ATTR_INTS, axes, &size) && size != 0;
    bool seen[TCONV_MAX_RANK] = {false};
    if (size > sizeof axes) return false;
    out->count = given ? (int)(size / sizeof *axes) : rank;
    for (int i = 0; i < out->count; i++) {
        const int64_t axis = !given ? i : axes[i] < 0 ? axes[i] + rank : axes[i];
        if (axis < 0 || axis >= rank || seen[axis]) return false;
        seen[axis] = true;
        out->axis[i] = (int)axis;
    }
    return true;
}

/* Reads numbers that an input or, before version 9 of Upsample, an attribute has. */
static tconv_status numbers_for(const OrtNode *node, int version, struct scaling *out,
                                tconv_error *error)
{
    const bool is_resize = is_operator(node, "Resize");
    float scales[TCONV_MAX_RANK];
    size_t size = sizeof scales;
    if (!is_resize && version < 9) {
        if (!attribute_of(node, "scales", ORT_OP_ATTR_FLOATS, scales, &size) ||
            size != (size_t)out->count * sizeof *scales)
            return fail(error, TCONV_ERROR_UNSUPPORTED, "it has not one scale for each axis");
        for (int i = 0; i < out->count; i++) out->number[i] = (double)scales[i];
        return TCONV_OK;
    }
    /* Version 11 has an empty list of scales beside sizes. */
    const OrtValueInfo *value =
        input_of(node, is_resize && version >= RESIZE_OF_ATTRIBUTES ? 2 : 1);
    const OrtValueInfo *sizes = is_resize ? input_of(node, 3) : NULL;
    struct constant constant;
    out->are_sizes = sizes != NULL;
    if (sizes != NULL) value = sizes;
    if (!constant_of(value, &constant))
        return fail(error, TCONV_ERROR_UNSUPPORTED, "its %s are not constants",
                    out->are_sizes ? "sizes" : "scales");
    if (constant.shape.rank != 1 || constant.shape.dim[0] != out->count)
        return fail(error, TCONV_ERROR_UNSUPPORTED, "it has not one number for each axis");
    for (int i = 0; i < out->count; i++) out->number[i] = element_of(&constant, i);
    return TCONV_OK;
}

/* Turns sizes into factors; these hold for the extents that the model says. */
static tconv_status divide_sizes(struct node_layer *layer, struct scaling *scaling,
                                 tconv_error *error)
{
    layer->fixed = (tconv_shape){rank_of(layer), {0}};
    for (int i = 0; i < layer->fixed.rank; i++) layer->fixed.dim[i] = -1;
    for (int i = 0; i < scaling->count; i++) {
        const int axis = scaling->axis[i];
        const int64_t extent = layer->data.rank == 0 ? -1 : layer->data.dim[axis];
        if (extent < 1)
            return fail(error, TCONV_ERROR_UNSUPPORTED,
                        "its sizes are constants, but the data's extent at axis %d is not known",
                        axis);
        layer->fixed.dim[axis] = extent;
        scaling->number[i] /= (double)extent;
    }
    return TCONV_OK;
}

static tconv_status factors_of(const OrtNode *node, int version, struct node_layer *layer,
                               tconv_error *error)
{
    enum { MOST = 1 << 20 };
    struct scaling scaling = {.count = 0};
    const int rank = rank_of(layer);
    tconv_list *factors = &layer->request.problem.strides;
    int64_t most = 1;
    if (!axes_of(node, rank, &scaling))
        return fail(error, TCONV_ERROR_UNSUPPORTED, "its axes are not those of the data");
    tconv_status status = numbers_for(node, version, &scaling, error);
    if (status == TCONV_OK && scaling.are_sizes) status = divide_sizes(layer, &scaling, error);
    if (status != TCONV_OK) return status;
    factors->count = rank - 2;
    for (int a = 0; a < factors->count; a++) factors->value[a] = 1;
    for (int i = 0; i < scaling.count; i++) {
        const double factor = scaling.number[i];
        const int axis = scaling.axis[i];
        if (!(factor >= 1 && factor <= MOST) || factor != floor(factor) ||
            (axis < 2 && factor != 1)) {
            /* as integers: a decimal point depends on the locale */
            const long long thousandths = llround(fmin(fmax(factor, 0), MOST) * 1000);
            return fail(error, TCONV_ERROR_UNSUPPORTED,
                        "axis %d does not grow by %s, but by %lld.%03lld", axis,
                        axis < 2 ? "a factor of 1" : "an integer factor", thousandths / 1000,
                        thousandths % 1000);
        }
        if (axis < 2) continue;
        factors->value[axis - 2] = (int64_t)factor;
        if ((int64_t)factor > most) most = (int64_t)factor;
    }
    if (most == 1) return fail(error, TCONV_ERROR_UNSUPPORTED, "it enlarges nothing");
    return check_modes(node, version, most, error);
}

/* ---- pairs ---- */

/* Reads a Conv of stride 1. */
static tconv_status read_convolution(const OrtNode *conv, struct node_layer *layer,
                                     tconv_error *error)
{
    const tconv_status status = node_read(conv, layer, error);
    const tconv_list *strides = &layer->request.problem.strides;
    for (int a = 0; a < strides->count && status == TCONV_OK; a++)
        if (strides->value[a] != 1)
            return fail(error, TCONV_ERROR_UNSUPPORTED, "the convolution has a stride");
    return status;
}

/* Reads a Conv and the node that enlarges its data. */
static tconv_status read_upsampling(const OrtNode *conv, const struct taken *taken,
                                    struct node_layer *layer, tconv_error *error)
{
    const OrtNode *enlarger = enlarger_of(conv);
    int version;
    tconv_error reason;
    tconv_status status = read_convolution(conv, layer, error);
    if (status != TCONV_OK) return status;
    const int rank = rank_of(layer);
    if (reader_of(enlarger) != conv || !is_free(enlarger, taken))
        return fail(error, TCONV_ERROR_UNSUPPORTED,
                    "what it enlarges is an output of the graph, or another node needs it");
    layer->tensor[TENSOR_DATA] = input_of(enlarger, 0);
    if (layer->tensor[TENSOR_DATA] == NULL)
        return fail(error, TCONV_ERROR_UNSUPPORTED, "the data are missing");
    tconv_type type;
    status = tensor_of(layer->tensor[TENSOR_DATA], &layer->data, &type, error);
    if (status != TCONV_OK) return status;
    if (rank_of(layer) != rank)
        return fail(error, TCONV_ERROR_UNSUPPORTED, "the data have rank %d, enlarged %d",
                    layer->data.rank, rank);
    if (!succeeded(ort.Node_GetSinceVersion(enlarger, &version), error)) return error->status;
    status = factors_of(enlarger, version, layer, &reason);
    if (status != TCONV_OK)
        return fail(error, status, "the node that enlarges its data: %.600s", reason.message);
    layer->node[0] = enlarger;
    layer->node[1] = conv;
    layer->count = 2;
    return TCONV_OK;
}

/* Reads a Conv and the node that shuffles its output. */
static tconv_status read_shuffle(const OrtNode *conv, const struct taken *taken,
                                 struct node_layer *layer, tconv_error *error)
{
    const OrtNode *shuffler = shuffler_of(conv);
    const int64_t factor = integer_of(shuffler, "blocksize", 0);
    char mode[MOST_WORD];
    const tconv_status status = read_convolution(conv, layer, error);
    if (status != TCONV_OK) return status;
    word_of(shuffler, "mode", "DCR", mode); /* since version 11; before, DCR */
    tconv_problem *problem = &layer->request.problem;
    if (rank_of(layer) != 4 || factor < 1 || !is_free(shuffler, taken))
        return fail(error, TCONV_ERROR_UNSUPPORTED, "DepthToSpace by %lld of a tensor of rank %d",
                    (long long)factor, rank_of(layer));
    problem->operation = strcmp(mode, "CRD") == 0 ? TCONV_CONV_PIXEL_SHUFFLE
                                                  : TCONV_CONV_PIXEL_SHUFFLE_DCR;
    problem->strides = (tconv_list){2, {factor, factor}};
    layer->node[1] = shuffler;
    layer->count = 2;
    return TCONV_OK;
}

tconv_status pair_read(const OrtNode *conv, const struct taken *taken, struct node_layer *layer,
                       tconv_error *error)
{
    const bool shuffles = shuffler_of(conv) != NULL;
    if (!shuffles && is_concatenated(conv)) {
        memset(layer, 0, sizeof *layer);
        return fail(error, TCONV_ERROR_UNSUPPORTED,
                    "a Concat is between it and what enlarges a part of its data");
    }
    if (enlarger_of(conv) != NULL) {
        const tconv_status status = read_upsampling(conv, taken, layer, error);
        if (status == TCONV_OK || !shuffles) return status;
        node_release(layer);
    }
    return read_shuffle(conv, taken, layer, error);
}
