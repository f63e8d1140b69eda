// SPDX-License-Identifier: Apache-2.0
// Graphs computed by the plug-in and by ggml's backend for the processor: results, and what was
// fused.
#include "../counts.hpp"
#include "support.hpp"

#include <thread>

using namespace tconv_ggml_tests;

namespace
{

int failures;

void check(bool right, const std::string &what)
{
    if (right) return;
    std::printf("FAILED: %s\n", what.c_str());
    failures++;
}

tconv_ggml_counts counts()
{
    static const auto function = reinterpret_cast<tconv_ggml_counts_function>(
        ggml_backend_reg_get_proc_address(ggml_backend_reg_by_name("TCONV"), "tconv_ggml_counts"));
    tconv_ggml_counts now = {};
    if (function != nullptr) function(&now);
    return now;
}

// ---- models: weights that stay, and graphs that read them

enum Kind { TRANSPOSED_1D, TRANSPOSED_2D, COLUMNS, CONVOLUTION_1D, CONVOLUTION_2D, DIRECT_2D };
constexpr const char *KIND_NAMES[] = {"conv_transpose_1d", "conv_transpose_2d", "col2im_1d",
                                      "conv_1d",           "conv_2d",           "conv_2d_direct"};

constexpr int CI = 24, CO = 16, KERNEL = 4;

// A convolution and the steps behind it, by name: "bias leaky_relu".
struct Model {
    Kind kind;
    ggml_type type;
    std::vector<std::string> steps;
    int64_t length;
};

bool is_2d(Kind kind)
{
    return kind == TRANSPOSED_2D || kind == CONVOLUTION_2D || kind == DIRECT_2D;
}

std::vector<std::string> words_of(const std::string &text)
{
    std::vector<std::string> words;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find(' ', at), text.size());
        words.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return words;
}

bool is_view(const ggml_tensor *node)
{
    return node->op == GGML_OP_RESHAPE || node->op == GGML_OP_VIEW || node->op == GGML_OP_PERMUTE ||
           node->op == GGML_OP_TRANSPOSE;
}

