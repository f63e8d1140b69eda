/* SPDX-License-Identifier: Apache-2.0 */
/* The problem to compute: the operator, its shapes and attributes, and the geometry that they
 * resolve to. All of it is host arithmetic, without an OpenCL header or a device. Every function
 * here may be called from any thread. */
#ifndef TCONV_CL_PROBLEM_H
#define TCONV_CL_PROBLEM_H

#include "status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Limits of shapes and attributes. */
enum {
    TCONV_MAX_AXES = 6, /* spatial axes */
    TCONV_MAX_RANK =
        TCONV_MAX_AXES +
        3, /* of a tensor: a group filter has three more axes than there are spatial ones */
};

/* The element types of the operators' pages. Values are fixed. */
typedef enum tconv_type {
    TCONV_TYPE_DEFAULT = 0, /* only for the output: as the data */
    TCONV_F32 = 1,          /* IEEE binary32 */
    TCONV_F16 = 2,          /* IEEE binary16 */
    TCONV_BF16 = 3,         /* the upper half of an f32 */
    TCONV_F64 = 4,          /* IEEE binary64 */
    TCONV_I8 = 5,           /* int8_t */
    TCONV_I16 = 6,          /* int16_t */
    TCONV_I32 = 7,          /* int32_t */
    TCONV_I64 = 8,          /* int64_t */
    TCONV_U8 = 9,           /* uint8_t */
    TCONV_U16 = 10,         /* uint16_t */
    TCONV_U32 = 11,         /* uint32_t */
    TCONV_U64 = 12          /* uint64_t */
} tconv_type;

/* The operators. N = batch, CI and CO = input and output channels, G = groups, X... = spatial
 * axes.
 *
 *                               data             filter              output
 *   TCONV_CONV_BACKPROP         [N, CI, X...]    [CI, CO, K...]      [N, CO, Y...]
 *   TCONV_GROUP_CONV_BACKPROP   [N, G*CI, X...]  [G, CI, CO, K...]   [N, G*CO, Y...]
 *   TCONV_ONEAPI_CONV_BACKPROP  NXC or NCX       XIO or OIX          as data; with groups
 *
 * The letters of the oneAPI form's filter are the forward convolution's: OIX is [CI, CO/G, K...],
 * XIO is [K..., CO/G, CI].
 *
 * These three are the gradient of an ordinary convolution with respect to its data (convolution
 * backward-data). `data` is the gradient of the convolution's output. Filter, strides, dilations,
 * pads and groups are the convolution's own; its G*CO output channels are G*CI here. Several
 * extents of the convolution's data may give the same output: output_shape, with
 * TCONV_RULES_OPENVINO, says which it was. There are no atomics: one plan always gives the same
 * bits.
 *
 * Sources: OpenVINO's pages ConvolutionBackpropData-1 and GroupConvolutionBackpropData-1; the
 * oneAPI form of the former.
 *
 * TCONV_UPSAMPLE_CONV is nearest upsampling and a convolution: it repeats each element of the data
 * s times along each axis, and convolves the enlarged data with stride 1. `strides` are the factors
 * s.
 *
 *   enlarged[n, c, u...] = data[n, c, floor(u/s)...], for 0 <= u < s*X
 *   output[n, g*CO + co, y...] = sum over ci, k of
 *                                enlarged[n, g*CI + ci, (y + k*d - pads_begin)...] *
 *                                filter[g*CO + co, ci, k...]
 *
 *          data                    filter                      output
 *   NCX    [N, G*CI, X...]         [G*CO, CI, K...] (OIX)      [N, G*CO, Y...]
 *   NXC    [N, X..., G*CI]         [K..., CI, G*CO] (XIO)      [N, Y..., G*CO]
 *
 * Filter, pads, dilations and groups are the convolution's own. Pads are zeros around the enlarged
 * data. A pad may be negative, down to 1 - s: it cuts elements off the enlarged data. auto_pad
 * same_upper and same_lower make Y = s*X. The enlarged data never exist: the layer is computed as
 * the transposed convolution with stride s, kernel d*(K-1) + s and pads d*(K-1) - p (along axes
 * whose factor is not 1), whose weights are sums of the given ones. The sums are computed in f32
 * (f64 for f64) while the filter is packed, and rounded once to the data's type; one that
 * overflows the type becomes infinite. With factor 2 and 3 x 3 taps an output takes 4
 * multiply-adds; the two steps take 9. With infinite data an output may be infinite where the two
 * steps give NaN. With factors of 1 along all axes (strides absent) it is an ordinary convolution
 * of stride 1: no weights are added up, and every element type is taken, quantised ones too.
 *
 * Refused are integers with another factor than 1, because sums of weights may not fit their type;
 * a dilation above the factor along an axis whose factor is not 1; and what has no meaning here:
 * output_padding, output_shape, other rules than TCONV_RULES_SPEC.
 *
 * TCONV_CONV_PIXEL_SHUFFLE is a convolution and pixel shuffle, together a sub-pixel convolution: it
 * convolves the data with stride 1, and then makes one channel of R channels. `strides` are the
 * factors r by which this channel is larger along each axis, and R is their product. With Z = X +
 * pads_begin + pads_end - d*(K-1), and the phase f of an output, which is y mod r of all axes as
 * one number, the last axis fastest:
 *
 *   convolved[n, c, z...] = sum over ci, k of data[n, g*CI + ci, (z + k*d - pads_begin)...] *
 *                                             filter[c, ci, k...], for 0 <= z < Z
 *   output[n, co, y...] = convolved[n, co*R + f, floor(y/r)...], for 0 <= y < r*Z
 *
 *          data                    filter                      output
 *   NCX    [N, G*CI, X...]         [G*CO*R, CI, K...] (OIX)    [N, G*CO, Y...]
 *   NXC    [N, X..., G*CI]         [K..., CI, G*CO*R] (XIO)    [N, Y..., G*CO]
 *
 * This order of the convolution's channels, co*R + f, is that of PyTorch's PixelShuffle and of mode
 * CRD of ONNX's DepthToSpace. TCONV_CONV_PIXEL_SHUFFLE_DCR has the order of mode DCR, f*CO + co. It
 * takes no groups, because an output channel would have phases from several groups.
 *
 * Filter, pads, dilations and groups are the convolution's own, and so are bias, scale and slope:
 * they have a number for each of its G*CO*R channels, before the shuffle. A residual is like the
 * output. auto_pad same_upper and same_lower make Z = X. The layer is computed as the transposed
 * convolution with stride r, kernel r*K and pads r*(K-1-p) (along axes whose factor is not 1),
 * whose weights are the given ones in another order. So nothing is rounded, every type is taken,
 * and the convolved tensor never exists.
 *
 * Refused are a dilation along an axis whose factor is not 1, and output_padding, output_shape and
 * rules as above. */
