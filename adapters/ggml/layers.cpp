// SPDX-License-Identifier: Apache-2.0
#include "layers.hpp"

namespace tconv_ggml
{

// More than any model has tensors of weights of convolutions.
static constexpr size_t MOST_LAYERS = 1024;

tconv_status Layers::layer_of(const ggml_tensor *weights, tconv_layer *&out, tconv_error &error)
{
    const int64_t *extents = weights->ne;
    const Key key(weights->data, weights->type, extents[0], extents[1], extents[2], extents[3]);
    const auto found = places_.find(key);
    if (found != places_.end()) {
        layers_.splice(layers_.begin(), layers_, found->second);
        out = layers_.front().layer.get();
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
    std::unique_ptr<tconv_layer, decltype(&tconv_layer_release)> owned(made, tconv_layer_release);
    layers_.push_front({key, std::move(owned)});
    places_[key] = layers_.begin();
    out = made;
    return TCONV_OK;
}

static const void *place_of(const ggml_tensor *tensor)
{
    return tensor == nullptr ? nullptr : tensor->data;
}

tconv_status Layers::run(const Job &job, uint64_t threads, tconv_error &error)
{
    tconv_layer *layer;
    const tconv_status status = layer_of(job.weights, layer, error);
    if (status != TCONV_OK) return status;
    tconv_plan_options options = TCONV_PLAN_OPTIONS_INIT;
    options.epilogue = job.epilogue;
    tconv_tensors tensors = TCONV_TENSORS_INIT;
    tensors.filter.host = job.weights->data;
    tensors.data.host = job.data->data;
    tensors.bias.host = place_of(job.bias);
    tensors.slope.host = place_of(job.slope);
    tensors.slope2.host = place_of(job.slope2);
    tensors.residual.host = place_of(job.residual);
    tensors.output.host = job.output->data;
    tconv_run run = TCONV_RUN_INIT;
    run.threads = threads;
    return tconv_layer_run(layer, &job.problem, &options, &tensors, &run, &error);
}

} // namespace tconv_ggml
