// attune data: tokenises a training text once, and shows what came of it.

#include <fmt/format.h>
#include <algorithm>
#include <chrono>

#include "attune/base/cut_text.h"
#include "attune/base/fail.h"
#include "attune/base/json_fields.h"
#include "attune/cli/command.h"
#include "attune/cli/line_progress.h"
#include "attune/cli/terminal.h"
#include "attune/cli/text_output.h"
#include "attune/models/presets.h"
#include "attune/train/prepare.h"
#include "attune/train/tokenizers.h"

namespace attune::cli {
namespace {

struct PrepareCommand {
  std::string config, preset, out;
  std::vector<std::string> set;
  int64_t shard_tokens = PrepareOptions{}.shard_tokens;
  bool json = false;
};

struct InfoCommand {
  std::string folder;
  bool verify = false, json = false;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// How much of the bytes is done: a bar, or in a log a line for every twentieth of them.
class ByteProgress {
 public:
  explicit ByteProgress(std::string unit) { state_.unit = std::move(unit); }

  /// Throws Interrupted after Ctrl-C. The rate that is shown is `count` a second.
  void show(int64_t bytes, int64_t total, int64_t count, std::vector<std::pair<std::string, std::string>> fields) {
    check_interrupt(&stop_requested());
    state_.done = bytes;
    state_.total = total;
    state_.seconds = seconds_since(start_);
    state_.rate = state_.seconds > 0 ? static_cast<double>(count) / state_.seconds : 0;
    state_.fields = std::move(fields);
    const int64_t part = bytes / std::max<int64_t>(1, total / 20);
    terminal_.progress(state_, part > std::exchange(part_, part));
  }
  double seconds() const { return state_.seconds; }