typedef enum tconv_operation {
    TCONV_CONV_BACKPROP = 1,         /* ConvolutionBackpropData-1 */
    TCONV_GROUP_CONV_BACKPROP = 2,   /* GroupConvolutionBackpropData-1 */
    TCONV_ONEAPI_CONV_BACKPROP = 3,  /* the oneAPI form, with groups and formats */
    TCONV_UPSAMPLE_CONV = 4,         /* nearest upsampling, then a convolution */
    TCONV_CONV_PIXEL_SHUFFLE = 5,    /* a convolution, then pixel shuffle; channels in order CRD */
    TCONV_CONV_PIXEL_SHUFFLE_DCR = 6 /* the same with channels in order DCR */
} tconv_operation;

/* The order of the axes of data and output: channels first (NCX) or last (NXC). */
typedef enum tconv_data_format {
    TCONV_DATA_DEFAULT = 0, /* NCX; for the oneAPI form NXC */
    TCONV_NCX = 1,          /* batch, channels, spatial axes */
    TCONV_NXC = 2           /* batch, spatial axes, channels */
} tconv_data_format;

/* The order of the axes of the filter. O and I are the output and input channels of the forward
 * convolution; tconv_operation has the shapes for each operator. */
typedef enum tconv_filter_format {
    TCONV_FILTER_DEFAULT = 0, /* OIX; for the oneAPI form XIO; a group filter has its own layout and
                                 takes only this value */
    TCONV_OIX = 1,            /* O, I, kernel */
    TCONV_XIO = 2             /* kernel, I, O */
} tconv_filter_format;

