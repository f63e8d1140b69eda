/* SPDX-License-Identifier: Apache-2.0 */
/* The version of tconv-cl. This file is its only source: the build reads it from here. */
#ifndef TCONV_CL_VERSION_H
#define TCONV_CL_VERSION_H

#define TCONV_VERSION_MAJOR 0
#define TCONV_VERSION_MINOR 1
#define TCONV_VERSION_PATCH 0
#define TCONV_VERSION_STRING "0.1.0"

#endif