 private:
  Terminal terminal_;
  ProgressState state_;
  int64_t part_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

Json to_json(const std::string& folder, const PreparedIndex& index) {
  Json json = {{"folder", folder},
               {"kind", enum_name(index.kind)},
               {"texts", index.texts},
               {"tokens", index.tokens()},
               {"target_tokens", index.target_tokens()},
               {"source_vocab", index.source_vocab},
               {"target_vocab", index.target_vocab},
               {"options", index.options},
               {"labels", index.labels},
               {"shards", index.shards.size()},
               {"bytes", index.bytes()},
               {"skipped_long", index.skipped_long},
               {"skipped_empty", index.skipped_empty},
               {"cut", index.cut}};
  json["tokenizers"] = Json::array();
  for (const PreparedTokenizer& t : index.tokenizers)
    json["tokenizers"].push_back({{"file", t.file}, {"sha256", t.sha256}});
  return json;
}

void print(const PreparedIndex& index) {
  TextOutput out;
  const auto line = [&](const char* name, const std::string& value) { out.line(fmt::format("{:<12}{}", name, value)); };
  const bool pairs = index.kind == PreparedKind::pairs;
  line("kind", enum_name(index.kind));
  line("texts", std::to_string(index.texts));
  line("tokens",
       pairs ? fmt::format("{} and {}", index.tokens(), index.target_tokens()) : std::to_string(index.tokens()));
  line("vocabulary",
       pairs ? fmt::format("{} and {}", index.source_vocab, index.target_vocab) : std::to_string(index.source_vocab));
  for (const PreparedTokenizer& t : index.tokenizers) line("tokenizer", t.file + "  sha256 " + t.sha256);
  for (const auto& [field, value] : index.options.items())
    line("option", one_line(fmt::format("data.{} = {}", field, cut_text(show(value), 80))));
  if (!index.labels.empty()) line("labels", one_line(fmt::format("{}", fmt::join(index.labels, ", "))));
  line("left out",
       fmt::format("{} too long, {} empty; {} too long and cut", index.skipped_long, index.skipped_empty, index.cut));
  line("shards", fmt::format("{} of {} bytes together", index.shards.size(), index.bytes()));
  out.finish();
}

void print_json(const Json& json) {
  TextOutput out;
  out.line(show_indented(json));
  out.finish();
}

RunConfig read_config(const PrepareCommand& c) {
  if (c.config.empty() && c.preset.empty() && c.set.empty())
    fail<ConfigError>("a configuration file is needed, for instance examples/demo.toml");
  return read_run_config(c.config, c.set, c.preset);
}

int prepare(const PrepareCommand& c) {
  const RunConfig config = read_config(c);
  catch_stop_signals();
  PreparedIndex index;
  double seconds = 0;
  {
    ByteProgress progress("tok");
    const auto show = [&](const PrepareProgress& p) {
      progress.show(p.bytes, p.total_bytes, p.tokens,
                    {{"tokens", format_count(static_cast<double>(p.tokens))}, {"shards", std::to_string(p.shards)}});
    };
    index = prepare_corpus(config, c.out, {.shard_tokens = c.shard_tokens, .progress = show});
    seconds = progress.seconds();
  }
  if (const std::string note = vocabulary_note(config, index.source_vocab, index.target_vocab); !note.empty())
    write_note(note);
  if (c.json) {
    Json json = to_json(c.out, index);
    json["seconds"] = seconds;
    print_json(json);
  } else {
    print(index);
  }
  return 0;
}

int info(const InfoCommand& c) {
  const PreparedIndex index = read_prepared_index(c.folder);
  open_prepared(c.folder, index);  // throws unless all files are there
  catch_stop_signals();
  if (c.verify) {
    ByteProgress progress("B");
    int64_t done = 0;
    verify_prepared(c.folder, index, [&](int64_t bytes) {
      done += bytes;
      progress.show(done, index.bytes(), done, {});
    });
  }
  if (c.json) {
    Json json = to_json(c.folder, index);
    if (c.verify) json["verified"] = true;
    print_json(json);
    return 0;
  }
  print(index);
  if (c.verify) write_note("every file is as it was written");
  return 0;
}

void add_prepare(CLI::App& parent) {
  const auto c = std::make_shared<PrepareCommand>();
  CLI::App* command = add_command(
      parent, "prepare", "Tokenise the training text of a configuration into shards, for `data.prepared`",
      "  attune data prepare examples/language_model.toml --out prepared --set data.valid_fraction=0 \\\n"
      "      --set data.train_files=books.txt.gz\n"
      "  attune train examples/language_model.toml --out runs/lm --set data.valid_fraction=0 \\\n"
      "      --set data.prepared=prepared --set data.valid_files=valid.txt\n"
      "  attune data prepare run.toml --out prepared --set data.tokenizer=tokenizer.model --json\n"
      "  attune data prepare --out prepared --set data.train_source=news.en --set data.train_target=news.de",
      [c] { return prepare(*c); });
  command->add_option("config", c->config, "Configuration (TOML), as of attune train")->check(CLI::ExistingFile);
  command->add_option("--out", c->out, "Folder to be made, whole or not at all")->required();
  command->add_option("--preset", c->preset, "A configuration of the literature: " + preset_names());
  command->add_option("--set", c->set, "Overrides one key: data.text_unit=line")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  command
      ->add_option("--shard-tokens", c->shard_tokens,
                   "A shard ends with the example that reaches so many; an epoch shuffles within shards")
      ->capture_default_str();
  command->add_flag("--json", c->json, "For programs");
}

void add_info(CLI::App& parent) {
  const auto c = std::make_shared<InfoCommand>();
  CLI::App* command = add_command(parent, "info", "What a prepared folder holds",
                                  "  attune data info prepared\n"
                                  "  attune data info prepared --verify --json",
                                  [c] { return info(*c); });
  command->add_option("folder", c->folder, "Folder of attune data prepare")->required();
  command->add_flag("--verify", c->verify, "Read everything and compare it with the checksums");
  command->add_flag("--json", c->json, "For programs");
}

}  // namespace

void add_data(CLI::App& app) {
  CLI::App* parent = add_command(app, "data", "Prepare text that is larger than memory for training",
                                 "  attune data prepare run.toml --out prepared\n"
                                 "  attune data info prepared\n"
                                 "  attune data COMMAND --help",
                                 {});
  parent->require_subcommand(1);
  add_prepare(*parent);
  add_info(*parent);
}

}  // namespace attune::cli
