// SPDX-License-Identifier: Apache-2.0
// Computes jobs, and keeps for each tensor of weights a layer of the library's.
#pragma once

#include "device.hpp"
#include "match.hpp"

#include <list>
#include <memory>
#include <tuple>
#include <unordered_map>

namespace tconv_ggml
{

// The layers of one backend of ggml's, which one thread uses at a time. Nothing tells when weights
// change or go away: each run hashes them, and the layers least recently used are dropped.
class Layers
{
  public:
    // Computes the job. `threads`: the most that compute; 0: as many as the library likes. On an
    // error each element of the output has its old value or the result.
    tconv_status run(const Job &job, uint64_t threads, tconv_error &error);

  private:
    // Weights by their place, type and shape.
    using Key = std::tuple<const void *, int, int64_t, int64_t, int64_t, int64_t>;
    struct Layer {
        Key key;
        std::unique_ptr<tconv_layer, decltype(&tconv_layer_release)> layer;
    };
    struct Hash {
        size_t operator()(const Key &key) const
        {
            return std::hash<const void *>()(std::get<0>(key));
        }
    };

    tconv_status layer_of(const ggml_tensor *weights, tconv_layer *&out, tconv_error &error);

    std::list<Layer> layers_; // the most recently used first
    std::unordered_map<Key, std::list<Layer>::iterator, Hash> places_;
};

} // namespace tconv_ggml