// A model's weights and graph on one backend.
class Instance
{
  public:
    Instance(const Model &model, ggml_backend_t backend)
        : model_(model), backend_(backend), weights_(make_context()), nodes_(make_context()),
          random_(7), memory_(nullptr, ggml_backend_buffer_free),
          allocator_(nullptr, ggml_gallocr_free)
    {
        build();
        memory_.reset(ggml_backend_alloc_ctx_tensors(weights_.get(), backend));
        ggml_backend_buffer_set_usage(memory_.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
        for (const auto &fill : fills_) fill();
        allocator_.reset(ggml_gallocr_new(ggml_backend_get_default_buffer_type(backend)));
        ggml_gallocr_alloc_graph(allocator_.get(), graph_);
    }

    std::vector<float> run()
    {
        ggml_backend_tensor_set(data_, given_.data(), 0, ggml_nbytes(data_));
        if (ggml_backend_graph_compute(backend_, graph_) != GGML_STATUS_SUCCESS) return {};
        return elements_of(result_);
    }

    // The operators of the graph that compute something.
    uint64_t operators() const
    {
        uint64_t found = 0;
        for (int i = 0; i < ggml_graph_n_nodes(graph_); i++)
            found += !is_view(ggml_graph_node(graph_, i));
        return found;
    }

    ggml_tensor *filter() const
    {
        return filter_;
    }

  private:
    // Random numbers are drawn in the order of these calls, the same on each backend.
    ggml_tensor *weight(ggml_type type, std::vector<int64_t> extents, float least, float most)
    {
        extents.resize(4, 1);
        ggml_tensor *made = ggml_new_tensor(weights_.get(), type, 4, extents.data());
        fills_.push_back([=] { set_random(made, least, most, random_); });
        return made;
    }

    ggml_tensor *vector(float least, float most)
    {
        return is_2d(model_.kind) ? weight(GGML_TYPE_F32, {1, 1, CO}, least, most)
                                  : weight(GGML_TYPE_F32, {1, CO}, least, most);
    }

    ggml_tensor *convolution()
    {
        ggml_context *c = nodes_.get();
        const ggml_type type = model_.type;
        const int64_t length = model_.length;
        data_ = is_2d(model_.kind) ? ggml_new_tensor_4d(c, GGML_TYPE_F32, length, 9, CI,
                                                        model_.kind == CONVOLUTION_2D ? 2 : 1)
                                   : ggml_new_tensor_2d(c, GGML_TYPE_F32, length, CI);
        ggml_set_input(data_);
        switch (model_.kind) {
        case TRANSPOSED_1D:
            filter_ = weight(type, {KERNEL, CO, CI}, -1, 1);
            return ggml_conv_transpose_1d(c, filter_, data_, 2, 0, 1);
        case TRANSPOSED_2D:
            filter_ = weight(type, {KERNEL, KERNEL, CO, CI}, -1, 1);
            return ggml_conv_transpose_2d_p0(c, filter_, data_, 2);
        case COLUMNS: {
            filter_ = weight(type, {CI, KERNEL * CO}, -1, 1);
            ggml_tensor *turned = ggml_cont(c, ggml_transpose(c, data_));
            return ggml_col2im_1d(c, ggml_mul_mat(c, filter_, turned), 2, CO, 1);
        }
        case CONVOLUTION_1D:
            filter_ = weight(type, {KERNEL, CI, CO}, -1, 1);
            return ggml_conv_1d(c, filter_, data_, 1, 3, 2);
        case CONVOLUTION_2D:
            filter_ = weight(type, {3, KERNEL, CI, CO}, -1, 1);
            return ggml_conv_2d(c, filter_, data_, 1, 1, 1, 2, 1, 1);
        default:
            filter_ = weight(type, {3, KERNEL, CI, CO}, -1, 1);
            return ggml_conv_2d_direct(c, filter_, data_, 1, 1, 1, 2, 2, 1);
        }
    }

    ggml_tensor *crop(ggml_tensor *x)
    {
        ggml_context *c = nodes_.get();
        if (!is_2d(model_.kind))
            return ggml_view_2d(c, x, x->ne[0] - 3, x->ne[1], x->nb[1], x->nb[0]);
        return ggml_view_4d(c, x, x->ne[0] - 3, x->ne[1] - 1, x->ne[2], x->ne[3], x->nb[1],
                            x->nb[2], x->nb[3], 2 * x->nb[0] + x->nb[1]);
    }

    ggml_tensor *snake(ggml_tensor *x, const std::string &name)
    {
        ggml_context *c = nodes_.get();
        ggml_tensor *slope = vector(0.5F, 2);
        ggml_tensor *sine = ggml_sin(c, ggml_mul(c, x, slope));
        if (name == "snake") return ggml_add(c, x, ggml_div(c, ggml_sqr(c, sine), slope));
        if (name == "snakebeta_divided")
            return ggml_add(c, x, ggml_div(c, ggml_sqr(c, sine), vector(1, 2)));
        ggml_tensor *factor = vector(1, 2); // of snakebeta: another slope's reciprocal
        if (name == "snake_reciprocal")
            fills_.push_back([=] {
                std::vector<float> reciprocals = elements_of(slope);
                for (float &s : reciprocals) s = 1 / s;
                set_elements(factor, reciprocals);
            });
        ggml_tensor *square = name == "snake_reciprocal" ? ggml_mul(c, sine, sine)
                                                         : ggml_sqr(c, sine);
        return ggml_add(c, ggml_mul(c, square, factor), x);
    }

    ggml_tensor *step(ggml_tensor *x, const std::string &name)
    {
        ggml_context *c = nodes_.get();
        if (name == "view") return crop(x);
        if (name == "crop") return ggml_cont(c, crop(x));
        if (name == "bias") return ggml_add(c, x, vector(-1, 1));
        if (name == "bias_reshaped") {
            ggml_tensor *bias = weight(GGML_TYPE_F32, {CO}, -1, 1);
            return ggml_add(c, x,
                            is_2d(model_.kind) ? ggml_reshape_4d(c, bias, 1, 1, CO, 1)
                                               : ggml_reshape_2d(c, bias, 1, CO));
        }
        if (name == "residual" || name == "residual_first") {
            ggml_tensor *r = weight(GGML_TYPE_F32, {x->ne[0], x->ne[1], x->ne[2], x->ne[3]}, -1, 1);
            return name == "residual" ? ggml_add(c, x, r) : ggml_add(c, r, x);
        }
        if (name == "residual_inplace")
            return ggml_add_inplace(
                c, x, weight(GGML_TYPE_F32, {x->ne[0], x->ne[1], x->ne[2], x->ne[3]}, -1, 1));
        if (name == "leaky_relu") return ggml_leaky_relu(c, x, 0.1F, false);
        if (name == "relu") return ggml_relu(c, x);
        if (name == "tanh") return ggml_tanh(c, x);
        if (name == "sigmoid") return ggml_sigmoid(c, x);
        if (name == "silu") return ggml_silu(c, x);
        if (name == "elu") return ggml_elu(c, x);
        if (name == "gelu_erf") return ggml_gelu_erf(c, x);
        if (name == "hardswish") return ggml_hardswish(c, x);
        if (name == "scale") return ggml_scale(c, x, 0.5F);
        if (name == "kept") { // a result of the graph itself
            ggml_set_output(x);
            results_.push_back(x);
            return x;
        }
        if (name == "read") { // read again at the end
            again_ = x;
            return x;
        }
        return snake(x, name);
    }

    void build()
    {
        ggml_tensor *x = convolution();
        for (const std::string &name : model_.steps) x = step(x, name);
        if (again_ != nullptr)
            x = ggml_concat(nodes_.get(), x, ggml_scale(nodes_.get(), again_, 2), 0);
        result_ = x;
        ggml_set_output(result_);
        graph_ = ggml_new_graph_custom(nodes_.get(), MOST_NODES, false);
        for (ggml_tensor *kept : results_) ggml_build_forward_expand(graph_, kept);
        ggml_build_forward_expand(graph_, result_);
        given_.resize(static_cast<size_t>(ggml_nelements(data_)));
        std::uniform_real_distribution<float> uniform(-1, 1);
        for (float &value : given_) value = uniform(random_);
    }

    Model model_;
    ggml_backend_t backend_;
    Context weights_, nodes_;
    std::mt19937 random_;
    Buffer memory_;
    std::unique_ptr<ggml_gallocr, decltype(&ggml_gallocr_free)> allocator_;
    std::vector<std::function<void()>> fills_;
    std::vector<ggml_tensor *> results_;
    ggml_tensor *data_ = nullptr, *filter_ = nullptr, *again_ = nullptr, *result_ = nullptr;
    ggml_cgraph *graph_ = nullptr;
    std::vector<float> given_;
};

// f32: sums of at most 24 * 12 products, each within 2^-24 of its own, as the additions. With f16
// weights, and in IM2COL, ggml rounds the data to f16, and this library does not: 2^-11; bf16:
// 2^-8. What follows makes differences at most twice as large: snake. The squares of these, twice.
double bound_of(const Model &model)
{
    const bool half = model.type == GGML_TYPE_F16 || model.kind == CONVOLUTION_1D ||
                      model.kind == CONVOLUTION_2D;
    const double rounding = model.type == GGML_TYPE_BF16 ? std::ldexp(1, -8)
                            : half                       ? std::ldexp(1, -11)
                                                         : 24 * 12 * std::ldexp(1, -24);
    return 2 * 4 * rounding * rounding;
}

struct Backends {
    Backend processor = make_backend("CPU", 2), plugin = make_backend("TCONV", 2);
};

std::string name_of(const Model &model)
{
    std::string name = std::string(KIND_NAMES[model.kind]) + " " + ggml_type_name(model.type);
    for (const std::string &step : model.steps) name += " " + step;
    return name + ", " + std::to_string(model.length);
}

// `left`: the operators that must be left to ggml, besides those of other jobs.
void compare(const Model &model, const Backends &backends, uint64_t jobs, uint64_t left)
{
    Instance expected(model, backends.processor.get()), tested(model, backends.plugin.get());
    const tconv_ggml_counts before = counts();
    const std::vector<float> got = tested.run();
    const tconv_ggml_counts after = counts();
    const double error = relative_error(got, expected.run()), bound = bound_of(model);
    check(error <= bound, name_of(model) + ": relative error " + std::to_string(error * 1e9) +
                              "e-9, bound " + std::to_string(bound * 1e9) + "e-9");
    check(after.jobs - before.jobs == jobs && after.left - before.left == left &&
              after.operators - before.operators == tested.operators() - left,
          name_of(model) + ": " + std::to_string(after.jobs - before.jobs) + " jobs of " +
              std::to_string(after.operators - before.operators) + " operators, and " +
              std::to_string(after.left - before.left) + " left to ggml, which should be " +
              std::to_string(left) + " of " + std::to_string(tested.operators()));
}

// ---- the tests

void fusions(const Backends &backends)
{
    // The steps, and how many operators are left to ggml.
    static const struct {
        const char *steps;
        uint64_t left;
    } rows[] = {
        {"", 0},
        {"crop", 0},
        {"bias", 0},
        {"bias_reshaped", 0},
        {"leaky_relu", 0},
        {"snake", 0},
        {"snake_reciprocal", 0},
        {"snakebeta_divided", 0},
        {"residual", 0},
        {"residual_first", 0},
        {"residual_inplace leaky_relu", 0},
        {"crop bias leaky_relu", 0},
        {"bias crop leaky_relu", 0},
        {"bias leaky_relu crop", 0},
        {"view bias leaky_relu", 0},
        {"crop bias residual snake", 0},
        {"crop residual_first bias snake_reciprocal", 0},
        {"bias residual leaky_relu", 0},
        {"crop crop bias", 0},
        {"relu", 0},
        {"tanh", 0},
        {"sigmoid", 0},
        {"silu", 0},
        {"elu", 0},
        {"gelu_erf", 0},
        {"hardswish", 0},
        // What does not fit behind what is fused already.
        {"bias leaky_relu residual", 1},
        {"bias bias_reshaped", 1},
        {"residual residual", 1},
        {"leaky_relu leaky_relu", 1},
        {"residual crop", 1},
        {"snake bias", 1},
        {"bias scale leaky_relu", 2},
        {"snakebeta", 5},
        {"leaky_relu snake", 5},
        // A second reader: it and what comes behind are ggml's.
        {"read bias", 3},
        {"bias read leaky_relu", 3},
        {"kept bias", 1},
        {"bias kept leaky_relu", 1},
        {"bias read snake", 7},
    };
    for (const auto &row : rows)
        for (const Kind kind :
             {TRANSPOSED_1D, TRANSPOSED_2D, COLUMNS, CONVOLUTION_1D, CONVOLUTION_2D, DIRECT_2D}) {
            // A convolution's crop takes its pads away, which must suffice.
            const bool crops = std::strstr(row.steps, "crop") != nullptr ||
                               std::strstr(row.steps, "view") != nullptr;
            if (crops && kind > COLUMNS && kind != CONVOLUTION_1D) continue;
            if (crops && kind == CONVOLUTION_1D && std::strstr(row.steps, "crop crop")) continue;
            compare({kind, GGML_TYPE_F32, words_of(row.steps), 33}, backends, 1, row.left);
        }
    compare({CONVOLUTION_2D, GGML_TYPE_F32, {"crop", "bias"}, 33}, backends, 1, 2);
    for (const ggml_type type : {GGML_TYPE_F16, GGML_TYPE_BF16})
        for (const Kind kind :
             {TRANSPOSED_1D, TRANSPOSED_2D, COLUMNS, CONVOLUTION_1D, CONVOLUTION_2D, DIRECT_2D}) {
            // ggml's processor backend computes no other products with bf16.
            const bool computed = type == GGML_TYPE_F16 || kind == COLUMNS;
            if (computed) compare({kind, type, {"bias", "leaky_relu"}, 33}, backends, 1, 0);
        }
}

// One element of the weights changes in place before each run.
void changes(const Backends &backends)
{
    for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_F16})
        for (const Kind kind : {TRANSPOSED_1D, COLUMNS, CONVOLUTION_1D}) {
            const Model model = {kind, type, {"bias"}, 20};
            Instance expected(model, backends.processor.get()),
                tested(model, backends.plugin.get());
            std::mt19937 random(3);
            int stale = 0;
            for (int i = 0; i < 100; i++) {
                const auto element = random() %
                                     static_cast<size_t>(ggml_nelements(tested.filter()));
                const float value = static_cast<float>(i % 7) - 3.5F;
                const ggml_fp16_t half = ggml_fp32_to_fp16(value);
                const size_t size = ggml_type_size(type);
                const void *bytes = type == GGML_TYPE_F32 ? static_cast<const void *>(&value)
                                                          : &half;
                for (const Instance *instance : {&expected, &tested})
                    ggml_backend_tensor_set(instance->filter(), bytes, element * size, size);
                stale += relative_error(tested.run(), expected.run()) > bound_of(model);
            }
            check(stale == 0, name_of(model) + ": " + std::to_string(stale) +
                                  " stale results after 100 changes of weights");
        }
}

