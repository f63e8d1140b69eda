/* SPDX-License-Identifier: Apache-2.0 */
/* The table of abi_layout.h; TABLE is its name. It lists what the first release has: later
 * enumerators are not in it. Beside the headers of the first release is its base/members.h, so that
 * both tables have the members of their headers. */
#include "abi_layout.h"

#include "base/members.h"
#include <tconv_cl/tconv_cl.h>

#define SIZE(type, member) sizeof(((type *)NULL)->member)
#define MEMBER(type, member)                                                                       \
    {                                                                                              \
#type "." #member, ABI_MEMBER, offsetof(type, member), SIZE(type, member)                  \
    }
/* A structure with struct_size, and its last member in the first release: none ends with padding,
 * which a later member would share. */
#define GROWING(type, last)                                                                        \
    {                                                                                              \
#type, ABI_GROWING, offsetof(type, last) + SIZE(type, last), sizeof(type)                  \
    }
#define FIXED(type)                                                                                \
    {                                                                                              \
#type, ABI_FIXED, 0, sizeof(type)                                                          \
    }
#define VALUE(name)                                                                                \
    {                                                                                              \
#name, ABI_VALUE, name, 0                                                                  \
    }

/* The rows of base/members.h. Later members take the place of `reserved`. */
#define PROBLEM(kind, member, ...) MEMBER(tconv_problem, member),
#define OPTION(kind, member) MEMBER(tconv_plan_options, member),
#define EPILOGUE(kind, member, ...) EPILOGUE_##kind(member)
#define EPILOGUE_NUMBER(member) MEMBER(tconv_epilogue, member),
#define EPILOGUE_REAL(member) MEMBER(tconv_epilogue, member),
#define EPILOGUE_RESERVED(member)

