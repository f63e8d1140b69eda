/* SPDX-License-Identifier: Apache-2.0 */
/* The list of the tool's options, one row each. `struct options`, popt's tables, --help, the manual
 * and completion follow from the rows, and so does the code that frees options, refuses them, and
 * keeps files apart.
 *
 *   O(scope, kind, member, "name", letter, "VALUE", "what --help says")
 *
 *   scope    where the option may stand
 *     ANY              everywhere
 *     TIMES            everywhere, but not with --list, which times nothing
 *     LAYERS           if there are layers, from options, a suite or a model
 *     LAYER            if one layer is given by options: not beside a suite or a model
 *     LAYER_OR_SUITE   also beside a suite
 *     LAYER_OR_MODEL   also beside a model
 *   kind     TEXT, FLAG (takes no value), or a file: READ, WRITTEN
 *   member   of struct options: char *, for a FLAG int. An option for a member of tconv_problem has
 *            the member's name: src/base/members.h
 *   letter   of the short form, or 0 */
#ifndef TCONV_TOOL_OPTION_LIST_H
#define TCONV_TOOL_OPTION_LIST_H

#include "common/activation_list.h"

/* The names of the activations with their parameters: ", leaky_relu:A, prelu*" and so on. */
#define NUMBERS_0 ""
#define NUMBERS_1 ":A"
#define NUMBERS_2 ":A,B"
#define SLOPE_0 ""
#define SLOPE_1 "*"
#define SLOPE_2 "**"
#define ACTIVATION_USAGE(NAME, number, name, parameters, slopes, heavy)                            \
    ", " #name NUMBERS_##parameters SLOPE_##slopes

/* clang-format off */

#define DEVICE_OPTIONS(O)                                                                          \
    O(ANY, TEXT, device, "device", 'd', "N",                                                       \
      "number of the device, as `tconv-cl devices` lists them, or gpu, cpu or a part of its "      \
      "name; `run` takes several numbers, as 0,1")

#define COMMON_OPTIONS(O)                                                                          \
    O(ANY, WRITTEN, json, "json", 'j', "FILE", "write the results as JSON; - is stdout")           \
    O(ANY, FLAG, quiet, "quiet", 'q', NULL,                                                        \
      "no progress, no notices, no summary; with --json nothing on stdout but JSON")

#define SHAPE_OPTIONS(O)                                                                           \
    O(LAYER_OR_MODEL, TEXT, data_shape, "data-shape", 0, "N,C,...",                                \
      "extents of the data, for example 1,20,224,224")                                             \
    O(LAYER, TEXT, filter_shape, "filter-shape", 0, "CI,CO,...",                                   \
      "extents of the filter, for example 20,10,3,3; with --upsample or --pixel-shuffle CO,CI,...")