/* Where the pads come from: the attributes, or a rule (docs/semantics.md). */
typedef enum tconv_auto_pad {
    TCONV_EXPLICIT = 0,   /* also spelt notset */
    TCONV_VALID = 1,      /* pads are 0 if no output_shape is given */
    TCONV_SAME_UPPER = 2, /* pads follow from the output shape by the rule set */
    TCONV_SAME_LOWER = 3  /* the same, with the odd unit at the other end */
} tconv_auto_pad;

/* How pads and output shape are resolved; docs/semantics.md has the formulas of each. */
typedef enum tconv_rules {
    TCONV_RULES_SPEC = 0, /* the published formulas to the letter */
    TCONV_RULES_OPENVINO =
        1,               /* what the OpenVINO runtime computes: for layers read from its models */
    TCONV_RULES_ONNX = 2 /* ONNX ConvTranspose */
} tconv_rules;

/* The arithmetic. docs/semantics.md says how far each may be from the exact result. */
typedef enum tconv_math {
    TCONV_MATH_EXACT = 0, /* the defined products, added up in some order; for nearest upsampling
                             also products of differences, with a larger error bound */
    TCONV_MATH_FAST = 1   /* may use Winograd: fewer multiplies, larger error bound */
} tconv_math;

/* Where the choice of an algorithm comes from. */
typedef enum tconv_search {
    TCONV_SEARCH_DEFAULT = 0, /* what the environment variable TCONV_CL_SEARCH says, else RECORDS */
    TCONV_SEARCH_MODEL = 1,   /* the cost model alone */
    TCONV_SEARCH_RECORDS = 2, /* a stored result, else an imported one, else prepared programs
                                 (tconv_device_prepare), else the cost model; measures nothing */
    TCONV_SEARCH_MEASURE = 3, /* a stored or imported result if there is one; else times algorithms
                                 and stores the result */
    TCONV_SEARCH_RENEW = 4,   /* times algorithms in any case, and stores the result */
    TCONV_SEARCH_PREPARED =
        5, /* only as a plan's source: its programs were prepared by tconv_device_prepare */
    TCONV_SEARCH_IMPORTED =
        6 /* only as a plan's source: a result that was measured elsewhere (tuning.h) */
} tconv_search;

/* A tensor's shape: `rank` extents, outermost first. */
typedef struct tconv_shape {
    int rank;                    /* number of axes */
    int64_t dim[TCONV_MAX_RANK]; /* extents; those after `rank` are ignored */
} tconv_shape;

/* An attribute: one number for each spatial axis, in axis order. count = 0 means absent: the
 * attribute's default. */
typedef struct tconv_list {
    int count;                     /* 0, or the number of spatial axes */
    int64_t value[TCONV_MAX_AXES]; /* those after `count` are ignored */
} tconv_list;

/* Element steps of a tensor: how many elements lie between neighbours along each axis, in the
 * tensor's own axis order. A tensor may so be a slice of a larger one, or have its axes in another
 * order in memory. count = 0 means absent: the tensor is dense. docs/semantics.md has the rules. */
typedef struct tconv_steps {
    int count;                     /* 0, or the number of the tensor's axes */
    int64_t value[TCONV_MAX_RANK]; /* those after `count` are ignored */
} tconv_steps;

/* A problem. Start from TCONV_PROBLEM_INIT, which is a ConvolutionBackpropData-1 in f32 with every
 * attribute at its default. Its struct_size (see tconv_cl.h) reaches at least up to `filter`. */
typedef struct tconv_problem {
    size_t struct_size;
    tconv_operation operation; /* which operator */
    tconv_rules rules;         /* how pads and output shape are resolved */
    tconv_type data_type;      /* element type of the data */
    tconv_type filter_type;    /* element type of the filter; tconv_resolve lists the pairs */
    tconv_type output_type;    /* default: as the data. tconv_resolve lists the others */
    tconv_auto_pad auto_pad;   /* explicit: pads_begin and pads_end count */
    tconv_shape data;          /* batch, channels and spatial extents in data_format */
    tconv_shape filter;        /* as tconv_operation says */
    tconv_list strides;        /* default 1; of upsampling and pixel shuffle the factors */
    tconv_list dilations;      /* default 1: dense, as everywhere in this library */
    tconv_list pads_begin;     /* default 0 */
    tconv_list pads_end;       /* default 0 */
    tconv_list output_padding; /* default 0 */
    tconv_list output_shape;   /* spatial extents only; absent: computed */
    /* These three are for the oneAPI form and for convolutions with upsampling or pixel shuffle. */
    int64_t groups;                    /* 0 means 1 */
    tconv_data_format data_format;     /* of data and output */
    tconv_filter_format filter_format; /* of the filter */
    tconv_steps data_steps;            /* at least 1 */
    tconv_steps output_steps;          /* at least 1; no two elements may share a place */
    tconv_steps residual_steps; /* of the epilogue's residual, whose axes are the output's; at least
                                   0: all elements along an axis of step 0 are the same one */
    tconv_steps filter_steps;   /* at least 1 */
} tconv_problem;

