/* SPDX-License-Identifier: Apache-2.0 */
/* What PyTorch, Keras, TensorFlow, JAX, ONNX, oneDNN, OpenCV, Caffe, MXNet and TVM call what the
 * tool's options say. python/tconv_cl/_names.py has the names of arguments; a test of the package
 * compares the two lists.
 *
 *   F("names", "what to write")   names with blanks between them. In what to write, % is the value,
 *                                 %< and %> are the halves of a list: begins, then ends. Behind
 *                                 the name of an option, % is what a row V makes of the value
 *   A("names", "number", "what to write")   names that have -h or -w behind them; % is the values
 *                                 of both, and the number stands for one that is not given
 *   V("options", "values", "what to write")   values of our options
 *
 * Names and values are found in any letter case, and with _ for -. Three dots stand for a value
 * that our option does not take. */
#ifndef TCONV_TOOL_FOREIGN_LIST_H
#define TCONV_TOOL_FOREIGN_LIST_H

/* clang-format off */

#define FOREIGN_OPTIONS(F)                                                                         \
    F("stride", "--strides %")                                                                     \
    F("dilation dilation-rate rhs-dilation dilate", "--dilations %")                               \
    F("padding pad", "--pads-begin % --pads-end %")                                                \
    F("pads", "--pads-begin %< --pads-end %>")                                                     \
    F("padding-l pad-begin", "--pads-begin %")                                                     \
    F("padding-r pad-end", "--pads-end %")                                                         \
    F("adj", "--output-padding %")                                                                 \
    F("group num-group num-groups", "--groups % --data-format NCX --filter-format OIX")            \
    F("feature-group-count",                                                                       \
      "--groups % with the --data-format and --filter-format of the tensors")                      \
    F("layout data-layout",                                                                        \
      "--data-format % (NXC: channels last, NCX: first; the filter is XIO, unless --filter-format "\
      "is OIX)")                                                                                   \
    F("kernel-layout filter-layout weight-layout",                                                 \
      "--filter-format % (XIO: kernel, output channels, input channels; OIX: input channels, "     \
      "output channels, kernel)")                                                                  \
    F("kernel-size kernel-shape kernel-h kernel-w", "the kernel in --filter-shape")                \
    F("in-channels out-channels num-output num-filter channels",                                   \
      "the channels in --filter-shape: input channels, output channels of a group, kernel")        \
    F("batch-size", "the batch in --data-shape")                                                   \
    F("output-size outsize",                                                                       \
      "--output-padding: the wanted extent minus the one that `shape` prints")                     \
    F("target-shape", "--output-shape %")                                                          \
    F("negative-slope", "--activation leaky_relu:%")                                               \
    F("input inputs image lhs", "--data %")                                                        \
    F("weight weights kernel rhs filters", "--filter %")                                           \
    F("out dst", "--output %")                                                                     \
    F("dtype", "--type %")                                                                         \
    F("out-dtype output-dtype", "--output-type %")                                                 \
    F("algo", "--algorithm %")                                                                     \
    F("device-id device-name", "--device %")                                                       \
    F("memory max-memory", "--memory-limit %")

#define FOREIGN_AXES(A)                                                                            \
    A("stride strides", "1", "--strides %")                                                        \
    A("dilation dilations", "1", "--dilations %")                                                  \
    A("adj output-padding", "0", "--output-padding %")                                             \
    A("pads-begin", "0", "--pads-begin %")                                                         \
    A("pads-end", "0", "--pads-end %")                                                             \
    A("pad padding", "0", "--pads-begin % --pads-end %")

/* What only the tool has. */
#define FOREIGN_TOOL_OPTIONS(F)                                                                    \
    F("data-type precision", "--type %")                                                           \
    F("iterations iters repetitions loops", "--runs %")                                            \
    F("platform", "--device with the number that `tconv-cl devices` prints")

#define FOREIGN_VALUES(V)                                                                          \
    V("data-format", "NHWC NDHWC NWC NLC channels_last last", "NXC")                               \
    V("data-format", "NCHW NCDHW NCW NCL channels_first first", "NCX --filter-format OIX")         \
    V("filter-format", "HWOI DHWOI WOI",                                                           \
      "XIO, which is kernel, output channels of a group, input channels")                          \
    V("filter-format", "IOHW IODHW IOW",                                                           \
      "OIX, which is input channels, output channels of a group, kernel")                          \
    V("auto-pad", "same", "same_upper; with --rules onnx the output has stride times the extent")  \
    V("auto-pad", "none", "explicit")                                                              \
    V("rules", "pytorch torch keras tensorflow tf jax", "spec, with the pads as numbers")          \
    V("rules", "onnxruntime ort", "onnx")                                                          \
    V("activation", "swish", "silu")                                                               \
    V("activation", "hard_swish hswish h_swish", "hardswish")                                      \
    V("activation", "leaky leakyrelu lrelu", "leaky_relu:SLOPE")                                   \
    V("activation", "hardtanh hard_tanh", "clamp:-1,1")                                            \
    V("activation", "clip", "clamp:LOW,HIGH")                                                      \
    V("activation", "linear identity", "none")                                                     \
    V("activation", "logistic", "sigmoid")                                                         \
    V("activation", "gelu_new gelu_fast", "gelu_tanh")                                             \
    V("type filter-type output-type", "float32 float fp32 single", "f32")                          \
    V("type filter-type output-type", "float16 half fp16", "f16")                                  \
    V("type filter-type output-type", "bfloat16", "bf16")                                          \
    V("type filter-type output-type", "float64 double fp64", "f64")                                \
    V("type filter-type output-type", "int8", "i8")                                                \
    V("type filter-type output-type", "uint8", "u8")                                               \
    V("type filter-type output-type", "int16", "i16")                                              \
    V("type filter-type output-type", "uint16", "u16")                                             \
    V("type filter-type output-type", "int32 int", "i32")                                          \
    V("type filter-type output-type", "uint32", "u32")                                             \
    V("type filter-type output-type", "int64 long", "i64")                                         \
    V("type filter-type output-type", "uint64", "u64")                                             \
    V("device", "cuda xpu mps rocm hip", "gpu")

/* clang-format on */

#endif
