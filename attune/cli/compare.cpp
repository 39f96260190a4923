// attune compare: what differs between runs, and which is better.

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "attune/base/fail.h"
#include "attune/base/json_fields.h"
#include "attune/cli/command.h"
#include "attune/cli/options/generation_options.h"
#include "attune/cli/run_metrics.h"
#include "attune/cli/text_output.h"
#include "attune/cli/translated_test_set.h"
#include "attune/io/json_file.h"
#include "attune/metrics/paired_bootstrap.h"
#include "attune/train/validation.h"

namespace attune::cli {
namespace {

struct CompareCommand {
  std::vector<std::string> runs;
  std::string source, reference;
  int64_t samples = 1000;
  bool json = false;
  GenerationOptions generation;
};

struct ComparedRun {
  std::string name;
  Json config;  // by "train.steps"
  std::vector<Json> metrics;
  std::map<std::string, BestValue> best;      // of validations
  std::map<std::string, BestValue> averaged;  // by the same names, of model/ where it is the mean of checkpoints
  std::optional<double> parameters, steps, tokens, seconds, memory, averaged_checkpoints;
  std::optional<BleuScore> bleu;  // on the test set
  std::vector<BleuCounts> counts;
};

ComparedRun read_run(const std::string& folder) {
  ComparedRun run;
  run.name = folder;
  run.config = flat_config(folder);
  run.metrics = read_metrics(folder);
  for (const std::string& name : names_of(run.metrics)) {
    const bool averaged = name.starts_with(kAveragedPrefix) && name != kAveragedCheckpoints;
    const auto best = best_of(run.metrics, name);
    if (best && name.starts_with("valid_")) run.best[name] = *best;
    if (best && averaged) run.averaged[name.substr(kAveragedPrefix.size())] = *best;
  }
  run.averaged_checkpoints = largest(run.metrics, kAveragedCheckpoints);
  run.parameters = largest(run.metrics, "parameters");
  run.steps = largest(run.metrics, "step");
  run.tokens = largest(run.metrics, "tokens");
  run.memory = largest(run.metrics, "memory_mib");
  run.seconds = largest(run.metrics, "seconds");
  if (!run.seconds) {  // of an earlier version, which did not count the time of training alone
    const auto end = largest(run.metrics, "time");
    if (end) run.seconds = *end - *first(run.metrics, "time");
  }
  return run;
}

std::optional<double> minutes_of(const ComparedRun& run) {
  if (!run.seconds) return std::nullopt;
  return *run.seconds / 60;
}

// The values of a key; null where a run does not have it.
std::vector<Json> values_of(const std::vector<ComparedRun>& runs, const std::string& key) {
  std::vector<Json> values;
  for (const ComparedRun& run : runs) values.push_back(run.config.value(key, Json()));
  return values;
}

bool all_equal(const std::vector<Json>& values) {
  return std::ranges::adjacent_find(values, std::not_equal_to()) == values.end();
}

// Returns the keys whose values are not the same in all runs. Where the runs have several architectures, it leaves out
// keys that a run does not have.
std::vector<std::string> differing_keys(const std::vector<ComparedRun>& runs) {
  const bool one_architecture = all_equal(values_of(runs, "model.architecture"));
  std::vector<std::string> keys;
  for (const ComparedRun& run : runs)
    for (const auto& [key, value] : run.config.items()) {
      const std::vector<Json> values = values_of(runs, key);
      if (all_equal(values) || std::ranges::find(keys, key) != keys.end()) continue;
      if (one_architecture || std::ranges::find(values, Json()) == values.end()) keys.push_back(key);
    }
  return keys;
}

// Runs that differ in their seed alone, by their places.
std::vector<std::vector<size_t>> groups_of(const std::vector<ComparedRun>& runs) {
  std::vector<std::vector<size_t>> groups;
  std::vector<Json> configs;
  for (size_t i = 0; i < runs.size(); ++i) {
    Json config = runs[i].config;
    config.erase("train.seed");
    const auto found = std::ranges::find(configs, config);
    if (found == configs.end()) {
      configs.push_back(std::move(config));
      groups.push_back({i});
    } else {
      groups[static_cast<size_t>(found - configs.begin())].push_back(i);
    }
  }
  return groups;
}

struct Spread {
  double mean = 0;
  double deviation = 0;  // of a sample: divided by one less than the number of runs
};

Spread spread_of(const std::vector<double>& values) {
  Spread spread;
  for (const double value : values) spread.mean += value / static_cast<double>(values.size());
  if (values.size() < 2) return spread;
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  spread.deviation = std::sqrt(squares / static_cast<double>(values.size() - 1));
  return spread;
}

// Returns the spread of each figure over the runs of a group, by the figure's name. Leaves out figures that a run of
// the group does not have.
std::map<std::string, Spread> spreads_of(const std::vector<ComparedRun>& runs, const std::vector<size_t>& group,
                                         std::map<std::string, BestValue> ComparedRun::*figures) {
  std::map<std::string, Spread> spreads;
  for (const auto& [name, first] : runs[group.front()].*figures) {
    std::vector<double> values;
    for (const size_t i : group)
      if (const auto found = (runs[i].*figures).find(name); found != (runs[i].*figures).end())
        values.push_back(found->second.value);
    if (values.size() == group.size()) spreads[name] = spread_of(values);
  }
  return spreads;
}

size_t number_of_seeds(const std::vector<ComparedRun>& runs, const std::vector<size_t>& group) {
  std::set<Json> seeds;
  for (const size_t i : group) seeds.insert(runs[i].config.value("train.seed", Json()));
  return seeds.size();
}

// Runs that differ in their seed alone, of two seeds or more.
struct SeedGroup {
  std::vector<size_t> runs;
  size_t seeds = 0;
  std::map<std::string, Spread> best, averaged;
};

// What tables and JSON say.
struct Comparison {
  std::vector<ComparedRun> runs;
  std::vector<std::string> differing_keys;
  std::vector<SeedGroup> seeds;
  BleuTokenizer bleu_tokenizer = BleuTokenizer::v13a;  // of the test set, for all runs
  std::vector<PairedBootstrap> significance;           // of each run after the first against the first, on the test set
};

void add_test_set(const CompareCommand& command, Comparison& comparison) {
  if (command.source.empty() && command.reference.empty()) return;
  if (command.source.empty() || command.reference.empty())
    fail<ConfigError>("--source and --reference belong together");
  TranslatedTestSet translated =
      translate_test_set(command.runs, {command.source, command.reference}, command.generation);
  comparison.bleu_tokenizer = translated.bleu_tokenizer;
  for (size_t i = 0; i < comparison.runs.size(); ++i) {
    ComparedRun& run = comparison.runs[i];
    run.counts = std::move(translated.counts[i]);
    BleuCounts sum;
    for (const BleuCounts& sentence : run.counts) sum += sentence;
    run.bleu = bleu_of(sum);
  }
}

using Row = std::vector<std::string>;

// Columns as wide as their widest cell.
void write_rows(TextOutput& out, const std::vector<Row>& rows) {
  std::vector<size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], characters_of(row[i]));
  }
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += i + 1 < row.size() ? column(row[i], widths[i]) + "  " : row[i];
    out.line(line);
  }
}