#define ATTRIBUTE_OPTIONS(O)                                                                       \
    O(LAYER, TEXT, strides, "strides", 0, "LIST",                                                  \
      "one number for each spatial axis, or one for all; default 1")                               \
    O(LAYER, TEXT, upsample, "upsample", 0, "LIST",                                                \
      "nearest upsampling by these factors, then a convolution of stride 1: filter, pads, "        \
      "dilations and groups are the convolution's own; one factor for each axis, or one for all; " \
      "1 is an ordinary convolution of stride 1, for every element type")                          \
    O(LAYER, TEXT, pixel_shuffle, "pixel-shuffle", 0, "LIST",                                      \
      "a convolution of stride 1, then pixel shuffle by these factors: filter, pads, dilations "   \
      "and groups are the convolution's own, and so are bias, scale and slope; one factor for "    \
      "each axis, or one for all")                                                                 \
    O(LAYER, TEXT, shuffle_order, "shuffle-order", 0, "ORDER",                                     \
      "of the convolution's channels with --pixel-shuffle: CRD, as PyTorch has them, or DCR; "     \
      "default CRD")                                                                               \
    O(LAYER, TEXT, dilations, "dilations", 0, "LIST", "default 1")                                 \
    O(LAYER, TEXT, pads_begin, "pads-begin", 0, "LIST", "default 0")                               \
    O(LAYER, TEXT, pads_end, "pads-end", 0, "LIST", "default 0")                                   \
    O(LAYER, TEXT, auto_pad, "auto-pad", 0, "MODE",                                                \
      "explicit (or notset), valid, same_upper, same_lower; default explicit")                     \
    O(LAYER, TEXT, output_padding, "output-padding", 0, "LIST", "default 0")                       \
    O(LAYER_OR_MODEL, TEXT, output_shape, "output-shape", 0, "LIST",                               \
      "spatial extents of the output; default: computed")                                          \
    O(LAYER, TEXT, groups, "groups", 0, "G",                                                       \
      "default 1; this and the next two select the oneAPI form, except with --upsample or "        \
      "--pixel-shuffle")                                                                           \
    O(LAYER_OR_SUITE, TEXT, data_format, "data-format", 0, "FORMAT",                               \
      "NCX or NXC, of one layer or of all of a suite; default NXC in the oneAPI form, else NCX")   \
    O(LAYER, TEXT, filter_format, "filter-format", 0, "FORMAT",                                    \
      "OIX or XIO; default XIO in the oneAPI form, else OIX")                                      \
    O(LAYER_OR_MODEL, TEXT, rules, "rules", 0, "RULES",                                            \
      "how pads and output shape are resolved: spec, openvino, onnx; default spec, for models "    \
      "openvino")                                                                                  \
    O(LAYER, TEXT, data_steps, "data-steps", 0, "LIST",                                            \
      "elements from one to the next along each axis of the data in memory, in its axis order; "   \
      "files stay dense; default: dense")                                                          \
    O(LAYER, TEXT, output_steps, "output-steps", 0, "LIST",                                        \
      "likewise of the output, whose elements must not overlap")                                   \
    O(LAYER, TEXT, residual_steps, "residual-steps", 0, "LIST",                                    \
      "likewise of the residual; 0 repeats an element along the axis")                             \
    O(LAYER, TEXT, filter_steps, "filter-steps", 0, "LIST", "likewise of the filter")              \
    O(LAYERS, TEXT, data_type, "type", 0, "TYPE",                                                  \
      "element type, where no file says it; default f32")

#define EPILOGUE_OPTIONS(O)                                                                        \
    O(LAYERS, TEXT, alpha, "alpha", 0, "A", "scale of the accumulators; default 1")                \
    O(LAYERS, TEXT, beta, "beta", 0, "B",                                                          \
      "scale of the initial output (run: --initial); default 0")                                   \
    O(LAYERS, TEXT, activation, "activation", 0, "NAME",                                           \
      "none" ACTIVATIONS_BUT_NONE(ACTIVATION_USAGE)                                                \
      "; those with * take a number for each output channel (run: --slope), those with ** two "    \
      "(--slope2)")                                                                                \
    O(LAYERS, TEXT, filter_type, "filter-type", 0, "TYPE",                                         \
      "element type of the filter where it is not that of the data: i8 with u8 data, f16 or bf16 " \
      "with f32 data")                                                                             \
    O(LAYERS, TEXT, output_type, "output-type", 0, "TYPE",                                         \
      "element type of the output where it is not that of the data: f32 for f16 and bf16; i32, "   \
      "i8, u8 for bytes")                                                                          \
    O(LAYERS, FLAG, requantize, "requantize", 0, NULL,                                             \
      "requantize i8 and u8: compute the epilogue in f32, round to the output's type, saturate")   \
    O(LAYERS, TEXT, data_zero_point, "data-zero-point", 0, "Z",                                    \
      "zero point of i8 and u8 data, padding included; default 0")                                 \
    O(LAYERS, TEXT, filter_zero_point, "filter-zero-point", 0, "Z", "default 0")                   \
    O(LAYERS, TEXT, output_zero_point, "output-zero-point", 0, "Z", "default 0")