// Graphs of one model with weights of their own, by turns, and lengths that change.
void many_graphs(const Backends &backends)
{
    for (int64_t length = 1; length <= 40; length += 3)
        for (const Kind kind : {TRANSPOSED_1D, CONVOLUTION_1D})
            compare({kind, GGML_TYPE_F32, {"bias", "leaky_relu"}, length}, backends, 1, 0);
    const Model models[] = {{TRANSPOSED_1D, GGML_TYPE_F16, {"bias"}, 30},
                            {CONVOLUTION_1D, GGML_TYPE_F16, {"snake"}, 40},
                            {COLUMNS, GGML_TYPE_F32, {"leaky_relu"}, 50}};
    std::vector<std::unique_ptr<Instance>> expected, tested;
    for (const Model &model : models) {
        expected.push_back(std::make_unique<Instance>(model, backends.processor.get()));
        tested.push_back(std::make_unique<Instance>(model, backends.plugin.get()));
    }
    for (int i = 0; i < 12; i++) {
        const size_t which = static_cast<size_t>(i) % expected.size();
        check(relative_error(tested[which]->run(), expected[which]->run()) <=
                  bound_of(models[which]),
              name_of(models[which]) + ": graphs by turns");
    }
}

void two_threads()
{
    int wrong[2] = {0, 0};
    const auto run = [&wrong](int which) {
        const Backends backends;
        const Model model = {which == 0 ? TRANSPOSED_1D : CONVOLUTION_1D,
                             GGML_TYPE_F16,
                             {"bias", "residual", "snake"},
                             100};
        Instance expected(model, backends.processor.get()), tested(model, backends.plugin.get());
        const std::vector<float> right = expected.run();
        for (int i = 0; i < 50; i++)
            wrong[which] += relative_error(tested.run(), right) > bound_of(model);
    };
    std::thread other(run, 1);
    run(0);
    other.join();
    check(wrong[0] + wrong[1] == 0,
          "two threads: " + std::to_string(wrong[0] + wrong[1]) + " wrong results of 100");
}