// One of the values that runs have for a key. A choice between kinds is its kind and, in brackets, the fields in which
// choices of this kind differ.
std::string value_text(const Json& value, const std::vector<Json>& values) {
  if (value.is_null()) return "-";
  if (!value.is_object()) return one_line(value.is_string() ? value.get<std::string>() : show(value));
  const Json kind = value.value("kind", Json(""));
  std::string fields;
  for (const auto& [name, field] : value.items()) {
    std::vector<Json> same_kind;
    for (const Json& other : values)
      if (other.is_object() && other.value("kind", Json("")) == kind) same_kind.push_back(other.value(name, Json()));
    if (all_equal(same_kind)) continue;
    fields += fmt::format("{}{} {}", fields.empty() ? "" : ", ", one_line(name), value_text(field, same_kind));
  }
  const std::string name = value_text(kind, {});
  return fields.empty() ? name : fmt::format("{} ({})", name, fields);
}

std::string number_or_dash(std::optional<double> value, const char* format) {
  return value ? fmt::format(fmt::runtime(format), *value) : "-";
}

void write_table(TextOutput& out, const Comparison& comparison) {
  const std::vector<ComparedRun>& runs = comparison.runs;
  std::vector<Row> rows = {{""}};
  const auto add = [&](const std::string& name, auto&& cell) {
    Row row = {name};
    for (const ComparedRun& run : runs) row.push_back(cell(run));
    rows.push_back(std::move(row));
  };
  for (const ComparedRun& run : runs) rows.front().push_back(one_line(run.name));
  for (const std::string& key : comparison.differing_keys)
    add(key, [&, values = values_of(runs, key)](const ComparedRun& run) {
      return value_text(run.config.value(key, Json()), values);
    });
  add("parameters", [](const ComparedRun& run) { return number_or_dash(run.parameters, "{:.0f}"); });
  add("steps", [](const ComparedRun& run) { return number_or_dash(run.steps, "{:.0f}"); });
  add("tokens", [](const ComparedRun& run) { return number_or_dash(run.tokens, "{:.0f}"); });
  add("training", [](const ComparedRun& run) { return run.seconds ? time_text(*run.seconds) : "-"; });
  add("memory_mib", [](const ComparedRun& run) { return number_or_dash(run.memory, "{:.0f}"); });
  if (std::ranges::any_of(runs, [](const ComparedRun& run) { return run.averaged_checkpoints.has_value(); }))
    add(kAveragedCheckpoints,
        [](const ComparedRun& run) { return number_or_dash(run.averaged_checkpoints, "{:.0f}"); });
  std::set<std::string> names, averaged_names;
  for (const ComparedRun& run : runs) {
    for (const auto& [name, best] : run.best) names.insert(name);
    for (const auto& [name, value] : run.averaged) averaged_names.insert(name);
  }
  for (const std::string& name : names)
    add("best " + name, [&](const ComparedRun& run) {
      const auto found = run.best.find(name);
      return found == run.best.end() ? "-" : fmt::format("{:.4f} at {}", found->second.value, found->second.step);
    });
  for (const std::string& name : averaged_names)
    add("averaged " + name, [&](const ComparedRun& run) {
      const auto found = run.averaged.find(name);
      return found == run.averaged.end() ? "-" : fmt::format("{:.4f}", found->second.value);
    });
  if (runs.front().bleu)
    add("test BLEU", [](const ComparedRun& run) { return fmt::format("{:.2f}", run.bleu->score); });
  write_rows(out, rows);
}

