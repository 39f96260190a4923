// attune bench decode: steps of a decoder-only model by length of the context and kind of attention.

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <iostream>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/base/json_fields.h"
#include "attune/base/parallel.h"
#include "attune/cli/bench/decoder_sizes.h"
#include "attune/cli/bench/median.h"
#include "attune/cli/command.h"
#include "attune/cli/draw/draw.h"
#include "attune/cli/draw/line_chart.h"
#include "attune/cli/options/device_option.h"
#include "attune/cli/options/threads_option.h"
#include "attune/cli/text_output.h"
#include "attune/inference/place_model.h"
#include "attune/models/decoder_lm.h"
#include "attune/nn/module.h"
#include "attune/tensor/buffer.h"

namespace attune::cli {
namespace {

struct DecodeBench : DecoderSizes {
  std::vector<int64_t> contexts = {128, 512, 2048, 4096, 8192, 16384};
  std::vector<int64_t> batches = {1, 16};
  std::vector<std::string> kinds = {"standard", "grouped", "multi_query", "latent"};
  int64_t kv_heads = 2, latent_dim = 128, rotary_dim = 32;
  int64_t experts = 8, experts_per_token = 2;
  int64_t steps = 4, repeats = 5, threads = 0;
  double memory = 12;
  bool json = false;
  std::string svg, device;
};

struct Row {
  int64_t context, batch;
  std::string kind;
  int64_t cache_bytes = 0, model_bytes = 0;
  std::vector<double> step_ms = {};
  double tokens_per_s() const { return static_cast<double>(batch) * 1e3 / median(step_ms); }
  int64_t cache_bytes_per_token() const { return cache_bytes / (context * batch); }
};

TransformerConfig config_of(const DecodeBench& b, const std::string& kind) {
  TransformerConfig config = b.config();
  config.context_length = int64_t{1} << 21;
  config.positions = RotaryOptions{};
  if (kind == "standard") {
    config.attention = MultiHead{};
  } else if (kind == "grouped") {
    config.attention = MultiHead{.kv_heads = b.kv_heads};
  } else if (kind == "multi_query") {
    config.attention = MultiHead{.kv_heads = 1};
  } else if (kind == "latent") {
    config.attention = MultiHeadLatent{.latent_dim = b.latent_dim, .rotary_dim = b.rotary_dim};
    if (b.rotary_dim == 0) config.positions = SinusoidalPositions{};
  } else if (kind == "experts") {  // as many parameters at work as in the dense network
    if (b.d_ff % b.experts_per_token != 0)
      fail<ConfigError>("--d-ff {}: must be divisible by --experts-per-token {}", b.d_ff, b.experts_per_token);
    config.feed_forward =
        Experts{.experts = b.experts, .experts_per_token = b.experts_per_token, .d_ff = b.d_ff / b.experts_per_token};
  } else {
    fail<ConfigError>("--kinds: expected standard, grouped, multi_query, latent or experts, found \"{}\"", kind);
  }
  return config;
}

void fill(PagedRows& cache, std::span<const int32_t> slots, const Device& device) {
  constexpr size_t kRows = 256;
  if (cache.width() == 0) return;
  const Tensor rows = Tensor::empty({static_cast<int64_t>(kRows), cache.width()}, {.device = device});
  initialize_normal(rows, 1.0, 3, 0);
  for (size_t at = 0; at < slots.size(); at += kRows) {
    const size_t count = std::min(kRows, slots.size() - at);
    cache.write(rows.rows(0, static_cast<int64_t>(count)), slots.subspan(at, count));
  }
}

// A model, and a cache with `context` tokens a row. Its content is random: no prompt is computed.
struct Decoding {
  std::unique_ptr<DecoderLm> model;
  KvCache cache;
  std::vector<int32_t> tokens;

  Decoding(const DecodeBench& b, Row& row) : tokens(static_cast<size_t>(row.batch), 1) {
    const Device device = device_of(b.device);
    const int64_t before = allocator_statistics().bytes_in_use;
    model = build_decoder_lm(config_of(b, row.kind));
    place_model(*model, device, ProductPrecision::float32);
    row.model_bytes = allocator_statistics().bytes_in_use - before;
    cache = model->start(row.batch);
    const std::vector<int32_t> lengths(static_cast<size_t>(row.batch), static_cast<int32_t>(row.context));
    const std::span<const int32_t> slots = cache.past.extend(lengths);
    for (KvCache::Layer& layer : cache.layers) {
      fill(layer.self.keys, slots, device);
      fill(layer.self.values, slots, device);
    }
    row.cache_bytes = cache.bytes();
  }

