// SPDX-License-Identifier: Apache-2.0
#include "claim.hpp"

#include <algorithm>

namespace tconv_ggml
{

// How many operators lie between a convolution and one that is claimed because of it: snakes have
// five, and a sum of blocks some more.
static constexpr int MOST_STEPS = 16;

static bool is_view(const ggml_tensor *node)
{
    return node->op != GGML_OP_NONE && ggml_op_is_empty(node->op);
}

// What a view is of.
static const ggml_tensor *viewed(const ggml_tensor *node)
{
    while (node != nullptr && is_view(node)) node = node->src[0];
    return node;
}

static bool is_convolution(const ggml_tensor *node)
{
    switch (node->op) {
    case GGML_OP_CONV_TRANSPOSE_1D:
    case GGML_OP_CONV_TRANSPOSE_2D:
    case GGML_OP_COL2IM_1D:
    case GGML_OP_IM2COL:
    case GGML_OP_CONV_2D: return true;
    case GGML_OP_MUL_MAT: return viewed(node->src[0])->op == GGML_OP_IM2COL;
    default: return false;
    }
}

// Operators between the convolutions of one network. Norms and softmax are none of them: what comes
// behind these may be a transformer.
static bool lies_between(ggml_op op)
{
    switch (op) {
    case GGML_OP_ADD:
    case GGML_OP_SUB:
    case GGML_OP_MUL:
    case GGML_OP_DIV:
    case GGML_OP_SQR:
    case GGML_OP_SIN:
    case GGML_OP_SCALE:
    case GGML_OP_CLAMP:
    case GGML_OP_LEAKY_RELU:
    case GGML_OP_UNARY:
    case GGML_OP_CONT:
    case GGML_OP_CONCAT:
    case GGML_OP_PAD:
    case GGML_OP_UPSCALE:
    case GGML_OP_MUL_MAT: return true;
    default: return false;
    }
}

bool is_claimed(const ggml_tensor *op)
{
    if (ggml_op_is_empty(op->op) || is_convolution(op)) return true;
    if (!lies_between(op->op)) return false;
    const ggml_tensor *seen[MOST_STEPS] = {op};
    int count = 1;
    for (int i = 0; i < count; i++) {
        for (const ggml_tensor *read : seen[i]->src) {
            const ggml_tensor *source = viewed(read);
            if (source == nullptr) continue;
            if (is_convolution(source)) return true;
            if (count < MOST_STEPS && lies_between(source->op) &&
                std::find(seen, seen + count, source) == seen + count)
                seen[count++] = source;
        }
    }
    return false;
}

} // namespace tconv_ggml