std::string names_of_group(const std::vector<ComparedRun>& runs, const std::vector<size_t>& group) {
  std::string names;
  for (const size_t i : group) names += (names.empty() ? "" : ", ") + one_line(runs[i].name);
  return names;
}

void write_groups(TextOutput& out, const Comparison& comparison) {
  for (const SeedGroup& group : comparison.seeds) {
    out.line("");
    out.line(fmt::format("Mean and standard deviation over {}{} seeds ({}):",
                         group.runs.size() == group.seeds ? "" : fmt::format("{} runs of ", group.runs.size()),
                         group.seeds, names_of_group(comparison.runs, group.runs)));
    for (const auto& [word, spreads] : {std::pair("best ", &group.best), std::pair("averaged ", &group.averaged)})
      for (const auto& [name, spread] : *spreads)
        out.line(fmt::format("  {:<34}{:.4f} +- {:.4f}", word + name, spread.mean, spread.deviation));
  }
}

void write_significance(TextOutput& out, const CompareCommand& command, const Comparison& comparison) {
  if (comparison.significance.empty()) return;
  const std::vector<ComparedRun>& runs = comparison.runs;
  out.line("");
  out.line(fmt::format("BLEU on {} against {} (paired bootstrap, {} samples):", one_line(command.source),
                       one_line(runs.front().name), command.samples));
  for (size_t i = 1; i < runs.size(); ++i) {
    const PairedBootstrap& b = comparison.significance[i - 1];
    out.line(fmt::format("  {}: {:+.2f}, 95 % between {:+.2f} and {:+.2f}, {}{}", one_line(runs[i].name), b.difference,
                         b.low, b.high, p_value_text(b.p_value, command.samples),
                         b.p_value < 0.05 ? "" : " (may be chance)"));
  }
}