  // The mean of some steps, after which the cache is as long as before.
  double step_ms(int64_t steps, int64_t context) {
    const auto begin = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < steps; ++i) {
      const Tensor logits = model->step(tokens, cache);
      if (i + 1 == steps) logits.to(Cpu{});  // waits until the device has done all steps
    }
    const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - begin;
    for (int64_t r = 0; r < cache.rows(); ++r) cache.truncate(r, static_cast<int32_t>(context));
    return elapsed.count() / static_cast<double>(steps);
  }
};

double cache_gib(const DecodeBench& b, int64_t context, int64_t batch) {
  double sum = 0;
  for (const std::string& kind : b.kinds) {
    const TransformerConfig config = config_of(b, kind);
    sum += static_cast<double>(cache_width(config.attention, config.d_model, config.heads) * b.layers * 4);
  }
  return sum * static_cast<double>(context * batch) / (1 << 30);
}

// All kinds of a length take turns, so that whatever else the machine does meets them alike.
std::vector<Row> measure(const DecodeBench& b) {
  std::vector<Row> rows;
  for (const int64_t batch : b.batches) {
    for (const int64_t context : b.contexts) {
      if (cache_gib(b, context, batch) > b.memory) {
        std::cerr << fmt::format("context {}, batch {}: the caches need {:.1f} GiB, --memory is {}\n", context, batch,
                                 cache_gib(b, context, batch), b.memory);
        continue;
      }
      const size_t first = rows.size();
      std::vector<Decoding> decodings;
      for (const std::string& kind : b.kinds) {
        rows.push_back({.context = context, .batch = batch, .kind = kind});
        decodings.emplace_back(b, rows.back());
      }
      for (int64_t repeat = -1; repeat < b.repeats; ++repeat) {  // the first round warms up
        for (size_t k = 0; k < decodings.size(); ++k) {
          const double ms = decodings[k].step_ms(b.steps, context);
          if (repeat >= 0) rows[first + k].step_ms.push_back(ms);
        }
      }
    }
  }
  return rows;
}

void check(const DecodeBench& b) {
  for (const int64_t context : b.contexts) check_within("--contexts", context, 1, int64_t{1} << 20);
  for (const int64_t batch : b.batches) check_within("--batch", batch, 1, 4096);
  check_within("--experts-per-token", b.experts_per_token, 1, 4096);
  check_within("--steps", b.steps, 1, 1000);
  check_within("--repeats", b.repeats, 1, 1000);
  if (b.contexts.empty() || b.batches.empty() || b.kinds.empty())
    fail<ConfigError>("--contexts, --batch and --kinds need a value each");
  for (const std::string& kind : b.kinds) config_of(b, kind).validate();
}

Json to_json(const DecodeBench& b, const std::vector<Row>& rows) {
  Json results = Json::array();
  for (const Row& row : rows)
    results.push_back({{"context", row.context},
                       {"batch", row.batch},
                       {"kind", row.kind},
                       {"step_ms", median(row.step_ms)},
                       {"tokens_per_s", row.tokens_per_s()},
                       {"cache_bytes_per_token", row.cache_bytes_per_token()},
                       {"cache_bytes", row.cache_bytes},
                       {"model_bytes", row.model_bytes}});
  return {{"program", "attune"},
          {"device", device_of(b.device).text()},
          {"threads", thread_count()},
          {"d_model", b.d_model},
          {"heads", b.heads},
          {"layers", b.layers},
          {"d_ff", b.d_ff},
          {"vocab", b.vocab},
          {"kv_heads", b.kv_heads},
          {"latent_dim", b.latent_dim},
          {"rotary_dim", b.rotary_dim},
          {"experts", b.experts},
          {"experts_per_token", b.experts_per_token},
          {"steps", b.steps},
          {"repeats", b.repeats},
          {"results", std::move(results)}};
}

// The row of standard attention with the same context and batch, or null.
const Row* standard_of(const std::vector<Row>& rows, const Row& row) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& r) {
    return r.kind == "standard" && r.context == row.context && r.batch == row.batch;
  });
  return found == rows.end() ? nullptr : &*found;
}

