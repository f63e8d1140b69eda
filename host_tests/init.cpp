/* SPDX-License-Identifier: Apache-2.0 */
/* The initializers of every structure and the C++ header, without a warning. */
#define TCONV_CL_NO_EXCEPTIONS /* as programs without them include it; the other form has an       \
                                  example */
#include "tconv_cl/tconv_cl.hpp"

extern tconv_problem problem;
extern tconv_geometry geometry;
extern tconv_device_info info;
extern tconv_epilogue epilogue;
extern tconv_plan_options options;
extern tconv_tensors tensors;
extern tconv_run run;
extern tconv_choice choice;
extern tconv_layer_counts counts;

tconv_problem problem = TCONV_PROBLEM_INIT;
tconv_geometry geometry = TCONV_GEOMETRY_INIT;
tconv_device_info info = TCONV_DEVICE_INFO_INIT;
tconv_epilogue epilogue = TCONV_EPILOGUE_INIT;
tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
tconv_tensors tensors = TCONV_TENSORS_INIT;
tconv_run run = TCONV_RUN_INIT;
tconv_choice choice = TCONV_CHOICE_INIT;
tconv_layer_counts counts = TCONV_LAYER_COUNTS_INIT;
