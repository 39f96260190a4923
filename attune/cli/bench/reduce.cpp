// attune bench reduce: what it takes several ranks to sum float32 numbers, as training sums gradients.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iostream>

#include "attune/base/fail.h"
#include "attune/base/json_fields.h"
#include "attune/cli/bench/median.h"
#include "attune/cli/draw/draw.h"
#include "attune/cli/ranks.h"
#include "attune/dist/launch.h"

namespace attune::cli {
namespace {

struct ReduceBench {
  std::vector<int64_t> bytes = {64 << 10, 1 << 20, 8 << 20, 25 << 20};
  int64_t rounds = 15;
  double seconds = 20;  // for one size; three rounds are done in any case
  bool mpi = false;
  bool json = false;
};

/// One way to a sum.
struct ReduceWay {
  const char* name;
  void (*sum)(Communicator&, std::span<float>);
};

constexpr ReduceWay kFixed = {
    "fixed", [](Communicator& communicator, std::span<float> x) { communicator.all_reduce(x, Algorithm::fixed); }};
constexpr ReduceWay kNetworkWhole = {"mpi_allreduce", [](Communicator& communicator, std::span<float> x) {
                                       communicator.all_reduce(x, Algorithm::of_network);
                                     }};
constexpr ReduceWay kNetworkParts = {"mpi_reduce_scatter_allgather",
                                     [](Communicator& communicator, std::span<float> x) {
                                       communicator.reduce_scatter(x, Algorithm::of_network);
                                       communicator.all_gather(x, Algorithm::of_network);
                                     }};

struct ReduceRow {
  int64_t bytes = 0;
  const char* way = "";
  std::vector<double> milliseconds = {};  // of a round, on the slowest rank
};

/// The slowest rank's seconds, the same on all ranks. Throws NumericError when the sum is wrong.
double timed_sum(Communicator& communicator, const ReduceWay& way, std::span<float> x) {
  const int ranks = communicator.size();
  std::ranges::fill(x, static_cast<float>(communicator.rank() + 1));
  communicator.barrier();
  const auto begin = std::chrono::steady_clock::now();
  way.sum(communicator, x);
  const double mine = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const auto expected = static_cast<float>(ranks * (ranks + 1) / 2);
  const auto wrong = std::ranges::find_if(x, [&](float v) { return v != expected; });
  if (wrong != x.end()) fail<NumericError>("{}: the sum is {}, should be {}", way.name, *wrong, expected);
  return std::ranges::max(communicator.all_gather_values(mine));
}

// All ways of a size take turns, so that whatever else the machines do meets them alike.
std::vector<ReduceRow> timed_sums(Communicator& communicator, const ReduceBench& o) {
  std::vector<ReduceWay> ways = {kFixed};
  if (communicator.has_network_algorithm()) ways.insert(ways.end(), {kNetworkWhole, kNetworkParts});
  std::vector<ReduceRow> rows;
  for (const int64_t bytes : o.bytes) {
    std::vector<float> x(static_cast<size_t>(bytes) / sizeof(float));
    const size_t first = rows.size();
    for (const ReduceWay& way : ways) rows.push_back({.bytes = bytes, .way = way.name});
    double all = 0;  // the same on all ranks, so that they end together
    for (int64_t round = -1; round < o.rounds && (round < 3 || all < o.seconds); ++round) {  // the first warms up
      for (size_t w = 0; w < ways.size(); ++w) {
        const double seconds = timed_sum(communicator, ways[w], x);
        if (round < 0) continue;
        rows[first + w].milliseconds.push_back(seconds * 1e3);
        all += seconds;
      }
    }
  }
  return rows;
}

Json reduce_json(const Communicator& communicator, const std::vector<ReduceRow>& rows) {
  const int ranks = communicator.size();
  Json results = Json::array();
  for (const ReduceRow& row : rows) {
    const double middle = median(row.milliseconds);
    results.push_back({{"bytes", row.bytes},
                       {"way", row.way},
                       {"rounds", row.milliseconds.size()},
                       {"median_ms", middle},
                       {"least_ms", std::ranges::min(row.milliseconds)},
                       {"most_ms", std::ranges::max(row.milliseconds)},
                       {"mb_per_s", 2.0 * (ranks - 1) / ranks * static_cast<double>(row.bytes) / middle / 1e3}});
  }
  return {{"program", "attune"},
          {"network", communicator.has_network_algorithm() ? "MPI" : "TCP"},
          {"ranks", ranks},
          {"results", std::move(results)}};
}

void write_reduce_table(const Json& measured) {
  std::cout << fmt::format("{} ranks over {}\n{:>9}  {:<29}{:>7}{:>12}{:>10}{:>10}{:>9}\n",
                           measured.at("ranks").get<int>(), measured.at("network").get<std::string>(), "KiB", "sum by",
                           "rounds", "median ms", "least", "most", "MB/s");
  for (const Json& row : measured.at("results"))
    std::cout << fmt::format(
        "{:>9}  {:<29}{:>7}{:>12.3f}{:>10.3f}{:>10.3f}{:>9.1f}\n", row.at("bytes").get<int64_t>() >> 10,
        row.at("way").get<std::string>(), row.at("rounds").get<int64_t>(), row.at("median_ms").get<double>(),
        row.at("least_ms").get<double>(), row.at("most_ms").get<double>(), row.at("mb_per_s").get<double>());
}

int bench_reduce(const ReduceBench& o) {
  for (const int64_t bytes : o.bytes) check_within("--bytes", bytes, 4, int64_t{1} << 32);
  check_within("--rounds", o.rounds, 1, 100000);
  if (!(o.seconds >= 0)) fail<ConfigError>("--seconds {}: needs at least 0", o.seconds);
  const auto communicator = make_communicator(o.mpi);
  if (communicator->size() == 1)
    fail<ConfigError>("bench reduce: needs several ranks, as \"mpirun -n 2 attune bench reduce\" starts them");
  return run_on_ranks(*communicator, [&] {
    const Json measured = reduce_json(*communicator, timed_sums(*communicator, o));
    if (communicator->rank() > 0) return 0;
    if (o.json) {
      std::cout << measured.dump() << "\n";
    } else {
      write_reduce_table(measured);
    }
    return 0;
  });
}

}  // namespace

void add_bench_reduce(CLI::App& bench) {
  const auto o = std::make_shared<ReduceBench>();
  CLI::App* command = add_command(
      bench, "reduce", "Milliseconds in which several ranks sum numbers; over MPI also by its own operations",
      "  mpirun -n 4 --oversubscribe attune bench reduce\n"
      "  mpirun -n 2 attune bench reduce --bytes 1048576 --rounds 50 --json\n"
      "  for r in 0 1; do RANK=$r WORLD_SIZE=2 MASTER_ADDR=localhost attune bench reduce & done; wait   # over TCP",
      [o] { return bench_reduce(*o); });
  command->add_option("--bytes", o->bytes, "Bytes of float32 numbers that each rank has, separated by commas")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--rounds", o->rounds, "Rounds, in which all ways take turns; medians count")
      ->capture_default_str();
  command
      ->add_option("--seconds", o->seconds, "No new round of a size after so many seconds of sums, but three at least")
      ->capture_default_str();
  command->add_flag("--mpi", o->mpi, "Be one of several processes also where mpirun is not recognised");
  command->add_flag("--json", o->json, "One JSON object on standard output, of the first rank");
}

}  // namespace attune::cli
