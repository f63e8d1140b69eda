// SPDX-License-Identifier: Apache-2.0
#include "match.hpp"

#include <cmath>
#include <cstring>

namespace tconv_ggml
{

bool is_idle(const ggml_tensor *node)
{
    return ggml_op_is_empty(node->op) || ggml_is_empty(node) ||
           (node->flags & GGML_TENSOR_FLAG_COMPUTE) == 0;
}

static bool is_on_host(const ggml_tensor *tensor)
{
    const ggml_tensor *owner = tensor->view_src != nullptr ? tensor->view_src : tensor;
    return tensor->data != nullptr &&
           (owner->buffer == nullptr || ggml_backend_buffer_is_host(owner->buffer));
}

static bool is_f32(const ggml_tensor *tensor)
{
    return tensor != nullptr && tensor->type == GGML_TYPE_F32 && is_on_host(tensor);
}

static bool is_filter(const ggml_tensor *tensor)
{
    return (tensor->type == GGML_TYPE_F32 || tensor->type == GGML_TYPE_F16 ||
            tensor->type == GGML_TYPE_BF16) &&
           ggml_is_contiguous(tensor) && is_on_host(tensor);
}

// The same elements in the same order: one may be a reshaped view of the other.
static bool same_elements(const ggml_tensor *one, const ggml_tensor *other)
{
    return one->data == other->data && one->type == other->type && ggml_is_contiguous(one) &&
           ggml_is_contiguous(other) && ggml_nelements(one) == ggml_nelements(other);
}

// ggml's ne and nb have the innermost axis first, the library's shapes and steps the outermost.
static tconv_shape shape_of(const ggml_tensor *tensor, int rank)
{
    tconv_shape shape = {rank, {0}};
    for (int i = 0; i < rank; i++) shape.dim[i] = tensor->ne[rank - 1 - i];
    return shape;
}

// From one element to the next one along an axis, in elements; 0: not a whole number of them.
static int64_t step_of(const ggml_tensor *tensor, int axis)
{
    const size_t bytes = tensor->nb[axis];
    return bytes % sizeof(float) == 0 ? static_cast<int64_t>(bytes / sizeof(float)) : 0;
}

// False if an element does not lie at a whole number of elements.
static bool steps_of(const ggml_tensor *tensor, int rank, tconv_steps &steps)
{
    steps.count = 0;
    if (ggml_is_contiguous(tensor)) return true;
    steps.count = rank;
    for (int i = 0; i < rank; i++) {
        steps.value[i] = step_of(tensor, rank - 1 - i);
        if (steps.value[i] == 0) return false;
    }
    return true;
}

static tconv_list list_of(int axes, const int32_t *innermost_first)
{
    tconv_list list = {axes, {0}};
    for (int i = 0; i < axes; i++) list.value[i] = innermost_first[axes - 1 - i];
    return list;
}

namespace
{

// Follows a value through a graph, from one node to the only one that reads it.
class Chain
{
  public:
    Chain(const ggml_cgraph *graph, int index) : graph_(graph), index_(index)
    {
    }

    ggml_tensor *last() const
    {
        return graph_->nodes[index_];
    }

    int end() const
    {
        return index_ + 1;
    }

    // How many nodes read the value; 0 if it is also a result of the graph.
    int readers() const
    {
        if ((last()->flags & GGML_TENSOR_FLAG_OUTPUT) != 0) return 0;
        return ggml_node_get_use_count(graph_, index_);
    }

    // The next node that is computed or reads the value; only views of other tensors lie between.
    // Null: there is none.
    ggml_tensor *next() const
    {
        const int found = find_next();
        return found < graph_->n_nodes ? graph_->nodes[found] : nullptr;
    }

    // The node that alone reads the value, and comes next; null: there is none.
    ggml_tensor *reader() const
    {
        ggml_tensor *node = next();
        return node != nullptr && readers() == 1 && reads(node, last()) ? node : nullptr;
    }

    // The same if it is of this operator.
    ggml_tensor *reader(ggml_op op) const
    {
        ggml_tensor *node = reader();
        return node != nullptr && node->op == op ? node : nullptr;
    }

    void advance()
    {
        index_ = find_next();
    }

    // Goes on to the only reader if it is of this operator.
    bool advance(ggml_op op)
    {
        if (reader(op) == nullptr) return false;
        advance();
        return true;
    }

