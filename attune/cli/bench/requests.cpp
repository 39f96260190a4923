// attune bench requests: requests to a language model that arrive at random, served as they come and in fixed batches.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <thread>

#include "attune/autograd/graph.h"
#include "attune/base/json_fields.h"
#include "attune/base/parallel.h"
#include "attune/base/random.h"
#include "attune/cli/bench/decoder_sizes.h"
#include "attune/cli/bench/median.h"
#include "attune/cli/command.h"
#include "attune/cli/draw/draw.h"
#include "attune/cli/options/threads_option.h"
#include "attune/inference/decoding/scheduler.h"
#include "attune/models/decoder_lm.h"
#include "attune/nn/make_panels.h"

namespace attune::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct RequestsBench : DecoderSizes {
  RequestsBench() : DecoderSizes{.d_model = 768, .heads = 12, .layers = 12, .d_ff = 3072, .vocab = 50257} {}  // GPT-2

  int64_t requests = 64, batch = 16;
  int64_t shortest_prompt = 16, longest_prompt = 256, fewest_tokens = 16, most_tokens = 128;
  int64_t repeats = 3, threads = 0, seed = 1;
  bool json = false;
};

struct Arrival {
  double time;  // in seconds
  std::vector<int32_t> prompt;
  int64_t tokens;
};

struct Served {
  double tokens_per_s = 0;
  std::vector<double> first_token_s;  // from a request's arrival to its first token
  std::vector<double> whole_s;        // to its last
};

std::shared_ptr<const DecodingModel> random_model(const RequestsBench& b) {
  TransformerConfig config = b.config();
  config.context_length = b.longest_prompt + b.most_tokens;
  std::shared_ptr<DecoderLm> model = build_decoder_lm(config);
  make_panels(*model, WeightFormat::float32);
  return std::make_shared<LanguageDecodingModel>(std::move(model));
}

// Uniform in time, in length of the prompt and in number of tokens.
std::vector<Arrival> random_arrivals(const RequestsBench& b, double seconds) {
  Random random(static_cast<uint64_t>(b.seed));
  const auto between = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random.below(static_cast<uint64_t>(most - least + 1)));
  };
  std::vector<Arrival> arrivals(static_cast<size_t>(b.requests));
  for (Arrival& arrival : arrivals) {
    arrival.time = random.uniform() * seconds;
    arrival.prompt.resize(static_cast<size_t>(between(b.shortest_prompt, b.longest_prompt)));
    for (int32_t& token : arrival.prompt) token = static_cast<int32_t>(random.below(static_cast<uint64_t>(b.vocab)));
    arrival.tokens = between(b.fewest_tokens, b.most_tokens);
  }
  std::sort(arrivals.begin(), arrivals.end(), [](const Arrival& x, const Arrival& y) { return x.time < y.time; });
  return arrivals;
}

// One measurement: submits the requests to a scheduler of its own and notes when each has its first and its last token.
class Run {
 public:
  Run(const RequestsBench& b, const std::shared_ptr<const DecodingModel>& model, const std::vector<Arrival>& arrivals)
      : b_(b),
        arrivals_(arrivals),
        first_(arrivals.size()),
        last_(arrivals.size()),
        scheduler_(model),
        client_(scheduler_) {}

  /// Each request is submitted when it arrives.
  Served as_they_come() {
    for (size_t next = 0; next < arrivals_.size() || client_.outstanding() > 0;) {
      while (next < arrivals_.size() && arrivals_[next].time <= now()) submit(next++);
      if (client_.outstanding() == 0) wait_for(next);
      client_.work();
    }
    return served();
  }

  /// A batch is submitted when all of its requests have arrived, and the one before is done.
  Served in_fixed_batches() {
    const auto batch = static_cast<size_t>(b_.batch);
    for (size_t next = 0; next < arrivals_.size();) {
      const size_t end = std::min(arrivals_.size(), next + batch);
      wait_for(end - 1);
      while (next < end) submit(next++);
      while (client_.outstanding() > 0) client_.work();
    }
    return served();
  }

 private:
  double now() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

  void wait_for(size_t request) {
    const double left = arrivals_[request].time - now();
    if (left > 0) std::this_thread::sleep_for(std::chrono::duration<double>(left));
  }

  void submit(size_t i) {
    client_.submit(i, {.prompt = arrivals_[i].prompt,
                       .search = SamplingRequest{.config = {.temperature = 0, .max_tokens = arrivals_[i].tokens}},
                       .batch = {.sequences = b_.batch, .lanes = 1},
                       .on_token = [this, i, first = true](const TokenEvent&) mutable {
                         last_[i] = now();
                         if (first) first_[i] = last_[i];
                         first = false;
                         return true;
                       }});
  }