/* Tensors of the epilogue that the tool makes itself. */
#define CHECK_OPTIONS(O)                                                                           \
    O(LAYERS, FLAG, with_bias, "with-bias", 0, NULL, "with a bias for each output channel")        \
    O(LAYERS, FLAG, with_scale, "with-scale", 0, NULL, "with a factor for each output channel")    \
    O(LAYERS, FLAG, with_residual, "with-residual", 0, NULL,                                       \
      "with a tensor that is added to the output")

#define MATH_OPTIONS(O)                                                                            \
    O(LAYERS, TEXT, math, "math", 0, "exact|fast",                                                 \
      "exact, or fast: also algorithms with fewer multiplies and a larger error bound; default "   \
      "exact")

#define ALGORITHM_OPTIONS(O)                                                                       \
    O(ANY, TEXT, algorithm, "algorithm", 'a', "NAME",                                              \
      "force an algorithm, or one with a tile, as --why prints it: \"thin_vector vw=16 nx=2\"; "   \
      "`tconv-cl algorithms` prints the names; default auto")                                      \
    MATH_OPTIONS(O)

#define SUITE_OPTIONS(O)                                                                           \
    O(LAYERS, READ, suite, "suite", 0, "FILE.csv",                                                 \
      "a list of layers with the columns of bench/suite.csv, bench/upsampling.csv or "             \
      "bench/convolutions.csv, - is stdin; or the word upsampling: built-in convolutions with "    \
      "upsampling or pixel shuffle; or the word convolutions: built-in ordinary ones; default: "   \
      "built-in transposed convolutions")                                                          \
    O(LAYERS, TEXT, ids, "ids", 0, "B01,B02,...",                                                  \
      "only these layers of the suite, in any letter case")

#define MODEL_OPTIONS(O)                                                                           \
    O(LAYERS, READ, model, "model", 0, "FILE.xml",                                                 \
      "transposed convolutions of an OpenVINO model, also a quantized one; `ovc` of OpenVINO "     \
      "converts ONNX")                                                                             \
    O(LAYERS, TEXT, layer, "layer", 0, "NAME", "only this layer of the model, by name or number")

#define FILE_OPTIONS(O)                                                                            \
    O(ANY, READ, data, "data", 0, "X.npy", "the data")                                             \
    O(ANY, READ, filter, "filter", 0, "W.npy", "the filter")                                       \
    O(ANY, READ, bias, "bias", 0, "B.npy",                                                         \
      "one number for each output channel; with --pixel-shuffle for each channel of the "          \
      "convolution, and so have --scale and the slopes")                                           \
    O(ANY, READ, scale, "scale", 0, "S.npy",                                                       \
      "one factor for each output channel, f32 (f64 with f64 data)")                               \
    O(ANY, READ, slope, "slope", 0, "P.npy",                                                       \
      "one number for each output channel, for an --activation that takes it; type as --scale")    \
    O(ANY, READ, slope2, "slope2", 0, "P2.npy",                                                    \
      "likewise, for an --activation that takes two")                                              \
    O(ANY, READ, residual, "residual", 0, "R.npy", "added to the output; has its shape")           \
    O(ANY, READ, initial, "initial", 0, "Y0.npy",                                                  \
      "initial output, for --beta; has the output's shape")                                        \
    O(ANY, WRITTEN, output, "output", 0, "Y.npy", "where the output goes")                         \
    O(ANY, TEXT, memory_limit, "memory-limit", 0, "MIB",                                           \
      "MiB of device memory for the tensors of slabs; default: 256 where tensors exceed 512, "     \
      "else no slabs")