/* clang-format off */
const struct abi_entry TABLE[] = {
    GROWING(tconv_problem, residual_steps),
    TCONV_PROBLEM_MEMBERS(PROBLEM)

    GROWING(tconv_geometry, residual_bytes),
    MEMBER(tconv_geometry, axes), MEMBER(tconv_geometry, batch), MEMBER(tconv_geometry, groups),
    MEMBER(tconv_geometry, group_in_channels), MEMBER(tconv_geometry, group_out_channels),
    MEMBER(tconv_geometry, input), MEMBER(tconv_geometry, kernel), MEMBER(tconv_geometry, stride),
    MEMBER(tconv_geometry, dilation), MEMBER(tconv_geometry, pad_begin),
    MEMBER(tconv_geometry, pad_end), MEMBER(tconv_geometry, output),
    MEMBER(tconv_geometry, output_shape), MEMBER(tconv_geometry, data_format),
    MEMBER(tconv_geometry, output_type), MEMBER(tconv_geometry, macs),
    MEMBER(tconv_geometry, data_bytes), MEMBER(tconv_geometry, filter_bytes),
    MEMBER(tconv_geometry, output_bytes), MEMBER(tconv_geometry, residual_bytes),

    GROWING(tconv_device_info, architecture),
    MEMBER(tconv_device_info, name), MEMBER(tconv_device_info, vendor),
    MEMBER(tconv_device_info, driver), MEMBER(tconv_device_info, version),
    MEMBER(tconv_device_info, platform), MEMBER(tconv_device_info, kind),
    MEMBER(tconv_device_info, compute_units), MEMBER(tconv_device_info, vector_width),
    MEMBER(tconv_device_info, work_group_limit), MEMBER(tconv_device_info, work_item_limit),
    MEMBER(tconv_device_info, local_memory), MEMBER(tconv_device_info, global_memory),
    MEMBER(tconv_device_info, allocation_limit), MEMBER(tconv_device_info, dedicated_local),
    MEMBER(tconv_device_info, fma), MEMBER(tconv_device_info, half_arithmetic),
    MEMBER(tconv_device_info, double_arithmetic), MEMBER(tconv_device_info, subgroups),
    MEMBER(tconv_device_info, integer_dot_product), MEMBER(tconv_device_info, subgroup_least),
    MEMBER(tconv_device_info, matrix_unit), MEMBER(tconv_device_info, clock_mhz),
    MEMBER(tconv_device_info, cache_bytes), MEMBER(tconv_device_info, constant_kib),
    MEMBER(tconv_device_info, architecture),

    GROWING(tconv_plan_options, search_context),
    TCONV_PLAN_OPTIONS_MEMBERS(OPTION)

    GROWING(tconv_trace_event, given_options),
    MEMBER(tconv_trace_event, kind), MEMBER(tconv_trace_event, piece),
    MEMBER(tconv_trace_event, pieces), MEMBER(tconv_trace_event, begin_ns),
    MEMBER(tconv_trace_event, end_ns), MEMBER(tconv_trace_event, device),
    MEMBER(tconv_trace_event, plan), MEMBER(tconv_trace_event, problem),
    MEMBER(tconv_trace_event, algorithm), MEMBER(tconv_trace_event, tile),
    MEMBER(tconv_trace_event, name), MEMBER(tconv_trace_event, source),
    MEMBER(tconv_trace_event, options), MEMBER(tconv_trace_event, message),
    MEMBER(tconv_trace_event, queue), MEMBER(tconv_trace_event, event),
    MEMBER(tconv_trace_event, offset), MEMBER(tconv_trace_event, global),
    MEMBER(tconv_trace_event, local), MEMBER(tconv_trace_event, command_buffer),
    MEMBER(tconv_trace_event, given_problem), MEMBER(tconv_trace_event, given_options),
    VALUE(TCONV_TRACE_PLAN), VALUE(TCONV_TRACE_PASSED_OVER), VALUE(TCONV_TRACE_PROGRAM),
    VALUE(TCONV_TRACE_LAUNCH), VALUE(TCONV_TRACE_FALLBACK), VALUE(TCONV_TRACE_RECORD),
    VALUE(TCONV_TRACE_REPLAY),

    GROWING(tconv_choice, noise),
    MEMBER(tconv_choice, source), MEMBER(tconv_choice, candidates), MEMBER(tconv_choice, model_ms),
    MEMBER(tconv_choice, best_ms), MEMBER(tconv_choice, noise),

    GROWING(tconv_tensors, filter_version),
    MEMBER(tconv_tensors, data), MEMBER(tconv_tensors, filter), MEMBER(tconv_tensors, output),
    MEMBER(tconv_tensors, bias), MEMBER(tconv_tensors, scale), MEMBER(tconv_tensors, slope),
    MEMBER(tconv_tensors, residual), MEMBER(tconv_tensors, filter_version),
    MEMBER(tconv_tensors, packed), MEMBER(tconv_tensors, workspace),

    GROWING(tconv_run, threads),
    MEMBER(tconv_run, queue), MEMBER(tconv_run, wait_count), MEMBER(tconv_run, wait),
    MEMBER(tconv_run, done), MEMBER(tconv_run, memory_limit), MEMBER(tconv_run, progress),
    MEMBER(tconv_run, user), MEMBER(tconv_run, on_threads), MEMBER(tconv_run, pool),
    MEMBER(tconv_run, threads),

    GROWING(tconv_layer_counts, weight_bytes),
    MEMBER(tconv_layer_counts, runs), MEMBER(tconv_layer_counts, plans_made),
    MEMBER(tconv_layer_counts, plans_kept), MEMBER(tconv_layer_counts, filters_packed),
    MEMBER(tconv_layer_counts, in_slabs), MEMBER(tconv_layer_counts, weight_bytes),

    FIXED(tconv_epilogue),
    TCONV_EPILOGUE_MEMBERS(EPILOGUE)

    FIXED(tconv_stored_search), MEMBER(tconv_stored_search, state),
    MEMBER(tconv_stored_search, candidates), MEMBER(tconv_stored_search, model_ms),
    MEMBER(tconv_stored_search, best_ms), MEMBER(tconv_stored_search, file),
    MEMBER(tconv_stored_search, device), MEMBER(tconv_stored_search, problem),
    MEMBER(tconv_stored_search, algorithm),
    FIXED(tconv_error), MEMBER(tconv_error, status), MEMBER(tconv_error, opencl_code),
    MEMBER(tconv_error, message),
    FIXED(tconv_shape), MEMBER(tconv_shape, rank), MEMBER(tconv_shape, dim),
    FIXED(tconv_list), MEMBER(tconv_list, count), MEMBER(tconv_list, value),
    FIXED(tconv_tensor), MEMBER(tconv_tensor, memory), MEMBER(tconv_tensor, offset),
    MEMBER(tconv_tensor, pointer), MEMBER(tconv_tensor, host),
    FIXED(tconv_slab), MEMBER(tconv_slab, device), MEMBER(tconv_slab, batch_begin),
    MEMBER(tconv_slab, batch_end), MEMBER(tconv_slab, output_begin), MEMBER(tconv_slab, output_end),
    MEMBER(tconv_slab, input_begin), MEMBER(tconv_slab, input_end),

    VALUE(TCONV_MAX_AXES), VALUE(TCONV_MAX_RANK),
    VALUE(TCONV_ARCHITECTURE_OTHER), VALUE(TCONV_ARCHITECTURE_NVIDIA),
    VALUE(TCONV_ARCHITECTURE_AMD_RDNA), VALUE(TCONV_ARCHITECTURE_AMD_CDNA),
    VALUE(TCONV_ARCHITECTURE_MALI), VALUE(TCONV_ARCHITECTURE_ADRENO),
    VALUE(TCONV_ARCHITECTURE_POWERVR), VALUE(TCONV_ARCHITECTURE_INTEL_XE_HP),
    VALUE(TCONV_TYPE_DEFAULT), VALUE(TCONV_F32), VALUE(TCONV_F16), VALUE(TCONV_BF16),
    VALUE(TCONV_F64), VALUE(TCONV_I8), VALUE(TCONV_I16), VALUE(TCONV_I32), VALUE(TCONV_I64),
    VALUE(TCONV_U8), VALUE(TCONV_U16), VALUE(TCONV_U32), VALUE(TCONV_U64),
    VALUE(TCONV_CONV_BACKPROP), VALUE(TCONV_GROUP_CONV_BACKPROP), VALUE(TCONV_ONEAPI_CONV_BACKPROP),
    VALUE(TCONV_DATA_DEFAULT), VALUE(TCONV_NXC), VALUE(TCONV_NCX),
    VALUE(TCONV_FILTER_DEFAULT), VALUE(TCONV_XIO), VALUE(TCONV_OIX),
    VALUE(TCONV_EXPLICIT), VALUE(TCONV_VALID), VALUE(TCONV_SAME_UPPER), VALUE(TCONV_SAME_LOWER),
    VALUE(TCONV_RULES_SPEC), VALUE(TCONV_RULES_OPENVINO), VALUE(TCONV_RULES_ONNX),
    VALUE(TCONV_MATH_EXACT), VALUE(TCONV_MATH_FAST),
    VALUE(TCONV_SEARCH_DEFAULT), VALUE(TCONV_SEARCH_MODEL), VALUE(TCONV_SEARCH_RECORDS),
    VALUE(TCONV_SEARCH_MEASURE), VALUE(TCONV_SEARCH_RENEW),
    VALUE(TCONV_SEARCH_PREPARED),
    VALUE(TCONV_RECORD_USED), VALUE(TCONV_RECORD_FOREIGN), VALUE(TCONV_RECORD_DAMAGED),
    VALUE(TCONV_ACTIVATION_NONE), VALUE(TCONV_ACTIVATION_RELU), VALUE(TCONV_ACTIVATION_RELU6),
    VALUE(TCONV_ACTIVATION_LEAKY_RELU), VALUE(TCONV_ACTIVATION_PRELU),
    VALUE(TCONV_ACTIVATION_CLAMP), VALUE(TCONV_ACTIVATION_SIGMOID), VALUE(TCONV_ACTIVATION_TANH),
    VALUE(TCONV_ACTIVATION_GELU), VALUE(TCONV_ACTIVATION_GELU_TANH), VALUE(TCONV_ACTIVATION_SILU),
    VALUE(TCONV_ACTIVATION_ELU), VALUE(TCONV_ACTIVATION_SNAKE),
    VALUE(TCONV_ACTIVATION_HARDSWISH), VALUE(TCONV_ACTIVATION_MISH),
    VALUE(TCONV_DEVICE_OTHER), VALUE(TCONV_DEVICE_CPU), VALUE(TCONV_DEVICE_GPU),
    VALUE(TCONV_DEVICE_ACCELERATOR), VALUE(TCONV_MATRIX_NONE), VALUE(TCONV_MATRIX_NVIDIA_MMA),
    VALUE(TCONV_MATRIX_AMD_WMMA), VALUE(TCONV_MATRIX_AMD_MFMA), VALUE(TCONV_MATRIX_INTEL_DPAS),
    VALUE(TCONV_MATRIX_X86_AVX512_VNNI), VALUE(TCONV_MATRIX_X86_AVX_VNNI),
    VALUE(TCONV_MATRIX_PLAIN_QUADS), VALUE(TCONV_MATRIX_X86_AVX512_BF16),
    VALUE(TCONV_MATRIX_AMD_WMMA12),
    VALUE(TCONV_OK), VALUE(TCONV_ERROR_ARGUMENT), VALUE(TCONV_ERROR_SHAPE),
    VALUE(TCONV_ERROR_ATTRIBUTE), VALUE(TCONV_ERROR_TYPE), VALUE(TCONV_ERROR_BUFFER),
    VALUE(TCONV_ERROR_MISMATCH), VALUE(TCONV_ERROR_ALGORITHM), VALUE(TCONV_ERROR_UNSUPPORTED),
    VALUE(TCONV_ERROR_DEVICE), VALUE(TCONV_ERROR_HOST_MEMORY), VALUE(TCONV_ERROR_DEVICE_MEMORY),
    VALUE(TCONV_ERROR_NO_DEVICE), VALUE(TCONV_ERROR_OPENCL), VALUE(TCONV_ERROR_BUILD),
    VALUE(TCONV_ERROR_FORKED), VALUE(TCONV_ERROR_CANCELLED), VALUE(TCONV_ERROR_INTERNAL),
    {NULL, ABI_VALUE, 0, 0},
};
/* clang-format on */