Json to_json(const CompareCommand& command, const Comparison& comparison) {
  const std::vector<ComparedRun>& runs = comparison.runs;
  const auto number = [](std::optional<double> value) { return value ? Json(*value) : Json(); };
  Json json = {{"runs", Json::array()}, {"differing_keys", comparison.differing_keys}, {"seeds", Json::array()}};
  for (const ComparedRun& run : runs) {
    const auto figures = [](const std::map<std::string, BestValue>& of_names) {
      Json object = Json::object();
      for (const auto& [name, b] : of_names) object[name] = {{"value", b.value}, {"step", b.step}};
      return object;
    };
    json["runs"].push_back({{"run", run.name},
                            {"config", run.config},
                            {"parameters", number(run.parameters)},
                            {"steps", number(run.steps)},
                            {"tokens", number(run.tokens)},
                            {"minutes", number(minutes_of(run))},
                            {"memory_mib", number(run.memory)},
                            {"best", figures(run.best)},
                            {"averaged_checkpoints", number(run.averaged_checkpoints)},
                            {"averaged", figures(run.averaged)}});
    if (run.bleu) json["runs"].back()["test_bleu"] = run.bleu->score;
  }
  for (const SeedGroup& group : comparison.seeds) {
    Json of_group = {{"runs", Json::array()}, {"best", Json::object()}, {"averaged", Json::object()}};
    for (const size_t i : group.runs) of_group["runs"].push_back(runs[i].name);
    for (const auto& [word, spreads] : {std::pair("best", &group.best), std::pair("averaged", &group.averaged)})
      for (const auto& [name, spread] : *spreads)
        of_group[word][name] = {{"mean", spread.mean}, {"standard_deviation", spread.deviation}};
    json["seeds"].push_back(std::move(of_group));
  }
  if (!runs.front().bleu) return json;
  json["bleu_tokenizer"] = name_of(comparison.bleu_tokenizer);
  json["significance"] = Json::array();
  for (size_t i = 1; i < runs.size(); ++i) {
    const PairedBootstrap& b = comparison.significance[i - 1];
    json["significance"].push_back({{"run", runs[i].name},
                                    {"against", runs[0].name},
                                    {"difference", b.difference},
                                    {"low", b.low},
                                    {"high", b.high},
                                    {"p_value", b.p_value},
                                    {"samples", command.samples}});
  }
  return json;
}

Comparison compare_runs(const CompareCommand& command) {
  Comparison comparison;
  std::vector<ComparedRun>& runs = comparison.runs;
  for (const std::string& folder : command.runs) runs.push_back(read_run(folder));
  add_test_set(command, comparison);
  comparison.differing_keys = differing_keys(runs);
  for (const std::vector<size_t>& group : groups_of(runs)) {
    const size_t seeds = number_of_seeds(runs, group);
    if (seeds < 2) continue;
    comparison.seeds.push_back({.runs = group,
                                .seeds = seeds,
                                .best = spreads_of(runs, group, &ComparedRun::best),
                                .averaged = spreads_of(runs, group, &ComparedRun::averaged)});
  }
  if (runs.front().bleu)
    for (size_t i = 1; i < runs.size(); ++i)
      comparison.significance.push_back(paired_bootstrap(runs[0].counts, runs[i].counts, command.samples));
  return comparison;
}

int compare(const CompareCommand& command, const CLI::App& app) {
  const std::string other = option_beside(app, {"runs", "--json"});
  if (!other.empty() && command.source.empty() && command.reference.empty())
    fail<ConfigError>("{} needs --source and --reference", other);
  if (command.samples < 1 || command.samples > 1000000)
    fail<ConfigError>("--samples {}: needs a number from 1 to 1000000", command.samples);
  const Comparison comparison = compare_runs(command);
  TextOutput out;
  if (command.json) {
    out.line(show_indented(to_json(command, comparison)));
  } else {
    write_table(out, comparison);
    write_groups(out, comparison);
    write_significance(out, command, comparison);
  }
  out.finish();
  return 0;
}

}  // namespace

void add_compare(CLI::App& app) {
  const auto c = std::make_shared<CompareCommand>();
  CLI::App* command = add_command(
      app, "compare", "Compare runs: configuration, size, time, best figures",
      "  attune compare runs/a runs/b\n"
      "  attune compare runs/seed1 runs/seed2 runs/seed3           # mean and spread over seeds\n"
      "  attune compare runs/a runs/b --source test.en --reference test.de   # is the difference of BLEU chance?\n"
      "  attune compare runs/a runs/b --json\n"
      "Runs that differ in train.seed alone are taken together. With --source the test set is translated with each\n"
      "run's model, of a run that has not ended with its best one; the first run is compared with all others by paired "
      "bootstrap (Koehn 2004)",
      [c, &app] { return compare(*c, *app.get_subcommand("compare")); });
  command->add_option("runs", c->runs, "Folders of runs")->required();
  command->add_option("--source", c->source, "Test set to translate, plain or gzip");
  command->add_option("--reference", c->reference, "Its translation, line by line");
  command->add_option("--samples", c->samples, "Test sets that the bootstrap draws")->capture_default_str();
  command->add_flag("--json", c->json, "For programs");
  c->generation.add_to(*command);
}

}  // namespace attune::cli
