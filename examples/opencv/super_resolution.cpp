/* SPDX-License-Identifier: Apache-2.0 */
/* Doubles a picture by one transposed convolution with the weights of upsampler_x2.h, from UMat to
 * UMat. With --compare it halves the picture first, doubles it in several ways, and prints how near
 * each comes to the original.
 *   super_resolution PICTURE DOUBLED
 *   super_resolution --compare PICTURE ROW [GRID] */
#include "umat_layer.hpp"
#include "upsampler_x2.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <string>
#include <vector>

/* A square kernel that doubles a picture: output o takes input i with weight o - 2 i + pad. */
struct kernel {
    int size;
    std::vector<float> weights;
};

static kernel learned()
{
    return {12, std::vector<float>(upsampler_x2, upsampler_x2 + 12 * 12)};
}

/* The weights with which cv::resize(INTER_CUBIC) doubles a picture. */
static kernel cubic()
{
    const double a = -0.75;
    kernel k = {8, std::vector<float>(64)};
    double line[8];
    for (int i = 0; i < 8; i++) {
        const double x = std::fabs((i - 3.5) / 2);
        line[i] = x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1
                         : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
    }
    for (int i = 0; i < 64; i++) k.weights[i] = static_cast<float>(line[i / 8] * line[i % 8]);
    return k;
}

/* The problem that doubles `data` into `doubled`, each channel by itself. `data` has a border of
 * `border` pixels on each side, which the pads cut off again. */
static tconv_problem doubling(const kernel &k, const cv::UMat &data, int border,
                              const cv::UMat &doubled)
{
    tconv_problem problem = TCONV_PROBLEM_INIT;
    problem.operation = TCONV_ONEAPI_CONV_BACKPROP; /* channels last */
    problem.filter_format = TCONV_OIX;
    problem.groups = data.channels();
    problem.data = picture_shape(data);
    problem.data_steps = picture_steps(data);
    problem.output_steps = picture_steps(doubled);
    problem.filter = shape_of(data.channels(), 1, k.size, k.size);
    problem.strides = list_of(2, 2);
    const int64_t pad = (k.size - 2) / 2 + 2 * border;
    problem.pads_begin = problem.pads_end = list_of(pad, pad);
    return problem;
}

/* Doubles a picture of f32 into `doubled`, which has the right size and may be a part of a larger
 * UMat. Pixels outside the picture are as those at its edge. Returns the algorithm. */
static std::string double_picture(const tconv::device &device, const kernel &k,
                                  const cv::UMat &picture, cv::UMat &doubled)
{
    const int border = k.size / 4;
    cv::UMat bordered, weights;
    cv::copyMakeBorder(picture, bordered, border, border, border, border, cv::BORDER_REPLICATE);
    cv::repeat(cv::Mat(k.weights).reshape(1, 1), picture.channels(), 1).copyTo(weights);
    umat_layer layer(device, doubling(k, bordered, border, doubled), weights);
    layer.run(bordered, doubled);
    return layer.algorithm();
}

static cv::UMat read_picture(const char *path)
{
    cv::UMat picture;
    cv::imread(path, cv::IMREAD_COLOR).convertTo(picture, CV_32F);
    if (picture.empty()) CV_Error(cv::Error::StsError, std::string("cannot read ") + path);
    return picture;
}

/* As 8 bits, as they are stored. */
static cv::UMat bytes_of(const cv::UMat &picture)
{
    cv::UMat bytes;
    picture.convertTo(bytes, CV_8U);
    return bytes;
}

/* The largest difference between two pictures. */
static double difference(const cv::UMat &a, const cv::UMat &b)
{
    return cv::norm(a, b, cv::NORM_INF);
}

/* With the weights of cv::resize the result is that of cv::resize, within the rounding of two sums
 * of 16 products. False if not. */
static bool equals_resize(const tconv::device &device, const cv::UMat &picture)
{
    const kernel k = cubic();
    cv::UMat doubled(picture.rows * 2, picture.cols * 2, picture.type()), expected;
    cv::resize(picture, expected, doubled.size(), 0, 0, cv::INTER_CUBIC);
    double_picture(device, k, picture, doubled);
    double sum = 0; /* of the absolute weights, over all four phases */
    for (const float weight : k.weights) sum += std::fabs(weight);
    const double bound = 2 * 18 * std::ldexp(1, -24) * 255 * sum / 4;
    const double error = difference(doubled, expected);
    std::printf("with its own weights, cv::resize(INTER_CUBIC) differs by %.2g at most; bound "
                "%.2g\n",
                error, bound);
    return error <= bound;
}

/* Pictures that are parts of larger UMats give the same, and all around the output stays as it is.
 * False if not. */
static bool parts_are_equal(const tconv::device &device, const cv::UMat &picture,
                            const cv::UMat &expected)
{
    const cv::Scalar mark(-1, -2, -3);
    cv::UMat large(expected.rows + 5, expected.cols + 9, expected.type(), mark);
    const cv::Rect place(4, 3, expected.cols, expected.rows);
    cv::UMat part = large(place), around;
    double_picture(device, learned(), picture, part);
    const double error = difference(part, expected);
    part.setTo(mark);
    const double outside = difference(large, cv::UMat(large.size(), large.type(), mark));
    std::printf("in a part of a larger UMat: differs by %g, outside by %g\n", error, outside);
    return error == 0 && outside == 0;
}