  private:
    static bool reads(const ggml_tensor *node, const ggml_tensor *value)
    {
        for (const ggml_tensor *source : node->src)
            if (source == value) return true;
        return false;
    }

    int find_next() const
    {
        int i = index_ + 1;
        while (i < graph_->n_nodes && ggml_op_is_empty(graph_->nodes[i]->op) &&
               !reads(graph_->nodes[i], last()))
            i++;
        return i;
    }

    const ggml_cgraph *graph_;
    int index_;
};

} // namespace

// ---- the convolutions

static bool transposed(Chain &chain, Job &job)
{
    const ggml_tensor *op = chain.last();
    const int axes = op->op == GGML_OP_CONV_TRANSPOSE_1D ? 1 : 2;
    job.weights = op->src[0];
    job.data = op->src[1];
    const int32_t strides[] = {op->op_params[0], op->op_params[0]};
    job.problem.strides = list_of(axes, strides);
    job.problem.data = shape_of(job.data, axes + 2);
    job.problem.filter = shape_of(job.weights, axes + 2); // ggml's order is [CI, CO, K...]
    return axes == 2 || (op->ne[2] == 1 && op->ne[3] == 1 && job.data->ne[3] == 1);
}

// MUL_MAT of [CI, CO*K] and [CI, T], and COL2IM_1D behind it; before it perhaps CONT, which brings
// the data [T, CI] into the other order.
static bool columns(Chain &chain, Job &job)
{
    const ggml_tensor *data = nullptr;
    if (chain.last()->op == GGML_OP_CONT) {
        const ggml_tensor *copy = chain.last();
        if (chain.reader(GGML_OP_MUL_MAT) == nullptr || chain.next()->src[1] != copy ||
            !ggml_are_same_shape(copy, copy->src[0]))
            return false;
        data = copy->src[0];
        chain.advance();
    }
    const ggml_tensor *product = chain.last();
    if (data == nullptr) data = product->src[1];
    job.weights = product->src[0];
    job.data = data;
    while (chain.advance(GGML_OP_RESHAPE)) {
    }
    if (!chain.advance(GGML_OP_COL2IM_1D)) return false;
    const ggml_tensor *op = chain.last();
    const int32_t stride = op->op_params[0], channels = op->op_params[1], crop = op->op_params[2];
    if (!ggml_is_matrix(job.weights) || !ggml_is_matrix(data) || product->type != GGML_TYPE_F32 ||
        op->src[0]->ne[0] != job.weights->ne[1] || op->src[0]->ne[1] != data->ne[1])
        return false;
    job.problem.strides = {1, {stride}};
    job.problem.pads_begin = job.problem.pads_end = {1, {crop}};
    job.problem.data = {3, {1, data->ne[0], data->ne[1]}};
    const int64_t inputs = job.weights->ne[0], kernel = job.weights->ne[1] / channels;
    job.problem.filter = {3, {inputs, channels, kernel}}; // which lies in memory as [CO, K, CI]
    job.problem.filter_steps = {3, {1, kernel * inputs, inputs}};
    const int64_t channel_step = step_of(data, 0), step = step_of(data, 1);
    job.problem.data_steps = {3, {channel_step * data->ne[0] * step, channel_step, step}};
    return channel_step != 0 && step != 0;
}

// A convolution of stride 1, as a nearest upsampling with factor 1 and a convolution: the problem
// takes the convolution's own filter and pads.
static bool convolution(const int32_t *parameters, int axes, Job &job)
{
    // ggml's parameters of both axes, the innermost first: strides, pads, dilations.
    const int32_t *strides = parameters, *pads = parameters + 2, *dilations = parameters + 4;
    for (int i = 0; i < axes; i++)
        if (strides[i] != 1) return false;
    job.problem.operation = TCONV_UPSAMPLE_CONV;
    job.problem.dilations = list_of(axes, dilations);
    job.problem.pads_begin = job.problem.pads_end = list_of(axes, pads);
    job.problem.data = shape_of(job.data, axes + 2);
    job.problem.filter = shape_of(job.weights, axes + 2); // [CO, CI, K...]
    return job.weights->ne[axes] == job.data->ne[axes];
}

// IM2COL, MUL_MAT and what brings the product into shape: ggml_conv_1d, ggml_conv_2d.
static bool unfolded(Chain &chain, Job &job)
{
    const ggml_tensor *op = chain.last();
    const int axes = op->op_params[6] != 0 ? 2 : 1;
    job.weights = op->src[0];
    job.data = op->src[1];
    if (axes == 1 && (job.data->ne[2] != 1 || job.data->ne[3] != 1 || job.weights->ne[3] != 1))
        return false; // ggml's product of several items is no convolution's output
    if (!convolution(op->op_params, axes, job)) return false;
    const ggml_tensor *unrolled = chain.last();
    if (chain.advance(GGML_OP_RESHAPE)) unrolled = chain.last();
    if (!chain.advance(GGML_OP_MUL_MAT)) return false;
    const ggml_tensor *product = chain.last();
    const int64_t channels = job.weights->ne[axes + 1];
    if (product->src[0] != unrolled || !same_elements(product->src[1], job.weights) ||
        product->src[1]->ne[1] != channels || unrolled->ne[0] != product->src[1]->ne[0] ||
        product->type != GGML_TYPE_F32 || ggml_nrows(product) != channels)
        return false;
    if (axes == 1) {
        const ggml_tensor *shaped = chain.reader(GGML_OP_RESHAPE);
        if (shaped != nullptr && shaped->ne[0] == product->ne[0] && shaped->ne[1] == channels)
            chain.advance();
        return true;
    }
    // [OW, OH, N, CO], then as [OW, OH, CO, N].
    if (!chain.advance(GGML_OP_RESHAPE)) return false;
    const ggml_tensor *shaped = chain.last();
    if (shaped->ne[0] != op->ne[1] || shaped->ne[1] != op->ne[2] || shaped->ne[2] != op->ne[3] ||
        shaped->ne[3] != channels || !chain.advance(GGML_OP_PERMUTE))
        return false;
    const ggml_tensor *turned = chain.last();
    for (int i = 0; i < 4; i++)
        if (turned->nb[i] != shaped->nb[i < 2 ? i : 5 - i]) return false;
    return turned->ne[2] == channels && chain.advance(GGML_OP_CONT);
}

static bool direct(Chain &chain, Job &job)
{
    const ggml_tensor *op = chain.last();
    job.weights = op->src[0];
    job.data = op->src[1];
    return convolution(op->op_params, 2, job);
}

static bool begin(Chain &chain, Job &job)
{
    bool found = false;
    const ggml_op op = chain.last()->op;
    switch (op) {
    case GGML_OP_CONV_TRANSPOSE_1D:
    case GGML_OP_CONV_TRANSPOSE_2D: found = transposed(chain, job); break;
    case GGML_OP_CONT:
    case GGML_OP_MUL_MAT: found = columns(chain, job); break;
    case GGML_OP_IM2COL: found = unfolded(chain, job); break;
    case GGML_OP_CONV_2D: found = direct(chain, job); break;
    default: break;
    }
    if (!found || !is_filter(job.weights) || !is_f32(job.data)) return false;
    job.problem.filter_type = job.weights->type == GGML_TYPE_F16    ? TCONV_F16
                              : job.weights->type == GGML_TYPE_BF16 ? TCONV_BF16
                                                                    : TCONV_F32;
    const bool is_columns = op == GGML_OP_CONT || op == GGML_OP_MUL_MAT;
    job.fused = is_columns ? "MUL_MAT COL2IM_1D" : ggml_op_name(op);
    if (op == GGML_OP_IM2COL) job.fused += " MUL_MAT";
    return is_columns || steps_of(job.data, job.problem.data.rank, job.problem.data_steps);
}

// ---- what follows them

// One number for each channel of the job's value.
static bool is_vector(const ggml_tensor *tensor, const ggml_tensor *value, const Job &job)
{
    const int axis = job.problem.data.rank - 2; // ggml's axis of the channels
    const int64_t channels = value->ne[axis];
    return is_f32(tensor) && ggml_is_contiguous(tensor) && ggml_nelements(tensor) == channels &&
           tensor->ne[axis] == channels;
}

// VIEW that leaves out rows at the ends of spatial axes.
static bool take_crop(Chain &chain, Job &job)
{
    const ggml_tensor *view = chain.reader(GGML_OP_VIEW), *whole = chain.last();
    if (view == nullptr || job.epilogue.residual) return false;
    const int axes = job.problem.data.rank - 2;
    size_t offset = view->view_offs - (whole->view_src != nullptr ? whole->view_offs : 0);
    // A pad of a convolution adds rows, a pad of a transposed one takes them away.
    const int64_t sign = job.problem.operation == TCONV_UPSAMPLE_CONV ? -1 : 1;
    tconv_list begin = job.problem.pads_begin, end = job.problem.pads_end;
    begin.count = end.count = axes;
    for (int axis = 3; axis >= 0; axis--) {
        if (view->ne[axis] > 1 && view->nb[axis] != whole->nb[axis]) return false;
        if (axis >= axes && view->ne[axis] != whole->ne[axis]) return false;
        const auto left_out = static_cast<int64_t>(offset / whole->nb[axis]);
        offset %= whole->nb[axis];
        if (axis >= axes && left_out != 0) return false;
        if (axis >= axes) continue;
        const int64_t behind = whole->ne[axis] - left_out - view->ne[axis];
        if (behind < 0) return false;
        begin.value[axes - 1 - axis] += sign * left_out;
        end.value[axes - 1 - axis] += sign * behind;
    }
    if (offset != 0) return false;
    job.problem.pads_begin = begin;
    job.problem.pads_end = end;
    job.fused += " crop";
    chain.advance();
    return true;
}

// CONT of what was cropped, or RESHAPE that only adds or removes axes of extent 1 at the end, which
// ggml does not count.
static bool take_same_shape(Chain &chain, ggml_op op)
{
    const ggml_tensor *same = chain.reader(op);
    if (same == nullptr || !ggml_are_same_shape(same, chain.last())) return false;
    chain.advance();
    return true;
}

static bool take_sum(Chain &chain, Job &job)
{
    const ggml_tensor *sum = chain.reader(GGML_OP_ADD), *value = chain.last();
    if (sum == nullptr || job.epilogue.activation != TCONV_ACTIVATION_NONE ||
        sum->type != GGML_TYPE_F32 || !ggml_are_same_shape(sum, value) ||
        sum->src[0] == sum->src[1])
        return false;
    const ggml_tensor *other = sum->src[0] == value ? sum->src[1] : sum->src[0];
    if (!job.epilogue.bias && is_vector(other, value, job)) {
        job.bias = other;
        job.epilogue.bias = true;
        job.fused += " bias";
    } else if (!job.epilogue.residual && is_f32(other) && ggml_are_same_shape(other, value) &&
               steps_of(other, job.problem.data.rank, job.problem.residual_steps)) {
        job.residual = other;
        job.epilogue.residual = true;
        job.fused += " residual";
    } else {
        return false;
    }
    chain.advance();
    return true;
}

static tconv_activation activation_of(const ggml_tensor *node)
{
    if (node->op == GGML_OP_LEAKY_RELU) return TCONV_ACTIVATION_LEAKY_RELU;
    if (node->op != GGML_OP_UNARY) return TCONV_ACTIVATION_NONE;
    switch (ggml_get_unary_op(node)) {
    case GGML_UNARY_OP_RELU: return TCONV_ACTIVATION_RELU;
    case GGML_UNARY_OP_TANH: return TCONV_ACTIVATION_TANH;
    case GGML_UNARY_OP_SIGMOID: return TCONV_ACTIVATION_SIGMOID;
    case GGML_UNARY_OP_SILU: return TCONV_ACTIVATION_SILU;
    case GGML_UNARY_OP_ELU: return TCONV_ACTIVATION_ELU;
    case GGML_UNARY_OP_GELU_ERF: return TCONV_ACTIVATION_GELU;
    case GGML_UNARY_OP_HARDSWISH: return TCONV_ACTIVATION_HARDSWISH;
    default: return TCONV_ACTIVATION_NONE;
    }
}

static bool take_activation(Chain &chain, Job &job)
{
    const ggml_tensor *node = chain.reader();
    if (node == nullptr || job.epilogue.activation != TCONV_ACTIVATION_NONE ||
        node->type != GGML_TYPE_F32 || !ggml_are_same_shape(node, chain.last()))
        return false;
    const tconv_activation activation = activation_of(node);
    if (activation == TCONV_ACTIVATION_NONE) return false;
    job.epilogue.activation = activation;
    if (activation == TCONV_ACTIVATION_LEAKY_RELU) {
        float slope;
        std::memcpy(&slope, node->op_params, sizeof slope);
        job.epilogue.a = static_cast<double>(slope);
    } else if (activation == TCONV_ACTIVATION_ELU) {
        job.epilogue.a = 1;
    }
    job.fused += std::string(" ") + tconv_activation_name(activation);
    chain.advance();
    return true;
}

// True if the one vector's numbers are the other's reciprocals, but for rounding.
static bool are_reciprocals(const ggml_tensor *one, const ggml_tensor *other)
{
    const auto *a = static_cast<const float *>(one->data);
    const auto *b = static_cast<const float *>(other->data);
    for (int64_t i = 0; i < ggml_nelements(one); i++)
        if (!(std::fabs(a[i] * b[i] - 1) <= 1e-6F)) return false;
    return true;
}

// x + sin(s*x)^2 / s as MUL, SIN, SQR, DIV and ADD; SQR may be MUL, and DIV a MUL with reciprocals.
// DIV by another vector is snakebeta.
static bool take_snake(Chain &chain, Job &job)
{
    const ggml_tensor *value = chain.last(), *scaled = chain.next();
    if (job.epilogue.activation != TCONV_ACTIVATION_NONE || chain.readers() != 2 ||
        scaled == nullptr || scaled->op != GGML_OP_MUL || scaled->src[0] != value ||
        !is_vector(scaled->src[1], value, job))
        return false;
    const ggml_tensor *slope = scaled->src[1];
    Chain ahead = chain;
    ahead.advance();
    if (!ahead.advance(GGML_OP_SIN)) return false;
    const ggml_tensor *sine = ahead.last();
    if (ahead.readers() == 2 && ahead.next() != nullptr && ahead.next()->op == GGML_OP_MUL &&
        ahead.next()->src[0] == sine && ahead.next()->src[1] == sine)
        ahead.advance();
    else if (!ahead.advance(GGML_OP_SQR))
        return false;
    const ggml_tensor *divided = ahead.reader(), *square = ahead.last();
    if (divided == nullptr || divided->src[0] != square || !is_vector(divided->src[1], value, job))
        return false;
    const bool beta = divided->op == GGML_OP_DIV && !same_elements(divided->src[1], slope);
    if (divided->op != GGML_OP_DIV &&
        (divided->op != GGML_OP_MUL || !are_reciprocals(divided->src[1], slope)))
        return false;
    ahead.advance();
    const ggml_tensor *sum = ahead.reader(GGML_OP_ADD);
    if (sum == nullptr || (sum->src[0] != value && sum->src[1] != value) ||
        !ggml_are_same_shape(sum, value))
        return false;
    ahead.advance();
    job.slope = slope;
    if (beta) job.slope2 = divided->src[1];
    job.epilogue.activation = beta ? TCONV_ACTIVATION_SNAKEBETA : TCONV_ACTIVATION_SNAKE;
    job.fused += std::string(" ") + tconv_activation_name(job.epilogue.activation);
    chain = ahead;
    return true;
}

// True if the job's output, as it is now, is a whole tensor that the library computes.
static bool is_whole(const Chain &chain, const Job &job)
{
    const ggml_tensor *last = chain.last();
    tconv_geometry geometry = TCONV_GEOMETRY_INIT;
    // A crop that nobody copied has the elements of its source between its own.
    if (last->op == GGML_OP_VIEW || !is_f32(last) || !ggml_is_contiguous(last) ||
        tconv_resolve(&job.problem, &geometry, nullptr) != TCONV_OK)
        return false;
    const tconv_shape shape = shape_of(last, geometry.output_shape.rank);
    return std::memcmp(shape.dim, geometry.output_shape.dim,
                       sizeof shape.dim[0] * static_cast<size_t>(shape.rank)) == 0;
}

bool find_job(const ggml_cgraph *graph, int index, uint64_t least_macs, Job &job)
{
    Chain chain(graph, index);
    Job grown;
    if (!begin(chain, grown)) return false;
    bool found = false;
    do {
        if (!is_whole(chain, grown)) continue;
        job = grown;
        job.output = chain.last();
        job.end = chain.end();
        found = true;
    } while (take_crop(chain, grown) || take_same_shape(chain, GGML_OP_CONT) ||
             take_same_shape(chain, GGML_OP_RESHAPE) || take_sum(chain, grown) ||
             take_activation(chain, grown) || take_snake(chain, grown));
    tconv_geometry geometry = TCONV_GEOMETRY_INIT;
    return found && tconv_resolve(&job.problem, &geometry, nullptr) == TCONV_OK &&
           geometry.macs >= least_macs;
}

} // namespace tconv_ggml
