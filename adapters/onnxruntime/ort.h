/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the part of ONNX Runtime's C interface for plugins that the provider uses, because no
 * package has its headers.
 *
 * * The interface is a table of functions to which releases only append, so a function is known
 * by its place. Compiled with ONNX Runtime's own headers (-DORT_INCLUDE_DIR=...), these take the
 * place of the declarations below, and every place, type and structure is compared with them. */
#ifndef TCONV_ONNXRUNTIME_ORT_H
#define TCONV_ONNXRUNTIME_ORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ORT_VERSION = 24 }; /* of the interface: ONNX Runtime 1.24 was the first with all of it */

#ifdef TCONV_ORT_HEADERS
#include <onnxruntime_c_api.h>
#else

typedef struct OrtStatus OrtStatus;
typedef struct OrtEnv OrtEnv;
typedef struct OrtLogger OrtLogger;
typedef struct OrtSession OrtSession;
typedef struct OrtRunOptions OrtRunOptions;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtKeyValuePairs OrtKeyValuePairs;
typedef struct OrtHardwareDevice OrtHardwareDevice;
typedef struct OrtEpDevice OrtEpDevice;
typedef struct OrtGraph OrtGraph;
typedef struct OrtNode OrtNode;
typedef struct OrtOpAttr OrtOpAttr;
typedef struct OrtValue OrtValue;
typedef struct OrtValueInfo OrtValueInfo;
typedef struct OrtTypeInfo OrtTypeInfo;
typedef struct OrtTensorTypeAndShapeInfo OrtTensorTypeAndShapeInfo;
typedef struct OrtEpGraphSupportInfo OrtEpGraphSupportInfo;
typedef struct OrtNodeFusionOptions OrtNodeFusionOptions;
typedef struct OrtNodeComputeContext OrtNodeComputeContext;
typedef struct OrtKernelContext OrtKernelContext;
typedef struct OrtMemoryInfo OrtMemoryInfo;
typedef struct OrtAllocator OrtAllocator;
typedef struct OrtDataTransferImpl OrtDataTransferImpl;
typedef struct OrtApi OrtApi;
typedef struct OrtEpApi OrtEpApi;
typedef struct OrtEp OrtEp;
typedef struct OrtEpFactory OrtEpFactory;
typedef struct OrtNodeComputeInfo OrtNodeComputeInfo;

typedef enum { ORT_FAIL = 1, ORT_INVALID_ARGUMENT = 2, ORT_EP_FAIL = 11 } OrtErrorCode;
typedef enum {
    ORT_LOGGING_LEVEL_VERBOSE = 0,
    ORT_LOGGING_LEVEL_INFO = 1,
    ORT_LOGGING_LEVEL_WARNING = 2,
    ORT_LOGGING_LEVEL_FATAL = 4
} OrtLoggingLevel;
typedef enum { OrtHardwareDeviceType_CPU = 0 } OrtHardwareDeviceType;
typedef enum {
    ORT_OP_ATTR_INT = 1,
    ORT_OP_ATTR_INTS = 2,
    ORT_OP_ATTR_FLOAT = 3,
    ORT_OP_ATTR_FLOATS = 4,
    ORT_OP_ATTR_STRING = 5
} OrtOpAttrType;
typedef enum ONNXTensorElementDataType {
    ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED = 0,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT = 1,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8 = 2,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8 = 3,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32 = 6,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 = 7,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16 = 10,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE = 11,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16 = 16
} ONNXTensorElementDataType;

typedef struct OrtApiBase {
    const OrtApi *(*GetApi)(uint32_t version); /* NULL if this ONNX Runtime is older */
    const char *(*GetVersionString)(void);
} OrtApiBase;

/* The three structures that a provider passes to ONNX Runtime, as of ORT_VERSION. Members that stay
 * NULL have no type here. */
typedef void (*OrtUnused)(void);

struct OrtEpFactory {
    uint32_t ort_version_supported;
    const char *(*GetName)(const OrtEpFactory *factory);
    const char *(*GetVendor)(const OrtEpFactory *factory);
    OrtStatus *(*GetSupportedDevices)(OrtEpFactory *factory,
                                      const OrtHardwareDevice *const *devices, size_t device_count,
                                      OrtEpDevice **out, size_t most, size_t *count);
    OrtStatus *(*CreateEp)(OrtEpFactory *factory, const OrtHardwareDevice *const *devices,
                           const OrtKeyValuePairs *const *metadata, size_t device_count,
                           const OrtSessionOptions *options, const OrtLogger *logger, OrtEp **out);
    void (*ReleaseEp)(OrtEpFactory *factory, OrtEp *ep);
    uint32_t (*GetVendorId)(const OrtEpFactory *factory);
    const char *(*GetVersion)(const OrtEpFactory *factory);
    OrtUnused ValidateCompiledModelCompatibilityInfo;
    OrtStatus *(*CreateAllocator)(OrtEpFactory *factory, const OrtMemoryInfo *info,
                                  const OrtKeyValuePairs *options, OrtAllocator **out);
    void (*ReleaseAllocator)(OrtEpFactory *factory, OrtAllocator *allocator);
    OrtStatus *(*CreateDataTransfer)(OrtEpFactory *factory, OrtDataTransferImpl **out);
    bool (*IsStreamAware)(const OrtEpFactory *factory);
    OrtUnused unused[5];
};

