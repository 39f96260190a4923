// attune inspect: what a model consists of, what it costs, and where its attention goes.

#include <fmt/format.h>
#include <algorithm>
#include <map>

#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/base/json_fields.h"
#include "attune/cli/command.h"
#include "attune/cli/draw/attention_view.h"
#include "attune/cli/model_description.h"
#include "attune/cli/options/model_argument.h"
#include "attune/cli/text_output.h"
#include "attune/hub/open_folder.h"
#include "attune/io/parameter_file.h"
#include "attune/models/build.h"
#include "attune/models/presets.h"
#include "attune/nn/parameter_places.h"
#include "attune/text/character_tokenizer.h"
#include "attune/train/config.h"

namespace attune::cli {
namespace {

struct InspectCommand {
  std::string what, preset;
  bool json = false, layers = false, parameters = false;
  std::string attention, target, html;
};

struct Inspected {
  std::string name;
  TransformerConfig config;
  ParameterCounts counts;
  CacheCost cache;
  std::optional<WeightFormat> weight_format;  // of a folder of attune quantize
  int64_t bfloat16_numbers = 0;               // of a folder of the hub
  int64_t weight_bytes = 0;
  int64_t moving_averages = 0;  // copies of the weights that training keeps
  std::string note;             // what the numbers rest on
};

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

/// The vocabulary's size: from the configuration, from the tokenizer that it names, or what one will be trained to.
int64_t vocab_of(int64_t configured, const DataConfig& data, const std::string& file_of_side, std::string& note) {
  if (configured > 0) return configured;
  const std::string& file = data.tokenizer.empty() ? file_of_side : data.tokenizer;
  if (!file.empty()) return load_tokenizer(file)->vocab_size();
  if (data.tokenizer_type == TokenizerKind::bytes) return ByteTokenizer().vocab_size();
  note = fmt::format("a vocabulary of data.vocab_size = {}, until the tokenizer is trained", data.vocab_size);
  if (data.tokenizer_type == TokenizerKind::characters)
    note = fmt::format("a vocabulary of data.vocab_size = {}, until the characters are counted", data.vocab_size);
  return data.vocab_size;
}

void complete_from_run(const RunConfig& run, Inspected& inspected) {
  TransformerConfig& model = inspected.config = run.model;
  inspected.moving_averages = run.train.moving_average > 0 ? 1 : 0;
  if (model.architecture == Architecture::encoder_decoder) {
    model.source_vocab = vocab_of(model.source_vocab, run.data, run.data.source_tokenizer, inspected.note);
    model.target_vocab = vocab_of(model.target_vocab, run.data, run.data.target_tokenizer, inspected.note);
    return;
  }
  model.vocab = vocab_of(model.vocab, run.data, "", inspected.note);
  if (model.architecture == Architecture::encoder_classifier && model.labels.empty()) {
    model.labels = model.default_labels();
    if (!model.is_regression())
      inspected.note += std::string(inspected.note.empty() ? "" : "; ") + "two labels, until the training text is read";
  }
}

/// Bytes of so many weights in float32.
int64_t float32_bytes(int64_t parameters) {
  return 4 * parameters;
}
/// The same with their gradients, Adam's two moments and moving averages, all float32; at most the largest number
/// of 64 bits.
int64_t training_bytes(int64_t parameters, int64_t moving_averages) {
  const int64_t weights = float32_bytes(parameters), copies = 4 + moving_averages;
  return weights > INT64_MAX / copies ? INT64_MAX : weights * copies;
}

Inspected read_what(const InspectCommand& command) {
  Inspected inspected;
  inspected.name = command.preset.empty() ? command.what : command.preset;
  if (!command.preset.empty()) {
    inspected.config = preset_model(find_preset(command.preset));
  } else if (is_folder(command.what)) {
    const ConfigFile file = open_config(command.what);
    inspected.config = file.model;
    inspected.weight_format = file.weight_format;
    inspected.bfloat16_numbers = file.bfloat16_numbers;
  } else {
    complete_from_run(read_run_config(command.what), inspected);
  }
  inspected.config.validate();
  inspected.counts = count_parameters(inspected.config);
  inspected.cache = cache_cost(inspected.config);
  inspected.weight_bytes = inspected.weight_format ? file_bytes(std::filesystem::path(command.what) / kParameterFile)
                                                   : float32_bytes(inspected.counts.total());
  inspected.weight_bytes -= 2 * inspected.bfloat16_numbers;
  return inspected;
}

WeightFormat storage_of(const Inspected& inspected) {
  return inspected.weight_format.value_or(inspected.bfloat16_numbers > 0 ? WeightFormat::bfloat16
                                                                         : WeightFormat::float32);
}

struct ListedParameter {
  std::string name;
  Shape shape;
  std::string shared_with;  // the first name of the same numbers, or empty
};

std::vector<ListedParameter> list_parameters(const TransformerConfig& config) {
  const auto model = build_without_values(config);
  std::vector<ListedParameter> parameters;
  std::map<const void*, std::string> names;  // by address
  for (const auto& [name, parameter] : places_of(*model)) {
    if (!parameter->defined()) continue;
    const auto [first, is_new] = names.emplace(address_of(*parameter), name);
    parameters.push_back({name, shape_of(*parameter), is_new ? "" : first->second});
  }
  return parameters;
}

Json layer_json(const ParameterCounts::Layer& layer) {
  Json json = {{"total", layer.total()}, {"self_attention", layer.self_attention}};
  if (layer.cross_attention > 0) json["cross_attention"] = layer.cross_attention;
  json["feed_forward"] = layer.feed_forward;
  json["norms"] = layer.norms;
  return json;
}

Json summary_json(const InspectCommand& command, const Inspected& inspected) {
  const ParameterCounts& n = inspected.counts;
  Json parameters = {{"total", n.total()}};
  if (n.active() < n.total()) parameters["active"] = n.active();
  for (const auto& [name, count] : parts_of(inspected.config, n)) parameters[name] = count;
  if (command.layers) {
    for (const ParameterCounts::Layer& layer : n.encoder_layers) parameters["encoder_layers"] += layer_json(layer);
    for (const ParameterCounts::Layer& layer : n.decoder_layers) parameters["decoder_layers"] += layer_json(layer);
    parameters["final_norms"] = n.final_norms;
  }
  Json json = {{"model", inspected.name},
               {"config", write_fields(inspected.config)},
               {"weights", enum_name(storage_of(inspected))},
               {"parameters", parameters},
               {"memory_bytes", {{"weights", inspected.weight_bytes}}}};
  if (!inspected.weight_format) json["memory_bytes"]["training"] = training_bytes(n.total(), inspected.moving_averages);
  if (command.parameters) {
    for (const ListedParameter& parameter : list_parameters(inspected.config)) {
      Json& listed = json["parameters_by_name"].emplace_back();
      listed = {{"name", parameter.name},
                {"shape", std::vector<int64_t>(parameter.shape.begin(), parameter.shape.end())}};
      if (!parameter.shared_with.empty()) listed["shared_with"] = parameter.shared_with;
    }
  }
  const CacheCost& cache = inspected.cache;
  if (cache.self == 0) return json;
  json["cache_bytes_per_token"] = {{"self_attention", cache.self}};
  if (cache.cross > 0) json["cache_bytes_per_token"]["cross_attention"] = cache.cross;
  json["cache_bytes_per_token"]["multi_head"] = cache.multi_head;
  return json;
}

std::string with_separators(int64_t number) {
  std::string text = std::to_string(number);
  for (auto at = static_cast<int64_t>(text.size()) - 3; at > 0; at -= 3) text.insert(static_cast<size_t>(at), ",");
  return text;
}

std::string bytes_text(int64_t bytes) {
  double size = static_cast<double>(bytes);
  if (bytes < 1024) return fmt::format("{} B", bytes);
  const char* unit = "KiB";
  size /= 1024;
  for (const char* larger : {"MiB", "GiB", "TiB"}) {
    if (size < 1024) break;
    size /= 1024;
    unit = larger;
  }
  return fmt::format("{:.{}f} {}", size, size < 10 ? 2 : size < 100 ? 1 : 0, unit);
}

void write_architecture(TextOutput& out, const TransformerConfig& config) {
  out.line("Architecture");
  for (const auto& [name, value] : describe_architecture(config))
    out.line(fmt::format("  {:<20}{}", name, one_line(value)));
}

void write_layers(TextOutput& out, const char* name, const std::vector<ParameterCounts::Layer>& layers) {
  for (size_t i = 0; i < layers.size(); ++i) {
    const ParameterCounts::Layer& layer = layers[i];
    out.line(fmt::format(
        "  {:<12}{:>14}{:>14}{:>14}{:>10}{:>16}", fmt::format("{} {}", name, i + 1),
        with_separators(layer.self_attention), layer.cross_attention > 0 ? with_separators(layer.cross_attention) : "",
        with_separators(layer.feed_forward), with_separators(layer.norms), with_separators(layer.total())));
  }
}

void write_parameters(TextOutput& out, const Inspected& inspected, bool layers) {
  const ParameterCounts& n = inspected.counts;
  const auto row = [&](std::string name, int64_t count) {
    std::replace(name.begin(), name.end(), '_', ' ');
    out.line(fmt::format("  {:<20}{:>16}  {:>5.1f}%", name, with_separators(count),
                         100.0 * static_cast<double>(count) / static_cast<double>(n.total())));
  };
  out.line("Parameters");
  for (const auto& [name, count] : parts_of(inspected.config, n)) row(name, count);
  row("total", n.total());
  if (n.active() < n.total()) row("for_one_token", n.active());
  if (!layers) return;
  out.line(inspected.config.share_layers ? "Layers, without those that share their parameters" : "Layers");
  const bool with_cross_attention = !n.decoder_layers.empty() && n.decoder_layers.front().cross_attention > 0;
  out.line(fmt::format("  {:<12}{:>14}{:>14}{:>14}{:>10}{:>16}", "", "self-att.",
                       with_cross_attention ? "cross-att." : "", "feed-forward", "norms", "total"));
  write_layers(out, "encoder", n.encoder_layers);
  write_layers(out, "decoder", n.decoder_layers);
  if (n.final_norms > 0)
    out.line(fmt::format("  {:<12}{:>52}{:>16}", "final norms", "", with_separators(n.final_norms)));
}

void write_names(TextOutput& out, const std::vector<ListedParameter>& parameters) {
  size_t width = 0;
  for (const ListedParameter& parameter : parameters) width = std::max(width, parameter.name.size());
  out.line("Parameters by name");
  for (const ListedParameter& parameter : parameters)
    out.line(fmt::format("  {:<{}}  {:>16}{}", parameter.name, width, parameter.shape.text(),
                         parameter.shared_with.empty() ? "" : "  is " + parameter.shared_with));
}

void write_cache(TextOutput& out, const TransformerConfig& config, const CacheCost& cache) {
  const auto row = [&](const char* name, int64_t bytes, const std::string& note) {
    out.line(fmt::format("  {:<20}{:>16}  {}", name, bytes_text(bytes), note));
  };
  const auto compared = [&](int64_t bytes) {
    if (bytes == cache.multi_head) return std::string("as multi-head attention");
    const double ratio = static_cast<double>(cache.multi_head) / static_cast<double>(bytes);
    return fmt::format("{:.3g} times {} than multi-head attention, {}", ratio > 1 ? ratio : 1 / ratio,
                       ratio > 1 ? "less" : "more", bytes_text(cache.multi_head));
  };
  out.line(config.architecture == Architecture::decoder_lm ? "Cache while generating" : "Cache while decoding");
  if (config.architecture == Architecture::decoder_lm) {
    row("for a token", cache.self, compared(cache.self));
    row("for the context", cache.self * config.context_length, fmt::format("{} tokens", config.context_length));
  } else {
    row("for a target token", cache.self, compared(cache.self));
    row("for a source token", cache.cross, compared(cache.cross));
  }
}

void write_costs(TextOutput& out, const Inspected& inspected) {
  const int64_t total = inspected.counts.total();
  const auto row = [&](const char* name, int64_t bytes, const std::string& note) {
    out.line(fmt::format("  {:<20}{:>16}  {}", name, bytes_text(bytes), note));
  };
  out.line("Memory");
  row("weights", inspected.weight_bytes,
      inspected.weight_format
          ? fmt::format("panels in {}, for use without training", enum_name(*inspected.weight_format))
          : enum_name(storage_of(inspected)));
  if (!inspected.weight_format)
    row("training", training_bytes(total, inspected.moving_averages),
        fmt::format("with gradients, Adam's two moments{}, without activations",
                    inspected.moving_averages > 0 ? " and a moving average" : ""));
  if (inspected.cache.self > 0) write_cache(out, inspected.config, inspected.cache);
  if (!inspected.note.empty()) out.line("Note: " + inspected.note);
}

int inspect(const InspectCommand& command) {
  if (command.what.empty() == command.preset.empty())
    fail<ConfigError>("inspect needs a model's folder, a run's configuration or --preset, one of them");
  TextOutput out;
  if (!command.attention.empty()) {
    if (!command.preset.empty())
      fail<ConfigError>("--attention needs a model's folder, --preset {} has no weights", command.preset);
    if (!is_folder(command.what)) fail<ConfigError>("--attention needs a model's folder, {} is none", command.what);
    if (command.json) fail<ConfigError>("--json: --attention writes an HTML page alone");
    if (command.layers) fail<ConfigError>("--layers: --attention writes an HTML page alone");
    if (command.parameters) fail<ConfigError>("--parameters: --attention writes an HTML page alone");
    const AttentionRequest request{
        .folder = command.what, .text = command.attention, .target = command.target, .text_name = "--attention"};
    const std::string file = command.html.empty() ? "attention.html" : command.html;
    check_output(file, {command.what});
    check_writable(file);
    write_file(file, attention_page(view_attention(request)));
    out.line("wrote " + one_line(file));
  } else {
    if (!command.target.empty()) fail<ConfigError>("--target needs --attention");
    if (!command.html.empty()) fail<ConfigError>("--html needs --attention");
    const Inspected inspected = read_what(command);
    if (command.json) {
      out.line(show_indented(summary_json(command, inspected)));
    } else {
      write_architecture(out, inspected.config);
      write_parameters(out, inspected, command.layers);
      if (command.parameters) write_names(out, list_parameters(inspected.config));
      write_costs(out, inspected);
    }
  }
  out.finish();
  return 0;
}

}  // namespace

void add_inspect(CLI::App& app) {
  const auto c = std::make_shared<InspectCommand>();
  CLI::App* command =
      add_command(app, "inspect", "Show what a model consists of and costs, and draw its attention weights",
                  "  attune inspect runs/demo/model\n"
                  "  attune inspect examples/demo.toml --layers\n"
                  "  attune inspect runs/demo/model --parameters\n"
                  "  attune inspect runs/demo/model --json\n"
                  "  attune inspect --preset gpt2-124m\n"
                  "  attune inspect runs/demo/model --attention \"The old dog sleeps.\" --html attention.html",
                  [c] { return inspect(*c); });
  add_model(*command, c->what, "Folder of a model, or configuration (TOML) of a run");
  command->add_option("--preset", c->preset,
                      "A configuration of the literature in place of a model: " + preset_names());
  command->add_flag("--layers", c->layers, "Parameters of every layer");
  command->add_flag("--parameters", c->parameters,
                    "Name and shape of every parameter, for train.freeze and lora.targets");
  command->add_flag("--json", c->json, "For programs; sizes in bytes");
  command->add_option("--attention", c->attention,
                      "Draw the attention weights for this text, the source of a translation");
  command->add_option("--target", c->target, "Its translation [the model's own, greedy]");
  command->add_option("--html", c->html, "File for the drawing [attention.html]");
}

}  // namespace attune::cli