// ---- what programs and schedulers give to the device

// Programs take the best device, or look for an accelerator.
void device_type()
{
    const char *asked = std::getenv("TCONV_GGML_TYPE");
    const bool accelerator = asked != nullptr && std::strcmp(asked, "accel") == 0;
    const Backend best(ggml_backend_init_best(), ggml_backend_free);
    check(std::strcmp(ggml_backend_name(best.get()), accelerator ? "CPU" : "TCONV") == 0,
          std::string("the best device is ") + ggml_backend_name(best.get()));
    check((ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_ACCEL) != nullptr) == accelerator,
          "the device is an accelerator, or is none");
}

struct Scheduled {
    ggml_backend_sched_t scheduler;
    ggml_cgraph *graph;
    ~Scheduled()
    {
        ggml_backend_sched_free(scheduler);
    }

    // How many operators lie on the backend.
    int on(ggml_backend_t backend) const
    {
        int found = 0;
        for (int i = 0; i < ggml_graph_n_nodes(graph); i++) {
            ggml_tensor *node = ggml_graph_node(graph, i);
            found += !is_view(node) &&
                     ggml_backend_sched_get_tensor_backend(scheduler, node) == backend;
        }
        return found;
    }
};

Scheduled schedule(const Backends &backends, ggml_context *context, ggml_tensor *result)
{
    ggml_backend_t list[] = {backends.plugin.get(), backends.processor.get()};
    Scheduled made = {ggml_backend_sched_new(list, nullptr, 2, MOST_NODES, false, true),
                      ggml_new_graph_custom(context, MOST_NODES, false)};
    ggml_build_forward_expand(made.graph, result);
    if (!ggml_backend_sched_alloc_graph(made.scheduler, made.graph)) std::exit(1);
    return made;
}