/* How a part of each picture is shown. */
struct view {
    cv::Rect part; /* of the original's pixels */
    int zoom;
    int band; /* rows of the caption */
    double font;
    int stroke;
};

/* A part of a picture with a caption. */
static cv::Mat detail(const cv::UMat &picture, const std::string &caption, const view &v)
{
    cv::Mat bytes, shown;
    bytes_of(picture).copyTo(bytes);
    cv::resize(bytes(v.part), shown, cv::Size(), v.zoom, v.zoom, cv::INTER_NEAREST);
    cv::rectangle(shown, cv::Rect(0, 0, shown.cols, v.band), cv::Scalar(255, 255, 255), cv::FILLED);
    cv::putText(shown, caption, cv::Point(4, v.band * 13 / 18), cv::FONT_HERSHEY_SIMPLEX, v.font,
                cv::Scalar(0, 0, 0), v.stroke, cv::LINE_AA);
    return shown;
}

static std::string decibels(const char *name, double value)
{
    char text[60];
    std::snprintf(text, sizeof text, "%s, %.2f dB", name, value);
    return text;
}

static void write_picture(const char *path, const cv::Mat &picture)
{
    if (!cv::imwrite(path, picture, {cv::IMWRITE_PNG_COMPRESSION, 9}))
        CV_Error(cv::Error::StsError, std::string("cannot write ") + path);
}

/* `row` gets four parts side by side; `grid`, unless it is NULL, two rows of two smaller parts. */
static int compare(const tconv::device &device, const char *path, const char *row, const char *grid)
{
    cv::UMat original = read_picture(path), half;
    CV_Assert(original.rows % 2 == 0 && original.cols % 2 == 0);
    cv::resize(original, half, cv::Size(), 0.5, 0.5, cv::INTER_AREA);
    bytes_of(half).convertTo(half, CV_32F); /* as if it had been stored */

    cv::UMat nearest, by_cubic, by_lanczos, ours(original.size(), original.type());
    cv::resize(half, nearest, original.size(), 0, 0, cv::INTER_NEAREST);
    cv::resize(half, by_cubic, original.size(), 0, 0, cv::INTER_CUBIC);
    cv::resize(half, by_lanczos, original.size(), 0, 0, cv::INTER_LANCZOS4);
    const std::string algorithm = double_picture(device, learned(), half, ours);

    const cv::UMat bytes = bytes_of(original);
    const double cubic_db = cv::PSNR(bytes_of(by_cubic), bytes),
                 lanczos_db = cv::PSNR(bytes_of(by_lanczos), bytes),
                 ours_db = cv::PSNR(bytes_of(ours), bytes);
    std::printf("%s by %s\n", cv::ocl::Device::getDefault().name().c_str(), algorithm.c_str());
    std::printf("PSNR: cv::resize cubic %.2f dB, Lanczos %.2f dB; tconv-cl %.2f dB\n", cubic_db,
                lanczos_db, ours_db);
    const view wide = {
        cv::Rect(original.cols / 4, original.rows / 4, original.cols / 2, original.rows / 2), 3, 18,
        0.4, 1};
    cv::Mat together;
    cv::hconcat(std::vector<cv::Mat>{detail(nearest, "given", wide),
                                     detail(by_cubic, decibels("cv::resize cubic", cubic_db), wide),
                                     detail(ours, decibels("tconv-cl", ours_db), wide),
                                     detail(original, "original", wide)},
                together);
    write_picture(row, together);
    if (grid != nullptr) {
        const view narrow = {cv::Rect(original.cols * 3 / 8, original.rows * 2 / 5,
                                      original.cols * 3 / 8, original.rows / 3),
                             4, 28, 0.8, 2};
        cv::Mat upper, lower;
        cv::hconcat(detail(nearest, "given", narrow),
                    detail(by_cubic, decibels("cubic", cubic_db), narrow), upper);
        cv::hconcat(detail(ours, decibels("tconv-cl", ours_db), narrow),
                    detail(original, "original", narrow), lower);
        cv::vconcat(upper, lower, together);
        write_picture(grid, together);
    }
    const bool right = equals_resize(device, half) & parts_are_equal(device, half, ours);
    return right && ours_db > lanczos_db && ours_db > cubic_db ? 0 : 1;
}

int main(int argc, char **argv)
{
    try {
        const bool comparing = (argc == 4 || argc == 5) && std::strcmp(argv[1], "--compare") == 0;
        if (argc != 3 && !comparing) {
            std::fprintf(stderr, "usage: super_resolution PICTURE DOUBLED\n"
                                 "       super_resolution --compare PICTURE ROW [GRID]\n");
            return 2;
        }
        const tconv::device device = opencv_device();
        if (comparing) return compare(device, argv[2], argv[3], argc == 5 ? argv[4] : nullptr);
        const cv::UMat picture = read_picture(argv[1]);
        cv::UMat doubled(picture.rows * 2, picture.cols * 2, picture.type());
        double_picture(device, learned(), picture, doubled);
        return cv::imwrite(argv[2], bytes_of(doubled)) ? 0 : 1;
    } catch (const std::exception &e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}
