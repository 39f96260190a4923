// attune bench attention: what the attention operation alone costs, by length and pattern.

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <iostream>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/base/json_fields.h"
#include "attune/base/parallel.h"
#include "attune/cli/bench/median.h"
#include "attune/cli/command.h"
#include "attune/cli/draw/draw.h"
#include "attune/cli/draw/line_chart.h"
#include "attune/cli/options/pattern_options.h"
#include "attune/cli/options/threads_option.h"
#include "attune/cli/text_output.h"
#include "attune/kernels/attention/attention_plan.h"
#include "attune/models/config.h"
#include "attune/nn/module.h"
#include "attune/ops/attention/attention.h"

namespace attune::cli {
namespace {

struct AttentionBench {
  std::vector<int64_t> lengths = {1024, 2048, 4096, 8192, 16384};
  std::vector<std::string> patterns{std::begin(VariantNames<AttentionPattern>::values),
                                    std::end(VariantNames<AttentionPattern>::values)};
  PatternOptions sizes;
  int64_t heads = 4, d_head = 32;
  bool causal = false;
  int64_t repeats = 5;
  int64_t threads = 0;
  bool json = false;
  std::string svg;
};

/// What one pass took: memory is what tensors held at its peak beyond q, k and v, output included.
struct Cost {
  double milliseconds = 0;
  int64_t bytes = 0;
};

struct Row {
  int64_t length;
  std::string name;
  AttentionPattern pattern;
  int64_t pairs = 0, score_entries = 0;  // of one head
  std::vector<double> forward_ms = {}, forward_backward_ms = {};
  int64_t forward_bytes = 0, forward_backward_bytes = 0;
};

struct Inputs {
  Tensor q, k, v;  // [length, heads, d_head]
};

Inputs random_inputs(const AttentionBench& c, int64_t length) {
  Inputs in;
  uint64_t stream = 0;
  for (Tensor* x : {&in.q, &in.k, &in.v}) {
    *x = Tensor::empty({length, c.heads, c.d_head});
    initialize_normal(*x, 1.0, 1, stream++);
  }
  return in;
}

AttentionOptions options_of(const AttentionBench& c, const Row& row) {
  const Sequences sequences = Sequences::from_lengths({static_cast<int32_t>(row.length)});
  return {.query_sequences = sequences, .key_sequences = sequences, .causal = c.causal, .pattern = row.pattern};
}

template <class Pass>
Cost measured(Pass&& pass) {
  reset_peak_bytes();
  const int64_t before = allocator_statistics().bytes_in_use;
  const auto begin = std::chrono::steady_clock::now();
  pass();
  const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - begin;
  return {elapsed.count(), allocator_statistics().peak_bytes_in_use - before};
}

Cost forward(const AttentionBench& c, const Row& row, const Inputs& in) {
  const AttentionOptions options = options_of(c, row);
  const NoGrad no_grad;
  return measured([&] { attention(in.q, in.k, in.v, options); });
}

// The cotangent is an input of the backward pass and not counted.
Cost forward_backward(const AttentionBench& c, const Row& row, const Inputs& given, const Tensor& cotangent) {
  const AttentionOptions options = options_of(c, row);
  Inputs in{given.q.detach(), given.k.detach(), given.v.detach()};
  for (Tensor* x : {&in.q, &in.k, &in.v}) require_gradient(*x);
  return measured([&] { backward(attention(in.q, in.k, in.v, options), cotangent); });
}

// The blocks that the kernel computes, and the pairs in them that may attend to each other.
void count_scores(const AttentionBench& c, Row& row) {
  for_each_block(row.pattern, {row.length, row.length, c.causal}, [&](const AttentionBlock& block) {
    row.score_entries += block.rows * block.columns;
    for (size_t t = 0; t < static_cast<size_t>(block.rows); ++t)
      row.pairs += block.end[t] - block.begin[t] - (block.gap_end[t] - block.gap_begin[t]);
  });
}

void check(const AttentionBench& c) {
  for (const int64_t length : c.lengths) check_within("--lengths", length, 1, int64_t{1} << 24);
  check_within("--heads", c.heads, 1, 1024);
  check_within("--d-head", c.d_head, 1, 1024);
  check_within("--repeats", c.repeats, 1, 1000);
  const int64_t longest = *std::max_element(c.lengths.begin(), c.lengths.end());
  if (longest * c.heads * c.d_head > int64_t{1} << 32)
    fail<ConfigError>("--lengths {}: {} heads of {} are more than 2^32 numbers", longest, c.heads, c.d_head);
}

// All patterns of a length take turns, so that whatever else the machine does meets them alike.
std::vector<Row> measure(const AttentionBench& c) {
  std::vector<Row> rows;
  for (const int64_t length : c.lengths) {
    const Inputs in = random_inputs(c, length);
    Tensor cotangent = Tensor::empty_like(in.q);
    initialize_normal(cotangent, 1.0, 2, 0);
    const size_t first = rows.size();
    for (const std::string& name : c.patterns)
      rows.push_back({.length = length, .name = name, .pattern = c.sizes.pattern("--patterns", name)});
    for (int64_t repeat = -1; repeat < c.repeats; ++repeat) {  // the first round warms up
      for (size_t r = first; r < rows.size(); ++r) {
        Row& row = rows[r];
        const Cost once = forward(c, row, in), both = forward_backward(c, row, in, cotangent);
        row.forward_bytes = std::max(row.forward_bytes, once.bytes);
        row.forward_backward_bytes = std::max(row.forward_backward_bytes, both.bytes);
        if (repeat < 0) continue;
        row.forward_ms.push_back(once.milliseconds);
        row.forward_backward_ms.push_back(both.milliseconds);
      }
    }
    for (size_t r = first; r < rows.size(); ++r) count_scores(c, rows[r]);
  }
  return rows;
}

Json to_json(const AttentionBench& c, const std::vector<Row>& rows) {
  Json results = Json::array();
  for (const Row& row : rows)
    results.push_back({{"length", row.length},
                       {"pattern", row.name},
                       {"forward_ms", median(row.forward_ms)},
                       {"forward_backward_ms", median(row.forward_backward_ms)},
                       {"forward_bytes", row.forward_bytes},
                       {"forward_backward_bytes", row.forward_backward_bytes},
                       {"pairs", row.pairs * c.heads},
                       {"score_entries", row.score_entries * c.heads}});
  return {{"program", "attune"},          {"threads", thread_count()},  {"heads", c.heads},
          {"d_head", c.d_head},           {"causal", c.causal},         {"size", c.sizes.size},
          {"stride", c.sizes.stride},     {"summary", c.sizes.summary}, {"repeats", c.repeats},
          {"results", std::move(results)}};
}

void write_table(const AttentionBench& c, const std::vector<Row>& rows) {
  std::cout << fmt::format("{:>8}  {:<8}{:>12}{:>14}{:>13}{:>15}{:>15}\n", "length", "pattern", "forward ms",
                           "+backward ms", "forward MiB", "+backward MiB", "score entries");
  const auto mib = [](int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  for (const Row& row : rows)
    std::cout << fmt::format("{:>8}  {:<8}{:>12.2f}{:>14.2f}{:>13.2f}{:>15.2f}{:>15}\n", row.length, row.name,
                             median(row.forward_ms), median(row.forward_backward_ms), mib(row.forward_bytes),
                             mib(row.forward_backward_bytes), row.score_entries * c.heads);
}

std::string chart_of(const AttentionBench& c, const std::vector<Row>& rows) {
  LineChart chart{.title = "Attention: forward and backward",
                  .note = fmt::format("{} heads of {}{}; medians of {}, {} threads", c.heads, c.d_head,
                                      c.causal ? ", causal" : "", c.repeats, thread_count()),
                  .x = {.name = "length", .logarithmic = true, .ticks = {c.lengths.begin(), c.lengths.end()}},
                  .y = {.name = "milliseconds", .logarithmic = true},
                  .series = {}};
  for (const std::string& name : c.patterns) {
    Series series{.name = pattern_text(c.sizes.pattern("--patterns", name)), .points = {}, .marks = true};
    for (const Row& row : rows)
      if (row.name == name) series.points.push_back({static_cast<double>(row.length), median(row.forward_backward_ms)});
    chart.series.push_back(std::move(series));
  }
  return draw_line_chart(chart);
}

int bench_attention(const AttentionBench& c) {
  check(c);
  check_writable(c.svg);
  const ThreadScope threads = use_threads(c.threads);
  const std::vector<Row> rows = measure(c);
  if (c.json) {
    std::cout << to_json(c, rows).dump() << "\n";
  } else {
    write_table(c, rows);
  }
  if (!c.svg.empty()) write_file(c.svg, chart_of(c, rows));
  return 0;
}

}  // namespace

void add_bench_attention(CLI::App& bench) {
  const auto c = std::make_shared<AttentionBench>();
  CLI::App* command =
      add_command(bench, "attention", "Time and memory of the attention operation, by length and pattern",
                  "  attune bench attention --causal\n"
                  "  attune bench attention --lengths 1024,4096 --patterns full,window --size 128\n"
                  "  attune bench attention --causal --json --svg attention.svg",
                  [c] { return bench_attention(*c); });
  command->add_option("--lengths", c->lengths, "Tokens of the sequence [1024,2048,4096,8192,16384]")->delimiter(',');
  command->add_option("--patterns", c->patterns, "full, window, strided, fixed [all]")->delimiter(',');
  c->sizes.add_to(*command);
  command->add_option("--heads", c->heads, "Of the attention")->capture_default_str();
  command->add_option("--d-head", c->d_head, "Dimensions of a head")->capture_default_str();
  command->add_flag("--causal", c->causal, "A query sees no later key");
  command->add_option("--repeats", c->repeats, "Measurements, after one to warm up; their median is printed")
      ->capture_default_str();
  add_threads(*command, c->threads);
  command->add_flag("--json", c->json, "One JSON object on standard output; sizes in bytes");
  command->add_option("--svg", c->svg, "File for a chart of the times");
}

}  // namespace attune::cli