// The layers of a language model stay the processor's; a vocoder's convolutions do not.
void scheduling(const Backends &backends)
{
    const Context weights = make_context(), nodes = make_context();
    ggml_context *w = weights.get(), *c = nodes.get();
    constexpr int64_t WIDTH = 64, TOKENS = 5;
    ggml_tensor *matrices[3], *norm = ggml_new_tensor_1d(w, GGML_TYPE_F32, WIDTH);
    const ggml_type types[] = {GGML_TYPE_F16, GGML_TYPE_Q8_0, GGML_TYPE_F32};
    for (int i = 0; i < 3; i++) matrices[i] = ggml_new_tensor_2d(w, types[i], WIDTH, WIDTH);
    ggml_tensor *filter = ggml_new_tensor_3d(w, GGML_TYPE_F16, 3, WIDTH, WIDTH);
    ggml_tensor *up = ggml_new_tensor_3d(w, GGML_TYPE_F16, 4, WIDTH, WIDTH);
    ggml_tensor *bias = ggml_new_tensor_2d(w, GGML_TYPE_F32, 1, WIDTH);
    const Buffer memory(ggml_backend_alloc_ctx_tensors(w, backends.plugin.get()),
                        ggml_backend_buffer_free);
    ggml_backend_buffer_set_usage(memory.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);

    ggml_tensor *x = ggml_new_tensor_2d(c, GGML_TYPE_F32, WIDTH, TOKENS);
    ggml_set_input(x);
    for (ggml_tensor *matrix : matrices) {
        ggml_tensor *y = ggml_mul(c, ggml_rms_norm(c, x, 1e-5F), norm);
        ggml_tensor *q = ggml_mul_mat(c, matrix, y);
        y = ggml_mul_mat(c, ggml_soft_max(c, ggml_mul_mat(c, q, y)),
                         ggml_cont(c, ggml_transpose(c, q)));
        x = ggml_add(c, x,
                     ggml_silu(c, ggml_mul_mat(c, matrix, ggml_cont(c, ggml_transpose(c, y)))));
    }
    {
        const Scheduled model = schedule(backends, c, x);
        check(model.on(backends.plugin.get()) == 0 && model.on(backends.processor.get()) > 20,
              "a scheduler gives " + std::to_string(model.on(backends.plugin.get())) +
                  " operators of a language model to the plug-in");
    }
    ggml_tensor *signal = ggml_new_tensor_2d(c, GGML_TYPE_F32, 30, WIDTH);
    ggml_set_input(signal);
    ggml_tensor *s = ggml_add(c, ggml_conv_1d(c, filter, signal, 1, 1, 1), bias);
    s = ggml_conv_transpose_1d(c, up, ggml_leaky_relu(c, s, 0.1F, false), 2, 0, 1);
    s = ggml_add(c, s, ggml_conv_1d(c, filter, ggml_leaky_relu(c, s, 0.1F, false), 1, 1, 1));
    s = ggml_tanh(c, ggml_scale(c, s, 0.3F));
    const Scheduled vocoder = schedule(backends, c, s);
    check(vocoder.on(backends.processor.get()) == 0,
          "a scheduler leaves " + std::to_string(vocoder.on(backends.processor.get())) +
              " operators of a vocoder to the processor");
    check(ggml_backend_sched_get_n_splits(vocoder.scheduler) == 1, "a vocoder is divided");
}

} // namespace

int main()
{
    ggml_backend_load_all();
    const Backends backends;
    std::printf("%s\n", ggml_backend_dev_description(ggml_backend_dev_by_name("TCONV")));
    fusions(backends);
    changes(backends);
    many_graphs(backends);
    two_threads();
    scheduling(backends);
    device_type();
    std::printf("%s\n", failures == 0 ? "all passed" : "some failed");
    return failures == 0 ? 0 : 1;
}
