// attune bench linear: products with weights in panels beside those of training, from weights that are not in the
// cache.

#include <fmt/format.h>
#include <array>
#include <chrono>
#include <iostream>
#include <vector>

#include "attune/autograd/graph.h"
#include "attune/base/fields.h"
#include "attune/base/parallel.h"
#include "attune/cli/bench/median.h"
#include "attune/cli/command.h"
#include "attune/cli/options/threads_option.h"
#include "attune/nn/module.h"
#include "attune/ops/linear/linear.h"
#include "attune/ops/linear/panel_linear.h"

namespace attune::cli {
namespace {

struct LinearBench {
  int64_t rows = 1, in = 512, out = 2048, rounds = 15, threads = 0;
};

constexpr int64_t kWeightBytes = int64_t{64} << 20;  // of the weights that take turns

// The mean time of one call of `f`, which is called with the number of each weight.
template <class F>
double seconds_of(int64_t weights, F&& f) {
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < weights; ++i) f(static_cast<size_t>(i));
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / static_cast<double>(weights);
}

int bench_linear(const LinearBench& o) {
  const ThreadScope threads = use_threads(o.threads);
  const NoGrad no_grad;
  const int64_t count = std::max<int64_t>(1, kWeightBytes / (o.in * o.out * 4));
  const Tensor x = Tensor::empty({o.rows, o.in}), bias = Tensor::zeros({o.out});
  initialize_normal(x, 1, 1, 0);
  std::vector<Tensor> weights;
  constexpr std::array formats = {WeightFormat::float32, WeightFormat::bfloat16, WeightFormat::int8,
                                  WeightFormat::int4};
  std::vector<std::vector<PanelWeight>> panels(formats.size());
  for (int64_t i = 0; i < count; ++i) {
    weights.push_back(Tensor::empty({o.out, o.in}));
    initialize_normal(weights.back(), 1, 1, static_cast<uint64_t>(i) + 1);
    for (size_t f = 0; f < formats.size(); ++f) panels[f].push_back(PanelWeight::lay_out(weights.back(), formats[f]));
  }
  std::vector<std::vector<double>> seconds(1 + formats.size());
  for (int64_t round = 0; round < o.rounds; ++round) {  // in turn, so that a change of the machine meets all
    seconds[0].push_back(seconds_of(count, [&](size_t i) { linear(x, weights[i], bias); }));
    for (size_t f = 0; f < formats.size(); ++f)
      seconds[f + 1].push_back(seconds_of(count, [&](size_t i) { panel_linear(x, panels[f][i], bias); }));
  }
  std::cout << fmt::format("{:<18}{:>12}{:>12}{:>12}{:>10}\n", "weights", "microseconds", "GFLOP/s", "GB/s", "ratio");
  for (size_t f = 0; f <= formats.size(); ++f) {
    const double t = median(seconds[f]);
    const auto bytes = static_cast<double>(f == 0 ? weights[0].bytes() : panels[f - 1][0].storage().bytes());
    std::cout << fmt::format("{:<18}{:>12.1f}{:>12.1f}{:>12.1f}{:>10.2f}\n",
                             f == 0 ? "as in training" : fmt::format("panels, {}", enum_name(formats[f - 1])), t * 1e6,
                             2e-9 * static_cast<double>(o.rows * o.in * o.out) / t, bytes / t / 1e9,
                             median(seconds[0]) / t);
  }
  return 0;
}

}  // namespace

void add_bench_linear(CLI::App& bench) {
  const auto o = std::make_shared<LinearBench>();
  CLI::App* command = add_command(bench, "linear", "Products with weights in panels beside those of training",
                                  "  attune bench linear --rows 5 --in 512 --out 2048\n"
                                  "  attune bench linear --rows 1 --out 9712 --threads 1",
                                  [o] { return bench_linear(*o); });
  const auto size = [&](const char* name, int64_t& value, const char* what) {
    command->add_option(name, value, what)->check(CLI::Range(1, 1 << 16))->capture_default_str();
  };
  size("--rows", o->rows, "Of the input");
  size("--in", o->in, "Numbers of a row");
  size("--out", o->out, "Outputs");
  size("--rounds", o->rounds, "Measurements, of which the median is printed");
  add_threads(*command, o->threads);
}

}  // namespace attune::cli