#define BENCH_OPTIONS(O)                                                                           \
    O(TIMES, TEXT, runs, "runs", 0, "N",                                                           \
      "timed runs of each layer; default: as many as fit into half a second, 5 to 100")            \
    O(TIMES, TEXT, repeat, "repeat", 0, "N",                                                       \
      "computations that each run enqueues; its time is their mean, so that launches count less; " \
      "default 1")                                                                                 \
    O(ANY, FLAG, no_ceilings, "no-ceilings", 0, NULL,                                              \
      "do not measure the device's peak and bandwidth: saves seconds, prints no % floor")          \
    O(TIMES, FLAG, why, "why", 0, NULL,                                                            \
      "print on stderr the expected time of each algorithm, or why it was rejected")               \
    O(ANY, FLAG, list, "list", 0, NULL, "time nothing: print the layers")                          \
    O(TIMES, READ, compare, "compare", 0, "OLD.json",                                              \
      "compare with an earlier report, as `tconv-cl compare` does; - is stdin")

/* Output files of a report, besides JSON. */
#define REPORT_OPTIONS(O)                                                                          \
    O(TIMES, WRITTEN, csv, "csv", 0, "FILE", "write the layers as CSV; - is stdout")               \
    O(TIMES, WRITTEN, plot, "plot", 0, "FILE.svg",                                                 \
      "bench: draw the layers under the roofline; compare: draw the ratios (Python's "             \
      "matplotlib); - is stdout")

#define TRACE_OPTIONS(O)                                                                           \
    O(TIMES, WRITTEN, trace, "trace", 0, "FILE.json",                                              \
      "write when plans, compilations and launches ran, for chrome://tracing or Perfetto; - is "   \
      "stdout")

#define COMPARE_OPTIONS(O)                                                                         \
    O(TIMES, FLAG, fail, "fail", 0, NULL, "exit with code 1 if a layer is slower beyond noise")

#define TUNE_OPTIONS(O)                                                                            \
    O(LAYERS, TEXT, budget, "budget", 0, "MS",                                                     \
      "milliseconds of timing for each layer, besides compiling; default 500")                     \
    O(ANY, FLAG, records, "records", 0, NULL,                                                      \
      "time nothing: list the results that are stored for the device")                             \
    O(ANY, WRITTEN, share, "share", 0, "FILE.json",                                                \
      "time nothing: write the results that are stored for the device to a file for other "        \
      "machines; - is stdout")                                                                     \
    O(ANY, READ, import, "import", 0, "FILE.json",                                                 \
      "time nothing: store the results of a file that --share wrote, for plans that have none of " \
      "this device; - is stdin")                                                                   \
    O(ANY, FLAG, machine, "machine", 0, NULL,                                                      \
      "time no layer: measure the device's speeds for the cost model and store them")              \
    O(ANY, TEXT, fields, "fields", 0, "TEXT",                                                      \
      "store these fields of the cost model for the device, as scripts/refit.py prints them: "     \
      "\"packed_tap=500 clock=3200\"; \"\" forgets all")

#define PREPARE_OPTIONS(O)                                                                         \
    O(LAYERS, TEXT, up_to, "up-to", 0, "LIST",                                                     \
      "the data's shape with the largest batch and spatial extents: all extents between are "      \
      "prepared; element steps are those of this shape; default: the layer's own extents")

#define ALL_OPTIONS(O)                                                                             \
    DEVICE_OPTIONS(O) COMMON_OPTIONS(O) SUITE_OPTIONS(O) MODEL_OPTIONS(O) SHAPE_OPTIONS(O)         \
    ATTRIBUTE_OPTIONS(O) EPILOGUE_OPTIONS(O) CHECK_OPTIONS(O) ALGORITHM_OPTIONS(O) FILE_OPTIONS(O) \
    BENCH_OPTIONS(O) REPORT_OPTIONS(O) TRACE_OPTIONS(O) COMPARE_OPTIONS(O) TUNE_OPTIONS(O)         \
    PREPARE_OPTIONS(O)

/* clang-format on */

#endif