/* Each member is written out, so that compilers do not warn of missing ones, in C and in C++. */
/* clang-format off */
#define TCONV_PROBLEM_INIT                                                                         \
    {                                                                                              \
        sizeof(tconv_problem), TCONV_CONV_BACKPROP, TCONV_RULES_SPEC, TCONV_F32, TCONV_F32,        \
            TCONV_TYPE_DEFAULT, TCONV_EXPLICIT, {0, {0}}, {0, {0}}, {0, {0}}, {0, {0}}, {0, {0}},  \
            {0, {0}}, {0, {0}}, {0, {0}}, 0, TCONV_DATA_DEFAULT, TCONV_FILTER_DEFAULT,             \
            {0, {0}}, {0, {0}}, {0, {0}}, {0, {0}}                                                 \
    }
/* clang-format on */

/* The geometry of a resolved problem. Of a convolution with upsampling or pixel shuffle, kernel,
 * stride, dilation, pads and macs are those of the transposed convolution that computes it. pad_end
 * is informational: pad_begin and the output extent decide everything. Its struct_size reaches at
 * least up to `output`. */
typedef struct tconv_geometry {
    size_t struct_size;
    int axes;                         /* spatial rank */
    int64_t batch;                    /* N */
    int64_t groups;                   /* G; 1 without groups */
    int64_t group_in_channels;        /* CI of one group */
    int64_t group_out_channels;       /* CO of one group */
    int64_t input[TCONV_MAX_AXES];    /* input extents; this and the next arrays have one number for
                                         each spatial axis */
    int64_t kernel[TCONV_MAX_AXES];   /* taps */
    int64_t stride[TCONV_MAX_AXES];   /* s */
    int64_t dilation[TCONV_MAX_AXES]; /* d */
    int64_t pad_begin[TCONV_MAX_AXES]; /* may be negative: the data is shifted inwards */
    int64_t pad_end[TCONV_MAX_AXES];   /* informational */
    int64_t output[TCONV_MAX_AXES];    /* extents */
    tconv_shape output_shape;          /* the whole tensor, in the data's format */
    tconv_data_format data_format;     /* never TCONV_DATA_DEFAULT */
    tconv_type output_type;            /* never TCONV_TYPE_DEFAULT */
    uint64_t macs; /* useful multiply-adds: pairs (input point, tap) inside the output, times
                      channels and batch */
    /* Bytes of the whole data; with steps, from its first element to the end of its last one.
     * tconv_plan_create and tconv_layer_run refuse tensors that a 32-bit process cannot address. */
    uint64_t data_bytes;
    uint64_t filter_bytes;     /* of the filter tensor, not packed, likewise */
    uint64_t output_bytes;     /* of the whole output, likewise */
    uint64_t residual_bytes;   /* of the residual, if the epilogue has one */
    int64_t epilogue_channels; /* how many numbers bias, scale and slope have: G*CO; with pixel
                                  shuffle G*CO*R, the channels of the convolution */
} tconv_geometry;

#define TCONV_GEOMETRY_INIT                                                                        \
    {                                                                                              \
        sizeof(tconv_geometry), 0, 0, 0, 0, 0, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0, {0}},        \
            TCONV_DATA_DEFAULT, TCONV_TYPE_DEFAULT, 0, 0, 0, 0, 0, 0                               \
    }

