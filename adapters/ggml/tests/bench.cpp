// SPDX-License-Identifier: Apache-2.0
// Times models with random weights through ggml's scheduler: on ggml's backend for the processor
// alone, and with the plug-in, by turns. See `usage`.
#include "support.hpp"

#include <time.h>

#include <algorithm>

using namespace tconv_ggml_tests;

namespace
{

constexpr const char *USAGE =
    "ggml_bench MODEL [f32|f16] [FRAMES] [RUNS] [THREADS]\n"
    "Prints medians of the processor time (of all threads) and of the time of ggml alone and, if\n"
    "GGML_BACKEND_PATH names the plug-in, with it. The two take turns in one process.\n"
    "  MODEL   hifigan     the blocks of HiFi-GAN V1, from 512 channels to 32\n"
    "          dac         the decoder blocks of the Descript Audio Codec\n"
    "          upsamplers  the four transposed convolutions of HiFi-GAN V1, with crop and bias\n"
    "          columns     the same as MUL_MAT and COL2IM_1D\n"
    "          dac_columns, hifigan_columns: the models with these upsamplers\n"
    "  f16     the type of the weights of convolutions, here the default\n"
    "  FRAMES  the length of the input, default 50\n"
    "  RUNS    of each, default 9\n"
    "  THREADS default 2\n";

double milliseconds(clockid_t clock)
{
    timespec now;
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

double median(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

struct Upsampler {
    int in, out, kernel, stride;
};

constexpr Upsampler HIFIGAN[] = {
    {512, 256, 16, 8}, {256, 128, 16, 8}, {128, 64, 4, 2}, {64, 32, 4, 2}};
constexpr Upsampler DAC[] = {
    {1536, 768, 16, 8}, {768, 384, 16, 8}, {384, 192, 8, 4}, {192, 96, 4, 2}};

// Builds a model's graph. The first time it makes the weights, later it takes the same ones.
class Model
{
  public:
    Model(std::string name, ggml_type type)
        : name_(std::move(name)), columns_(false), type_(type), weights_(make_context())
    {
        const size_t suffix = name_.rfind("_columns");
        columns_ = name_ == "columns" || suffix != std::string::npos;
        name_ = name_ == "columns" ? "upsamplers" : name_.substr(0, suffix);
    }

    bool is_known() const
    {
        return name_ == "hifigan" || name_ == "dac" || name_ == "upsamplers";
    }

    ggml_tensor *input(ggml_context *c, int frames) const
    {
        return ggml_new_tensor_2d(c, GGML_TYPE_F32, frames,
                                  name_ == "dac" ? DAC[0].in : HIFIGAN[0].in);
    }

    ggml_tensor *build(ggml_context *c, ggml_tensor *x)
    {
        next_ = 0;
        const bool dac = name_ == "dac";
        for (const Upsampler &u : dac ? DAC : HIFIGAN) {
            x = dac ? snake(c, x, u.in) : ggml_leaky_relu(c, x, 0.1F, false);
            x = upsample(c, x, u);
            if (dac)
                for (const int dilation : {1, 3, 9}) x = dac_unit(c, x, u.out, dilation);
            else if (name_ == "hifigan")
                x = hifigan_blocks(c, x, u.out);
        }
        return x;
    }

    // Puts the weights into the backend's memory.
    Buffer allocate(ggml_backend_t backend)
    {
        Buffer buffer(ggml_backend_alloc_ctx_tensors(weights_.get(), backend),
                      ggml_backend_buffer_free);
        ggml_backend_buffer_set_usage(buffer.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
        std::mt19937 random(1);
        for (const Weight &w : made_) set_random(w.tensor, w.least, w.most, random);
        return buffer;
    }

  private:
    struct Weight {
        ggml_tensor *tensor;
        float least, most;
    };

    ggml_tensor *weight(ggml_type type, float least, float most, int64_t a, int64_t b,
                        int64_t c = 1)
    {
        if (next_ == made_.size())
            made_.push_back({ggml_new_tensor_3d(weights_.get(), type, a, b, c), least, most});
        return made_[next_++].tensor;
    }

    // Weights that keep the size of the values that `terms` of them are multiplied with.
    ggml_tensor *filter(int terms, int64_t a, int64_t b, int64_t c = 1)
    {
        const float most = std::sqrt(3.0F / static_cast<float>(terms));
        return weight(type_, -most, most, a, b, c);
    }

    ggml_tensor *bias(ggml_context *c, ggml_tensor *x, int channels)
    {
        return ggml_add(c, x, weight(GGML_TYPE_F32, -0.1F, 0.1F, 1, channels));
    }

    ggml_tensor *convolution(ggml_context *c, ggml_tensor *x, int channels, int kernel,
                             int dilation)
    {
        ggml_tensor *w = filter(channels * kernel, kernel, channels, channels);
        return bias(c, ggml_conv_1d(c, w, x, 1, dilation * (kernel - 1) / 2, dilation), channels);
    }

    ggml_tensor *upsample(ggml_context *c, ggml_tensor *x, const Upsampler &u)
    {
        const int crop = (u.kernel - u.stride) / 2, terms = u.in * u.kernel / u.stride;
        if (columns_) {
            ggml_tensor *w = filter(terms, u.in, u.kernel * u.out);
            x = ggml_mul_mat(c, w, ggml_cont(c, ggml_transpose(c, x)));
            return bias(c, ggml_col2im_1d(c, x, u.stride, u.out, crop), u.out);
        }
        x = ggml_conv_transpose_1d(c, filter(terms, u.kernel, u.out, u.in), x, u.stride, 0, 1);
        const auto begin = static_cast<size_t>(crop) * x->nb[0];
        x = ggml_cont(c, ggml_view_2d(c, x, x->ne[0] - 2 * crop, x->ne[1], x->nb[1], begin));
        return bias(c, x, u.out);
    }

    ggml_tensor *hifigan_blocks(ggml_context *c, ggml_tensor *x, int channels)
    {
        ggml_tensor *sum = nullptr;
        for (const int kernel : {3, 7, 11}) {
            ggml_tensor *block = x;
            for (const int dilation : {1, 3, 5}) {
                ggml_tensor *t = ggml_leaky_relu(c, block, 0.1F, false);
                t = ggml_leaky_relu(c, convolution(c, t, channels, kernel, dilation), 0.1F, false);
                block = ggml_add(c, convolution(c, t, channels, kernel, 1), block);
            }
            sum = sum == nullptr ? block : ggml_add(c, sum, block);
        }
        return ggml_scale(c, sum, 1.0F / 3);
    }

    ggml_tensor *snake(ggml_context *c, ggml_tensor *x, int channels)
    {
        ggml_tensor *slope = weight(GGML_TYPE_F32, 0.5F, 2, 1, channels);
        ggml_tensor *sine = ggml_sin(c, ggml_mul(c, x, slope));
        return ggml_add(c, x, ggml_div(c, ggml_sqr(c, sine), slope));
    }

    ggml_tensor *dac_unit(ggml_context *c, ggml_tensor *x, int channels, int dilation)
    {
        ggml_tensor *t = convolution(c, snake(c, x, channels), channels, 7, dilation);
        return ggml_add(c, convolution(c, snake(c, t, channels), channels, 1, 1), x);
    }

    std::string name_;
    bool columns_;
    ggml_type type_;
    Context weights_;
    std::vector<Weight> made_;
    size_t next_ = 0;
};

// A model on a scheduler with one backend or two.
struct Side {
    explicit Side(const char *side) : name(side)
    {
    }

    const char *name;
    ggml_backend_sched_t scheduler = nullptr;
    Context context = make_context();
    ggml_tensor *input = nullptr, *output = nullptr;
    ggml_cgraph *graph = nullptr;
    std::vector<double> processor, wall;

    void prepare(Model &model, ggml_backend_t *backends, int count, int frames)
    {
        scheduler = ggml_backend_sched_new(backends, nullptr, count, MOST_NODES, false, true);
        input = model.input(context.get(), frames);
        ggml_set_input(input);
        output = model.build(context.get(), input);
        ggml_set_output(output);
        graph = ggml_new_graph_custom(context.get(), MOST_NODES, false);
        ggml_build_forward_expand(graph, output);
        ggml_backend_sched_alloc_graph(scheduler, graph);
        std::mt19937 random(2);
        set_random(input, -1, 1, random);
        given = elements_of(input);
    }

    void run()
    {
        ggml_backend_tensor_set(input, given.data(), 0, ggml_nbytes(input));
        const double begin = milliseconds(CLOCK_MONOTONIC);
        const double used = milliseconds(CLOCK_PROCESS_CPUTIME_ID);
        if (ggml_backend_sched_graph_compute(scheduler, graph) != GGML_STATUS_SUCCESS) std::exit(1);
        processor.push_back(milliseconds(CLOCK_PROCESS_CPUTIME_ID) - used);
        wall.push_back(milliseconds(CLOCK_MONOTONIC) - begin);
    }

    std::vector<float> given;
};

} // namespace

int main(int count, char **arguments)
{
    const std::string name = count > 1 ? arguments[1] : "", type = count > 2 ? arguments[2] : "f16";
    const int frames = count > 3 ? std::atoi(arguments[3]) : 50;
    const int runs = count > 4 ? std::atoi(arguments[4]) : 9;
    const int threads = count > 5 ? std::atoi(arguments[5]) : 2;
    Model model(name, type == "f32" ? GGML_TYPE_F32 : GGML_TYPE_F16);
    if (!model.is_known() || (type != "f32" && type != "f16") || frames < 1 || runs < 1 ||
        threads < 1) {
        std::fputs(USAGE, stderr);
        return 2;
    }
    ggml_backend_load_all();
    const Backend processor = make_backend("CPU", threads);
    Backend plugin(nullptr, ggml_backend_free);
    if (ggml_backend_dev_by_name("TCONV") != nullptr) plugin = make_backend("TCONV", threads);
    ggml_backend_t backends[] = {plugin.get(), processor.get()};
    {
        const Context context = make_context();
        model.build(context.get(), model.input(context.get(), frames)); // makes the weights
    }
    const Buffer weights = model.allocate(processor.get());
    std::vector<std::unique_ptr<Side>> sides;
    sides.push_back(std::make_unique<Side>("ggml alone"));
    sides[0]->prepare(model, backends + 1, 1, frames);
    if (plugin != nullptr) {
        sides.push_back(std::make_unique<Side>("with the plug-in"));
        sides[1]->prepare(model, backends, 2, frames);
    }
    std::printf("%s, %s weights, %d frames, %d threads, ggml %s %s llamafile's products\n",
                name.c_str(), type.c_str(), frames, threads, ggml_version(),
                ggml_cpu_has_llamafile() ? "with" : "without");
    for (int i = -2; i < runs; i++) {
        for (size_t turn = 0; turn < sides.size(); turn++) {
            Side &side = *sides[(static_cast<size_t>(i + 2) + turn) % sides.size()];
            side.run();
            if (i == -2) std::printf("%-17s first run %8.0f ms\n", side.name, side.wall[0]);
            if (i >= 0) continue;
            side.processor.clear();
            side.wall.clear();
        }
    }
    for (const auto &side : sides)
        std::printf("%-17s processor %8.1f ms, time %8.1f ms\n", side->name,
                    median(side->processor), median(side->wall));
    if (plugin != nullptr)
        std::printf("%-17s processor %8.2f,    time %8.2f; %d parts, relative error %.1e\n",
                    "ratio", median(sides[0]->processor) / median(sides[1]->processor),
                    median(sides[0]->wall) / median(sides[1]->wall),
                    ggml_backend_sched_get_n_splits(sides[1]->scheduler),
                    relative_error(elements_of(sides[1]->output), elements_of(sides[0]->output)));
    for (const auto &side : sides) ggml_backend_sched_free(side->scheduler);
    return 0;
}
