/* SPDX-License-Identifier: Apache-2.0 */
/* The provider of a session: it takes nodes of a graph and compiles them. */
#ifndef TCONV_ONNXRUNTIME_PROVIDER_H
#define TCONV_ONNXRUNTIME_PROVIDER_H

#include "errors.h"

struct provider {
    OrtEp base;
    const char *name;        /* under which the library was registered; the factory has it */
    const OrtLogger *logger; /* the session's */
    tconv_device *opened;    /* NULL: there is no device */
    tconv_error refusal;     /* with `strict`, why there is no device: compile returns it */
    bool strict; /* a failure is an error of the session; no other provider computes instead */
    tconv_search search; /* how algorithms are chosen */
    tconv_math math;
    uint64_t least_macs;      /* multiply-adds: ConvTranspose with fewer are left to others */
    uint64_t least_pair_macs; /* the same for pairs (pair.h) */
    bool fuse;                /* layers compute the nodes around them, too */
    bool fuse_concat;         /* layers write into concatenated outputs */
    char device[256];         /* as the option says it; no device has a longer name */
};

/* The functions that ONNX Runtime calls. */
extern const OrtEp provider_functions;

#endif