void write_table(const std::vector<Row>& rows) {
  std::cout << "| batch | context | kind | ms/step | tokens/s | to standard | cache bytes/token | cache MiB | to "
               "standard |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const Row& row : rows) {
    const Row* standard = standard_of(rows, row);
    const auto ratio = [&](double value, double of_standard) {
      return standard == nullptr ? std::string() : fmt::format("{:.2f}", value / of_standard);
    };
    std::cout << fmt::format("| {} | {} | {} | {:.2f} | {:.1f} | {} | {} | {:.1f} | {} |\n", row.batch, row.context,
                             row.kind, median(row.step_ms), row.tokens_per_s(),
                             ratio(row.tokens_per_s(), standard == nullptr ? 1 : standard->tokens_per_s()),
                             row.cache_bytes_per_token(), static_cast<double>(row.cache_bytes) / (1 << 20),
                             ratio(static_cast<double>(row.cache_bytes),
                                   standard == nullptr ? 1 : static_cast<double>(standard->cache_bytes)));
  }
}

std::string chart_of(const DecodeBench& b, const std::vector<Row>& rows) {
  LineChart chart{
      .title = "Decoding by length of the context",
      .note = fmt::format("d_model {}, {} heads, {} layers; {} key heads when grouped, latent_dim {} + {}; "
                          "{} threads",
                          b.d_model, b.heads, b.layers, b.kv_heads, b.latent_dim, b.rotary_dim, thread_count()),
      .x = {.name = "context", .logarithmic = true, .ticks = {b.contexts.begin(), b.contexts.end()}},
      .y = {.name = "tokens/s", .logarithmic = true},
      .series = {}};
  for (size_t k = 0; k < b.kinds.size(); ++k) {
    for (const int64_t batch : b.batches) {
      Series series{.name = fmt::format("{}, batch {}", b.kinds[k], batch),
                    .points = {},
                    .colour = colour_of_series(k),
                    .dashed = batch != b.batches.back(),
                    .marks = true};
      for (const Row& row : rows)
        if (row.kind == b.kinds[k] && row.batch == batch)
          series.points.push_back({static_cast<double>(row.context), row.tokens_per_s()});
      chart.series.push_back(std::move(series));
    }
  }
  return draw_line_chart(chart);
}

int bench_decode(const DecodeBench& b) {
  check(b);
  check_writable(b.svg);
  device_of(b.device);  // before the work
  const ThreadScope threads = use_threads(b.threads);
  const NoGrad no_grad;
  const std::vector<Row> rows = measure(b);
  if (b.json) {
    std::cout << to_json(b, rows).dump() << "\n";
  } else {
    write_table(rows);
  }
  if (!b.svg.empty()) write_file(b.svg, chart_of(b, rows));
  return 0;
}

}  // namespace

void add_bench_decode(CLI::App& bench) {
  const auto b = std::make_shared<DecodeBench>();
  CLI::App* command =
      add_command(bench, "decode", "Tokens per second and cache of a decoder-only model, by context and attention",
                  "  attune bench decode\n"
                  "  attune bench decode --contexts 4096 --batch 16 --kinds standard,latent\n"
                  "  attune bench decode --contexts 128 --batch 1 --kinds standard,experts\n"
                  "  attune bench decode --json --svg decode.svg",
                  [b] { return bench_decode(*b); });
  command->add_option("--contexts", b->contexts, "Tokens in the cache [128,512,2048,4096,8192,16384]")->delimiter(',');
  command->add_option("--batch", b->batches, "Rows that are decoded together [1,16]")->delimiter(',');
  command->add_option("--kinds", b->kinds, "standard, grouped, multi_query, latent, experts [all but experts]")
      ->delimiter(',');
  b->add_options(*command);
  add_device(*command, b->device);
  command->add_option("--kv-heads", b->kv_heads, "Of grouped attention")->capture_default_str();
  command->add_option("--latent-dim", b->latent_dim, "Of latent attention")->capture_default_str();
  command->add_option("--rotary-dim", b->rotary_dim, "Of latent attention; 0: sinusoidal positions")
      ->capture_default_str();
  command->add_option("--experts", b->experts, "Experts of each layer of the kind experts")->capture_default_str();
  command
      ->add_option("--experts-per-token", b->experts_per_token,
                   "Experts that a token goes through, each of width --d-ff divided by this number")
      ->capture_default_str();
  command->add_option("--steps", b->steps, "Decoding steps of one measurement")->capture_default_str();
  command->add_option("--repeats", b->repeats, "Measurements, after one to warm up; their median is printed")
      ->capture_default_str();
  command
      ->add_option("--memory", b->memory, "GiB that the caches of all kinds may take together, else a line is left out")
      ->capture_default_str();
  add_threads(*command, b->threads);
  command->add_flag("--json", b->json, "One JSON object on standard output; sizes in bytes");
  command->add_option("--svg", b->svg, "File for a chart of tokens per second");
}

}  // namespace attune::cli