struct OrtEp {
    uint32_t ort_version_supported;
    const char *(*GetName)(const OrtEp *ep);
    OrtStatus *(*GetCapability)(OrtEp *ep, const OrtGraph *graph, OrtEpGraphSupportInfo *info);
    OrtStatus *(*Compile)(OrtEp *ep, const OrtGraph **graphs, const OrtNode **fused_nodes,
                          size_t count, OrtNodeComputeInfo **out, OrtNode **ep_context_nodes);
    void (*ReleaseNodeComputeInfos)(OrtEp *ep, OrtNodeComputeInfo **infos, size_t count);
    OrtUnused unused[10];
};

struct OrtNodeComputeInfo {
    uint32_t ort_version_supported;
    OrtStatus *(*CreateState)(OrtNodeComputeInfo *info, OrtNodeComputeContext *context,
                              void **state);
    OrtStatus *(*Compute)(OrtNodeComputeInfo *info, void *state, OrtKernelContext *context);
    void (*ReleaseState)(OrtNodeComputeInfo *info, void *state);
};

#endif

/* clang-format off */
/* entry(place, result, name, (arguments)) for each function of the table OrtApi that is used. */
#define ORT_API_ENTRIES(entry) \
    entry(0, OrtStatus *, CreateStatus, (OrtErrorCode code, const char *message)) \
    entry(1, OrtErrorCode, GetErrorCode, (const OrtStatus *status)) \
    entry(2, const char *, GetErrorMessage, (const OrtStatus *status)) \
    entry(3, OrtStatus *, CreateEnv, (OrtLoggingLevel level, const char *name, OrtEnv **out)) \
    entry(8, OrtStatus *, CreateSessionFromArray, (const OrtEnv *env, const void *model, \
          size_t size, const OrtSessionOptions *options, OrtSession **out)) \
    entry(9, OrtStatus *, Run, (OrtSession *session, const OrtRunOptions *options, \
          const char *const *input_names, const OrtValue *const *inputs, size_t input_count, \
          const char *const *output_names, size_t output_count, OrtValue **outputs)) \
    entry(10, OrtStatus *, CreateSessionOptions, (OrtSessionOptions **out)) \
    entry(22, OrtStatus *, SetSessionLogSeverityLevel, (OrtSessionOptions *options, int level)) \
    entry(24, OrtStatus *, SetIntraOpNumThreads, (OrtSessionOptions *options, int threads)) \
    entry(51, OrtStatus *, GetTensorMutableData, (OrtValue *value, void **out)) \
    entry(55, OrtStatus *, CastTypeInfoToTensorInfo, (const OrtTypeInfo *info, \
          const OrtTensorTypeAndShapeInfo **out)) \
    entry(60, OrtStatus *, GetTensorElementType, (const OrtTensorTypeAndShapeInfo *info, \
          ONNXTensorElementDataType *out)) \
    entry(61, OrtStatus *, GetDimensionsCount, (const OrtTensorTypeAndShapeInfo *info, \
          size_t *out)) \
    entry(62, OrtStatus *, GetDimensions, (const OrtTensorTypeAndShapeInfo *info, int64_t *out, \
          size_t count)) \
    entry(63, OrtStatus *, GetSymbolicDimensions, (const OrtTensorTypeAndShapeInfo *info, \
          const char **out, size_t count)) \
    entry(90, OrtStatus *, KernelContext_GetInput, (const OrtKernelContext *context, \
          size_t index, const OrtValue **out)) \
    entry(91, OrtStatus *, KernelContext_GetOutput, (OrtKernelContext *context, size_t index, \
          const int64_t *shape, size_t rank, OrtValue **out)) \
    entry(92, void, ReleaseEnv, (OrtEnv *env)) \
    entry(93, void, ReleaseStatus, (OrtStatus *status)) \
    entry(95, void, ReleaseSession, (OrtSession *session)) \
    entry(96, void, ReleaseValue, (OrtValue *value)) \
    entry(100, void, ReleaseSessionOptions, (OrtSessionOptions *options)) \
    entry(237, OrtStatus *, HasSessionConfigEntry, (const OrtSessionOptions *options, \
          const char *key, int *out)) \
    entry(238, OrtStatus *, GetSessionConfigEntry, (const OrtSessionOptions *options, \
          const char *key, char *value, size_t *size)) \
    entry(246, OrtStatus *, KernelContext_GetLogger, (const OrtKernelContext *context, \
          const OrtLogger **out)) \
    entry(247, OrtStatus *, Logger_LogMessage, (const OrtLogger *logger, OrtLoggingLevel level, \
          const char *message, const char *file, int line, const char *function)) \
    entry(272, OrtStatus *, ReadOpAttr, (const OrtOpAttr *attribute, OrtOpAttrType type, \
          void *data, size_t size, size_t *out)) \
    entry(274, OrtStatus *, KernelContext_ParallelFor, (const OrtKernelContext *context, \
          void (*function)(void *user, size_t index), size_t total, size_t batches, void *user)) \
    entry(289, OrtStatus *, GetValueInfoName, (const OrtValueInfo *value, const char **out)) \
    entry(290, OrtStatus *, GetValueInfoTypeInfo, (const OrtValueInfo *value, \
          const OrtTypeInfo **out)) \
    entry(303, OrtStatus *, GetEpDevices, (const OrtEnv *env, const OrtEpDevice *const **out, \
          size_t *count)) \
    entry(304, OrtStatus *, SessionOptionsAppendExecutionProvider_V2, ( \
          OrtSessionOptions *options, OrtEnv *env, const OrtEpDevice *const *devices, \
          size_t device_count, const char *const *keys, const char *const *values, \
          size_t count)) \
    entry(307, OrtHardwareDeviceType, HardwareDevice_Type, (const OrtHardwareDevice *device)) \
    entry(312, const char *, EpDevice_EpName, (const OrtEpDevice *device)) \
    entry(317, const OrtEpApi *, GetEpApi, (void)) \
    entry(318, OrtStatus *, GetTensorSizeInBytes, (const OrtValue *value, size_t *out)) \
    entry(323, OrtStatus *, ValueInfo_GetValueProducer, (const OrtValueInfo *value, \
          const OrtNode **out, size_t *index)) \
    entry(324, OrtStatus *, ValueInfo_GetValueNumConsumers, (const OrtValueInfo *value, \
          size_t *out)) \
    entry(325, OrtStatus *, ValueInfo_GetValueConsumers, (const OrtValueInfo *value, \
          const OrtNode **nodes, int64_t *inputs, size_t count)) \
    entry(326, OrtStatus *, ValueInfo_GetInitializerValue, (const OrtValueInfo *value, \
          const OrtValue **out)) \
    entry(330, OrtStatus *, ValueInfo_IsGraphOutput, (const OrtValueInfo *value, bool *out)) \
    entry(331, OrtStatus *, ValueInfo_IsConstantInitializer, (const OrtValueInfo *value, \
          bool *out)) \
    entry(336, OrtStatus *, Graph_GetNumOperatorSets, (const OrtGraph *graph, size_t *out)) \
    entry(337, OrtStatus *, Graph_GetOperatorSets, (const OrtGraph *graph, const char **domains, \
          int64_t *versions, size_t count)) \
    entry(344, OrtStatus *, Graph_GetNumNodes, (const OrtGraph *graph, size_t *out)) \
    entry(345, OrtStatus *, Graph_GetNodes, (const OrtGraph *graph, const OrtNode **out, \
          size_t count)) \
    entry(349, OrtStatus *, Node_GetName, (const OrtNode *node, const char **out)) \
    entry(350, OrtStatus *, Node_GetOperatorType, (const OrtNode *node, const char **out)) \
    entry(351, OrtStatus *, Node_GetDomain, (const OrtNode *node, const char **out)) \
    entry(352, OrtStatus *, Node_GetSinceVersion, (const OrtNode *node, int *out)) \
    entry(353, OrtStatus *, Node_GetNumInputs, (const OrtNode *node, size_t *out)) \
    entry(354, OrtStatus *, Node_GetInputs, (const OrtNode *node, const OrtValueInfo **out, \
          size_t count)) \
    entry(355, OrtStatus *, Node_GetNumOutputs, (const OrtNode *node, size_t *out)) \
    entry(356, OrtStatus *, Node_GetOutputs, (const OrtNode *node, const OrtValueInfo **out, \
          size_t count)) \
    entry(359, OrtStatus *, Node_GetNumAttributes, (const OrtNode *node, size_t *out)) \
    entry(360, OrtStatus *, Node_GetAttributes, (const OrtNode *node, const OrtOpAttr **out, \
          size_t count)) \
    entry(361, OrtStatus *, Node_GetAttributeByName, (const OrtNode *node, const char *name, \
          const OrtOpAttr **out)) \
    entry(363, OrtStatus *, OpAttr_GetType, (const OrtOpAttr *attribute, OrtOpAttrType *out)) \
    entry(364, OrtStatus *, OpAttr_GetName, (const OrtOpAttr *attribute, const char **out)) \
    entry(368, OrtStatus *, Node_GetEpName, (const OrtNode *node, const char **out)) \
    entry(378, OrtStatus *, GetTensorData, (const OrtValue *value, const void **out)) \
    entry(414, OrtStatus *, GetTensorElementTypeAndShapeDataReference, (const OrtValue *value, \
          ONNXTensorElementDataType *type, const int64_t **shape, size_t *rank))

