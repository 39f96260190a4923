// attune bench tokenizer: how fast a tokenizer reads a text.

#include <atomic>
#include <chrono>

#include "attune/base/fail.h"
#include "attune/base/json_fields.h"
#include "attune/base/parallel_tasks.h"
#include "attune/cli/bench/median.h"
#include "attune/cli/bench/print_result.h"
#include "attune/cli/bench/tokenizer.h"
#include "attune/cli/command.h"
#include "attune/cli/options/threads_option.h"
#include "attune/text/text_file.h"
#include "attune/text/tokenizer.h"

namespace attune::cli {
namespace {

struct TokenizerBench {
  std::string tokenizer, data;
  int64_t rounds = 5, threads = 0;
  bool json = false;
};

/// Encodes all lines and returns the number of their tokens.
int64_t encode_all(const Tokenizer& tokenizer, const std::vector<std::string>& lines) {
  std::atomic<int64_t> tokens = 0;
  parallel_tasks(static_cast<int64_t>(lines.size()), 64, [&](int64_t begin, int64_t end) {
    int64_t count = 0;
    for (int64_t i = begin; i < end; ++i)
      count += static_cast<int64_t>(tokenizer.encode(lines[static_cast<size_t>(i)]).size());
    tokens += count;
  });
  return tokens;
}

int bench_tokenizer(const TokenizerBench& o) {
  if (o.rounds < 1) fail<ConfigError>("--rounds {}: needs at least 1", o.rounds);
  const ThreadScope threads = use_threads(o.threads);
  const auto tokenizer = load_tokenizer(o.tokenizer);
  const std::vector<std::string> lines = read_lines(o.data);
  int64_t bytes = 0;
  for (const std::string& line : lines) bytes += static_cast<int64_t>(line.size());
  int64_t tokens = 0;
  std::vector<double> seconds;
  for (int64_t round = 0; round <= o.rounds; ++round) {  // the first fills caches and is not counted
    const auto begin = std::chrono::steady_clock::now();
    tokens = encode_all(*tokenizer, lines);
    if (round > 0) seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  const double middle = median(seconds);
  const Json result = {{"program", "attune"},
                       {"threads", thread_count()},
                       {"lines", lines.size()},
                       {"bytes", bytes},
                       {"tokens", tokens},
                       {"seconds", middle},
                       {"mb_per_s", static_cast<double>(bytes) / middle / 1e6},
                       {"tokens_per_s", static_cast<double>(tokens) / middle}};
  print_result(result, o.json);
  return 0;
}

}  // namespace

void add_bench_tokenizer(CLI::App& bench) {
  const auto o = std::make_shared<TokenizerBench>();
  CLI::App* command = add_command(bench, "tokenizer", "How fast a tokenizer reads a text, line by line",
                                  "  attune bench tokenizer FOLDER --data news.en\n"
                                  "  attune bench tokenizer tokenizer.json --data news.en --threads 2 --json",
                                  [o] { return bench_tokenizer(*o); });
  command->add_option("tokenizer", o->tokenizer, "Tokenizer file, or folder of a model")->required();
  command->add_option("--data", o->data, "A text, plain or gzip")->required();
  command->add_option("--rounds", o->rounds, "Times that the text is read; the median counts")->capture_default_str();
  add_threads(*command, o->threads);
  command->add_flag("--json", o->json, "One JSON object on standard output");
}

}  // namespace attune::cli
