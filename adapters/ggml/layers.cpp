// SPDX-License-Identifier: Apache-2.0
#include "layers.hpp"

namespace tconv_ggml
{

// More than any model has tensors of weights of convolutions.
static constexpr size_t MOST_LAYERS = 1024;

tconv_status Layers::layer_of(const Job &job, Layer *&out, tconv_error &error)
{
    const ggml_tensor *w = job.weights;
    const Key key(w->data, w->type, job.columns, w->ne[0], w->ne[1], w->ne[2], w->ne[3]);
    const auto found = places_.find(key);
    if (found != places_.end()) {
        layers_.splice(layers_.begin(), layers_, found->second);
        out = &layers_.front();
        return TCONV_OK;
    }
    tconv_layer *made;
    const tconv_status status =
        tconv_layer_create(&settings().device, 1, TCONV_FILTER_WATCHED, &made, &error);
    if (status != TCONV_OK) return status;
    if (layers_.size() == MOST_LAYERS) {
        places_.erase(layers_.back().key);
        layers_.pop_back();
    }
    layers_.emplace_front();
    layers_.front().key = key;
    layers_.front().layer.reset(made);
    places_[key] = layers_.begin();
    out = &layers_.front();
    return TCONV_OK;
}

template <typename Element>
static void transpose(const ggml_tensor *matrix, std::vector<std::byte> &out)
{
    out.resize(ggml_nbytes(matrix));
    const auto *from = static_cast<const Element *>(matrix->data);
    auto *to = reinterpret_cast<Element *>(out.data());
    const auto width = static_cast<size_t>(matrix->ne[0]);
    const auto height = static_cast<size_t>(matrix->ne[1]);
    for (size_t row = 0; row < height; row++)
        for (size_t column = 0; column < width; column++)
            to[column * height + row] = from[row * width + column];
}

// Gives the weights as the problem's filter.
void Layers::filter_of(const Job &job, Layer &layer, tconv_tensors &tensors)
{
    const ggml_tensor *w = job.weights;
    tensors.filter.host = w->data;
    if (!job.columns) return;
    uint64_t hash[2];
    tconv_hash(w->data, ggml_nbytes(w), hash);
    if (hash[0] == 0) hash[0] = 1; // 0: no version
    if (layer.hash != hash[0]) {   // [CO*K, CI] as [CI, CO*K]
        if (w->type == GGML_TYPE_F32)
            transpose<float>(w, layer.filter);
        else
            transpose<uint16_t>(w, layer.filter);
        layer.hash = hash[0];
    }
    tensors.filter.host = layer.filter.data();
    tensors.filter_version = hash[0];
}

static const void *place_of(const ggml_tensor *tensor)
{
    return tensor == nullptr ? nullptr : tensor->data;
}

tconv_status Layers::run(const Job &job, uint64_t threads, tconv_error &error)
{
    Layer *layer;
    const tconv_status status = layer_of(job, layer, error);
    if (status != TCONV_OK) return status;
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    options.epilogue = job.epilogue;
    tconv_tensors tensors = TCONV_TENSORS_INIT;
    filter_of(job, *layer, tensors);
    tensors.data.host = job.data->data;
    tensors.bias.host = place_of(job.bias);
    tensors.slope.host = place_of(job.slope);
    tensors.residual.host = place_of(job.residual);
    tensors.output.host = job.output->data;
    tconv_run run = TCONV_RUN_INIT;
    run.threads = threads;
    return tconv_layer_run(layer->layer.get(), &job.problem, &options, &tensors, &run, &error);
}

} // namespace tconv_ggml