  Served served() const {
    Served result;
    int64_t tokens = 0;
    for (size_t i = 0; i < arrivals_.size(); ++i) {
      tokens += arrivals_[i].tokens;
      result.first_token_s.push_back(first_[i] - arrivals_[i].time);
      result.whole_s.push_back(last_[i] - arrivals_[i].time);
    }
    result.tokens_per_s = static_cast<double>(tokens) / now();
    return result;
  }

  const RequestsBench& b_;
  const std::vector<Arrival>& arrivals_;
  std::vector<double> first_, last_;
  Clock::time_point begin_ = Clock::now();
  Scheduler scheduler_;
  SchedulerClient client_;
};

struct Way {
  std::string name;
  std::vector<double> tokens_per_s = {}, first_median = {}, first_p95 = {}, whole_median = {};

  void add(const Served& served) {
    tokens_per_s.push_back(served.tokens_per_s);
    first_median.push_back(percentile(served.first_token_s, 0.5));
    first_p95.push_back(percentile(served.first_token_s, 0.95));
    whole_median.push_back(percentile(served.whole_s, 0.5));
  }
};

int bench_requests(const RequestsBench& b) {
  check_within("--requests", b.requests, 1, 10000);
  check_within("--batch", b.batch, 1, 1024);
  check_within("--repeats", b.repeats, 1, 1000);
  check_within("--shortest-prompt", b.shortest_prompt, 1, b.longest_prompt);
  check_within("--longest-prompt", b.longest_prompt, 1, 100000);
  check_within("--fewest-tokens", b.fewest_tokens, 1, b.most_tokens);
  check_within("--most-tokens", b.most_tokens, 1, 100000);
  const ThreadScope threads = use_threads(b.threads);
  const NoGrad no_grad;
  const auto model = random_model(b);

  // How long the work takes if all requests are there at once: the arrivals spread over that time.
  const std::vector<Arrival> at_once = random_arrivals(b, 0);
  const Served busy = Run(b, model, at_once).as_they_come();
  const double seconds = *std::max_element(busy.whole_s.begin(), busy.whole_s.end());
  const std::vector<Arrival> arrivals = random_arrivals(b, seconds);
  std::vector<Way> ways = {{.name = "as they come"}, {.name = "in fixed batches"}};
  for (int64_t repeat = 0; repeat < b.repeats; ++repeat) {
    ways[0].add(Run(b, model, arrivals).as_they_come());
    ways[1].add(Run(b, model, arrivals).in_fixed_batches());
  }

  if (b.json) {
    Json rows = Json::array();
    for (const Way& way : ways)
      rows.push_back({{"way", way.name},
                      {"tokens_per_s", median(way.tokens_per_s)},
                      {"first_token_median_s", median(way.first_median)},
                      {"first_token_p95_s", median(way.first_p95)},
                      {"whole_median_s", median(way.whole_median)}});
    std::cout << Json{{"program", "attune"}, {"threads", thread_count()},    {"requests", b.requests},
                      {"batch", b.batch},    {"arrivals_within_s", seconds}, {"results", std::move(rows)}}
                     .dump()
              << "\n";
    return 0;
  }
  std::cout << fmt::format("{} requests arrive within {:.1f} s; at most {} at once\n", b.requests, seconds, b.batch)
            << "| requests are served | tokens/s | first token, median s | first token, 95 % s | last token, median s "
               "|\n| --- | --- | --- | --- | --- |\n";
  for (const Way& way : ways)
    std::cout << fmt::format("| {} | {:.1f} | {:.2f} | {:.2f} | {:.2f} |\n", way.name, median(way.tokens_per_s),
                             median(way.first_median), median(way.first_p95), median(way.whole_median));
  return 0;
}

}  // namespace

void add_bench_requests(CLI::App& bench) {
  const auto b = std::make_shared<RequestsBench>();
  CLI::App* command =
      add_command(bench, "requests", "Requests that arrive at random, served as they come and in fixed batches",
                  "  attune bench requests\n"
                  "  attune bench requests --requests 32 --batch 8 --layers 2 --json",
                  [b] { return bench_requests(*b); });
  command->add_option("--requests", b->requests)->capture_default_str();
  command->add_option("--batch", b->batch, "The most requests at once; the size of a fixed batch")
      ->capture_default_str();
  command->add_option("--shortest-prompt", b->shortest_prompt, "Tokens")->capture_default_str();
  command->add_option("--longest-prompt", b->longest_prompt, "Tokens")->capture_default_str();
  command->add_option("--fewest-tokens", b->fewest_tokens, "Of a continuation")->capture_default_str();
  command->add_option("--most-tokens", b->most_tokens, "Of a continuation")->capture_default_str();
  b->add_options(*command);
  command->add_option("--repeats", b->repeats, "Measurements, of which the median is printed")->capture_default_str();
  command->add_option("--seed", b->seed, "Of arrivals and lengths")->capture_default_str();
  add_threads(*command, b->threads);
  command->add_flag("--json", b->json, "One JSON object on standard output");
}

}  // namespace attune::cli
