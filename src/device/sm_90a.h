/* SPDX-License-Identifier: Apache-2.0 */
/* Programs for NVIDIA's compute capability 9.0. The driver compiles OpenCL C for sm_90, which lacks
 * wgmma, but it also builds binaries that are PTX for sm_90a, which has it. So kernels have such
 * instructions as comments (cl/gpu/unit/nvidia_wgmma.clh), and the program's binary, which is PTX,
 * is changed and built again. */
#ifndef TCONV_DEVICE_SM_90A_H
#define TCONV_DEVICE_SM_90A_H

#include <stdbool.h>
#include <stddef.h>

/* What is in front of an instruction in a comment. */
#define TCONV_SM_90A_MARK "//@sm_90a "

/* True if a program with these options must be changed: it has the option TCONV_SM_90A. */
bool tconv_needs_sm_90a(const char *options);

/* Changes a binary: takes the marks out, makes the target sm_90a, and puts a .minnctapersm behind a
 * mark in front of the body of its kernel. Returns the new one, from malloc. NULL with *lacks NULL
 * if memory is missing; else *lacks says what the binary does not have: it is not changed. */
unsigned char *tconv_sm_90a(const unsigned char *binary, size_t size, size_t *changed,
                            const char **lacks);

#endif
