/* SPDX-License-Identifier: Apache-2.0 */
/* tconv-cl: transposed convolution on any OpenCL device. This is the one header that an application
 * includes.
 *
 *   version.h   the version
 *   status.h    status codes and errors
 *   problem.h   what is computed: operators, shapes, attributes; no OpenCL
 *   epilogue.h  the fused epilogue: bias, scale, activation, ...; no OpenCL
 *   device.h    devices: their numbers and properties, device objects; no OpenCL
 *   layer.h     layers: compute on arrays of the host or on queues; start here
 *   stream.h    layers whose input arrives in chunks
 *   recording.h layers and plans in command buffers
 *   plan.h      plan, pack, enqueue: what layers are made of
 *   tuning.h    what is stored for a device: search results, programs, fields of the cost model
 *   trace.h     a callback that hears of plans, compilations, launches and fallbacks
 *
 * tconv_cl.hpp has the same for C++.
 *
 * STRUCTURES that a later version may extend begin with `struct_size`: the size that the program
 * was compiled with, which the TCONV_..._INIT macros set. Programs and libraries of different
 * versions with the same SOVERSION work together:
 *
 *   - A shorter structure is accepted. The members that it lacks have the values of TCONV_..._INIT.
 *     Each structure says up to which member it must reach (else TCONV_ERROR_ARGUMENT).
 *   - A longer structure comes from a program for a newer version. It is accepted where all bytes
 *     that this version does not know are 0, else the error is TCONV_ERROR_UNSUPPORTED.
 *   - A structure that the library fills is written up to the program's struct_size, which stays;
 *     bytes that this version does not know become 0.
 *   - A structure of the library's own (from tconv_plan_geometry or tconv_device_properties) has
 *     the members up to its struct_size.
 *
 * Structures without struct_size never change their layout; tconv_epilogue has reserved members.
 *
 * FORKING: OpenCL does not work in a child of a process that used it; calls hang there. Every
 * function that would call OpenCL in such a child returns TCONV_ERROR_FORKED at once; releasing an
 * object there does nothing. A child that was forked before the first use, or that runs another
 * program, works as usual.
 *
 * CALLBACKS of the application must return: no longjmp, no exception. These would leave locks that
 * are held and memory that nobody frees.
 *
 * CANCELLATION: pthread_cancel (deferred type only) takes effect after the current call returns,
 * which includes the call's callbacks. */
#ifndef TCONV_CL_TCONV_CL_H
#define TCONV_CL_TCONV_CL_H

#include "device.h"
#include "epilogue.h"
#include "layer.h"
#include "plan.h"
#include "problem.h"
#include "recording.h"
#include "status.h"
#include "stream.h"
#include "trace.h"
#include "tuning.h"
#include "version.h"

#endif