/* The same for the table OrtEpApi. */
#define ORT_EP_API_ENTRIES(entry) \
    entry(0, OrtStatus *, CreateEpDevice, (OrtEpFactory *factory, \
          const OrtHardwareDevice *device, const OrtKeyValuePairs *metadata, \
          const OrtKeyValuePairs *options, OrtEpDevice **out)) \
    entry(2, OrtStatus *, EpGraphSupportInfo_AddNodesToFuse, (OrtEpGraphSupportInfo *info, \
          const OrtNode *const *nodes, size_t count, const OrtNodeFusionOptions *options))
/* clang-format on */

/* The functions under their names; ort_load fills it, in factory.c. */
#define ORT_MEMBER(place, result, name, arguments) result(*name) arguments;
extern struct ort {
    ORT_API_ENTRIES(ORT_MEMBER)
    ORT_EP_API_ENTRIES(ORT_MEMBER)
} ort;
#undef ORT_MEMBER

#define ORT_PLACE(type, member, place)                                                             \
    _Static_assert(offsetof(type, member) == (place) * sizeof(void *), #member)
ORT_PLACE(OrtApiBase, GetVersionString, 1);
ORT_PLACE(OrtEpFactory, GetSupportedDevices, 3);
ORT_PLACE(OrtEpFactory, CreateEp, 4);
ORT_PLACE(OrtEpFactory, ReleaseEp, 5);
ORT_PLACE(OrtEpFactory, GetVersion, 7);
ORT_PLACE(OrtEpFactory, CreateAllocator, 9);
ORT_PLACE(OrtEpFactory, ReleaseAllocator, 10);
ORT_PLACE(OrtEpFactory, CreateDataTransfer, 11);
ORT_PLACE(OrtEpFactory, IsStreamAware, 12);
ORT_PLACE(OrtEp, Compile, 3);
ORT_PLACE(OrtEp, ReleaseNodeComputeInfos, 4);
ORT_PLACE(OrtNodeComputeInfo, ReleaseState, 3);
_Static_assert(sizeof(OrtEpFactory) >= 144, "the members that ONNX Runtime 1.24 reads");
_Static_assert(sizeof(OrtEp) >= 120, "the members that ONNX Runtime 1.24 reads");
#ifdef TCONV_ORT_HEADERS
#define ORT_CHECK_IN(table, place, result, name, arguments)                                        \
    ORT_PLACE(struct table, name, place);                                                          \
    _Static_assert(                                                                                \
        __builtin_types_compatible_p(__typeof__(((struct table *)0)->name), result(*) arguments),  \
        #name);
#define ORT_CHECK(place, result, name, arguments)                                                  \
    ORT_CHECK_IN(OrtApi, place, result, name, arguments)
#define ORT_EP_CHECK(place, result, name, arguments)                                               \
    ORT_CHECK_IN(OrtEpApi, place, result, name, arguments)
ORT_API_ENTRIES(ORT_CHECK)
ORT_EP_API_ENTRIES(ORT_EP_CHECK)
_Static_assert(ORT_EP_FAIL == 11, "");
_Static_assert(ORT_LOGGING_LEVEL_VERBOSE == 0 && ORT_LOGGING_LEVEL_INFO == 1 &&
                   ORT_LOGGING_LEVEL_WARNING == 2 && ORT_LOGGING_LEVEL_FATAL == 4,
               "");
_Static_assert(OrtHardwareDeviceType_CPU == 0, "");
_Static_assert(ORT_OP_ATTR_INT == 1 && ORT_OP_ATTR_INTS == 2, "");
_Static_assert(ORT_OP_ATTR_FLOAT == 3 && ORT_OP_ATTR_STRING == 5, "");
_Static_assert(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT == 1, "");
_Static_assert(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16 == 10, "");
_Static_assert(ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE == 11, "");
_Static_assert(ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16 == 16, "");
#endif

#endif