/* Validates `problem` and resolves its pads and output shape in checked 64-bit arithmetic. With per
 * axis X input, K kernel, s stride, d dilation, pb/pe pads, op output padding, Y output extent, the
 * operation that follows is
 *
 *   output[n, g*CO+co, y] += data[n, g*CI+ci, x] * filter[g, ci, co, k]
 *                            for all x, k with y = x*s + k*d - pb, 0 <= y < Y
 *
 * and every other output is zero. tconv_operation has the formulas of convolutions with upsampling
 * or pixel shuffle. epilogue.h lists the operations on a sum before it is stored. The
 * batch may be 0: there is nothing to compute. A spatial extent of the data may be 0: every output
 * is zero. f16 and bf16 are added up in f32 and rounded once, to nearest even; integers wrap modulo
 * 2^bits of the output's type. Data, filter and output have the same type, or one of these rows:
 *
 *   data          filter       output
 *   f16, bf16     as data      f32
 *   f32           f16, bf16    f32, the default; each weight counts as the f32 that it equals
 *   i8, u8        as data      i32
 *   i8            i8           u8
 *   u8            i8           i32, i8 or u8, which output_type must give
 *
 * Without output_shape Y = s*(X-1) + d*(K-1) + 1 - pb - pe + op; see docs/semantics.md. With
 * output_shape, given pads may have no effect; tconv_problem_notes then says so. Returns
 * TCONV_ERROR_ARGUMENT, _SHAPE, _ATTRIBUTE, _TYPE or _UNSUPPORTED. `geometry` is written only on
 * success. */
TCONV_API tconv_status tconv_resolve(const tconv_problem *problem, tconv_geometry *geometry,
                                     tconv_error *error);

/* Gives the input rows [*input_begin, *input_end) of the outermost spatial axis that the output
 * rows [output_begin, output_end) need, for a window (see tconv_plan_options). Gives one row if the
 * output rows need none, unless the axis is empty. Returns TCONV_ERROR_ARGUMENT if the output does
 * not have these rows, or if tconv_resolve cannot have written the geometry. */
TCONV_API tconv_status tconv_window_input(const tconv_geometry *geometry, int64_t output_begin,
                                          int64_t output_end, int64_t *input_begin,
                                          int64_t *input_end, tconv_error *error);

/* Writes the problem in one line, as options of the tool `tconv-cl`: a name for logs and tests, and
 * a way to reproduce it. Writes at most `size` bytes with the terminating zero, and returns the
 * length of the whole text, as snprintf does. */
TCONV_API int tconv_problem_text(const tconv_problem *problem, char *text, size_t size);

/* Writes warnings, one sentence a line: pads or an auto_pad without effect, rules whose result
 * differs from TCONV_RULES_SPEC, and formats that were left out although the tensors also fit NCX
 * and OIX. Empty if there is none, or if tconv_resolve fails. Writes and returns as
 * tconv_problem_text does. */
TCONV_API int tconv_problem_notes(const tconv_problem *problem, char *text, size_t size);

/* Bytes of one element; 0 if `type` is not an element type. */
TCONV_API size_t tconv_type_size(tconv_type type);

/* True for f32, f16, bf16 and f64. */
TCONV_API bool tconv_type_is_floating(tconv_type type);

/* Names as the operators' pages and the tool spell them ("f32", "same_upper", "openvino", "NXC",
 * "XIO"); "?" for an unknown value. */
TCONV_API const char *tconv_type_name(tconv_type type);
TCONV_API const char *tconv_auto_pad_name(tconv_auto_pad auto_pad);
TCONV_API const char *tconv_rules_name(tconv_rules rules);
TCONV_API const char *tconv_math_name(tconv_math math);
TCONV_API const char *tconv_search_name(tconv_search search);
TCONV_API const char *tconv_operation_name(tconv_operation operation);
TCONV_API const char *tconv_data_format_name(tconv_data_format format);
TCONV_API const char *tconv_filter_format_name(tconv_filter_format format);

/* The values of such names, in any letter case. False if the name is unknown; `value` is then
 * untouched. The auto_pad also takes "notset". */
TCONV_API bool tconv_type_from_name(const char *name, tconv_type *value);
TCONV_API bool tconv_auto_pad_from_name(const char *name, tconv_auto_pad *value);
TCONV_API bool tconv_rules_from_name(const char *name, tconv_rules *value);
TCONV_API bool tconv_math_from_name(const char *name, tconv_math *value);
TCONV_API bool tconv_search_from_name(const char *name, tconv_search *value);
TCONV_API bool tconv_data_format_from_name(const char *name, tconv_data_format *value);
TCONV_API bool tconv_filter_format_from_name(const char *name, tconv_filter_format *value);

#ifdef __cplusplus
}
#endif

#endif
