// attune inspect: what a model consists of, what it costs, and where its attention goes.

#include <algorithm>

#include "attune/autograd/graph.h"
#include "attune/cli/command.h"
#include "attune/cli/heat_map.h"
#include "attune/cli/model_summary.h"
#include "attune/cli/text_output.h"
#include "attune/data/text_file.h"
#include "attune/generate/translator.h"
#include "attune/io/model_folder.h"
#include "attune/io/safetensors.h"
#include "attune/train/config.h"

namespace attune::cli {
namespace {

constexpr size_t most_tokens_shown = 200;  // of a sentence in a heat map

struct InspectCommand {
  std::string what;
  bool json = false, layers = false;
  std::string attention, target, html = "attention.html";
};

struct Inspected {
  TransformerConfig config;
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
  note = fmt::format("vocabularies of data.vocab_size = {}, until the tokenizer is trained", data.vocab_size);
  return data.vocab_size;
}

Inspected read_what(const InspectCommand& command) {
  Inspected inspected;
  if (is_folder(command.what)) {
    inspected.config = read_model_config(command.what);
    check_parameter_file(command.what, inspected.config);
    return inspected;
  }
  const RunConfig run = read_run_config(command.what);
  TransformerConfig& model = inspected.config = run.model;
  model.source_vocab = vocab_of(model.source_vocab, run.data, run.data.source_tokenizer, inspected.note);
  model.target_vocab = vocab_of(model.target_vocab, run.data, run.data.target_tokenizer, inspected.note);
  inspected.moving_averages = run.train.moving_average > 0 ? 1 : 0;
  return inspected;
}

/// Bytes: the weights; with their gradients and Adam's two moments, all float32.
int64_t weight_bytes(int64_t parameters) {
  return 4 * parameters;
}
int64_t training_bytes(int64_t parameters, int64_t moving_averages) {
  return 4 * parameters * (4 + moving_averages);
}

Json layer_json(const ModelSummary::Layer& layer, bool decoder) {
  Json json = {{"total", layer.total()}, {"self_attention", layer.self_attention}};
  if (decoder) json["cross_attention"] = layer.cross_attention;
  json["feed_forward"] = layer.feed_forward;
  json["norms"] = layer.norms;
  return json;
}

Json summary_json(const InspectCommand& command, const Inspected& inspected, const ModelSummary& s) {
  Json parameters = {{"total", s.total()},
                     {"source_embedding", s.source_embedding},
                     {"target_embedding", s.target_embedding},
                     {"encoder", s.encoder()},
                     {"decoder", s.decoder()},
                     {"projection", s.projection}};
  if (command.layers) {
    parameters["encoder_layers"] = Json(static_cast<size_t>(s.layers), layer_json(s.encoder_layer, false));
    parameters["decoder_layers"] = Json(static_cast<size_t>(s.layers), layer_json(s.decoder_layer, true));
    parameters["final_norm"] = s.final_norm;
  }
  return {{"model", command.what},
          {"config", write_fields(inspected.config)},
          {"parameters", parameters},
          {"memory_bytes",
           {{"weights", weight_bytes(s.total())}, {"training", training_bytes(s.total(), inspected.moving_averages)}}},
          {"cache_bytes_per_token",
           {{"self_attention", s.self_cache_bytes},
            {"cross_attention", s.cross_cache_bytes},
            {"multi_head", s.standard_cache_bytes}}}};
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

std::string attention_text(const AttentionKind& kind, int64_t d_model) {
  if (const auto* latent = std::get_if<MultiHeadLatent>(&kind))
    return fmt::format("latent, {} numbers a token", latent_dim(*latent, d_model));
  return std::get<MultiHead>(kind).bias ? "multi-head" : "multi-head without biases";
}

void write_architecture(TextOutput& out, const TransformerConfig& c) {
  const auto row = [&](const char* name, const std::string& value) {
    out.line(fmt::format("  {:<20}{}", name, value));
  };
  out.line("Architecture");
  row("layers", fmt::format("{} encoder, {} decoder", c.layers, c.layers));
  row("d_model", std::to_string(c.d_model));
  row("heads", fmt::format("{} of {}", c.heads, c.d_model / c.heads));
  row("d_ff", fmt::format("{}, {}", c.d_ff, enum_name(c.activation)));
  row("encoder attention", attention_text(c.encoder_attention, c.d_model));
  row("decoder attention", attention_text(c.decoder_attention, c.d_model));
  row("cross attention", attention_text(c.cross_attention, c.d_model));
  row("norm", fmt::format("{}, {}{}", enum_name(c.norm), enum_name(c.layer_norm),
                          c.norm == NormPlacement::pre && c.final_norm ? ", final" : ""));
  row("vocabularies", fmt::format("{} source, {} target", c.source_vocab, c.target_vocab));
  std::string shared = c.share_embeddings ? "source and target embedding" : "";
  if (c.share_projection) shared += (shared.empty() ? "" : ", ") + std::string("target embedding and projection");
  row("shared", shared.empty() ? "nothing" : shared);
}

void write_parameters(TextOutput& out, const ModelSummary& s, bool layers) {
  const auto row = [&](const std::string& name, int64_t count) {
    out.line(fmt::format("  {:<20}{:>16}  {:>5.1f}%", name, with_separators(count),
                         100.0 * static_cast<double>(count) / static_cast<double>(s.total())));
  };
  out.line("Parameters");
  row("source embedding", s.source_embedding);
  row("target embedding", s.target_embedding);
  row("encoder", s.encoder());
  row("decoder", s.decoder());
  row("projection", s.projection);
  row("total", s.total());
  if (!layers) return;
  out.line("Layers");
  out.line(fmt::format("  {:<12}{:>14}{:>14}{:>14}{:>10}{:>16}", "", "self-att.", "cross-att.", "feed-forward", "norms",
                       "total"));
  const auto stack = [&](const char* name, const ModelSummary::Layer& layer) {
    for (int64_t i = 0; i < s.layers; ++i)
      out.line(fmt::format("  {:<12}{:>14}{:>14}{:>14}{:>10}{:>16}", fmt::format("{} {}", name, i),
                           with_separators(layer.self_attention),
                           layer.cross_attention > 0 ? with_separators(layer.cross_attention) : "",
                           with_separators(layer.feed_forward), with_separators(layer.norms),
                           with_separators(layer.total())));
    if (s.final_norm > 0)
      out.line(fmt::format("  {:<12}{:>52}{:>16}", fmt::format("{} norm", name), "", with_separators(s.final_norm)));
  };
  stack("encoder", s.encoder_layer);
  stack("decoder", s.decoder_layer);
}

void write_costs(TextOutput& out, const Inspected& inspected, const ModelSummary& s) {
  const auto row = [&](const char* name, int64_t bytes, const std::string& note) {
    out.line(fmt::format("  {:<20}{:>16}  {}", name, bytes_text(bytes), note));
  };
  out.line("Memory");
  row("weights", weight_bytes(s.total()), "float32");
  row("training", training_bytes(s.total(), inspected.moving_averages),
      fmt::format("with gradients, Adam's two moments{}, without activations",
                  inspected.moving_averages > 0 ? " and a moving average" : ""));
  const auto compared = [&](int64_t bytes) {
    if (bytes == s.standard_cache_bytes) return std::string("as multi-head attention");
    const double ratio = static_cast<double>(s.standard_cache_bytes) / static_cast<double>(bytes);
    return fmt::format("{:.3g} times {} than multi-head attention, {}", ratio > 1 ? ratio : 1 / ratio,
                       ratio > 1 ? "less" : "more", bytes_text(s.standard_cache_bytes));
  };
  out.line("Cache while decoding");
  row("for a target token", s.self_cache_bytes, compared(s.self_cache_bytes));
  row("for a source token", s.cross_cache_bytes, compared(s.cross_cache_bytes));
  if (!inspected.note.empty()) out.line("Note: " + inspected.note);
}

std::vector<std::string> pieces(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  std::vector<std::string> texts;
  for (const int32_t id : ids) texts.push_back(tokenizer.piece(id));
  return texts;
}

PackedTokens one_sequence(const std::vector<int32_t>& ids) {
  return pack_tokens(ids, {0, static_cast<int32_t>(ids.size())});
}

std::vector<int32_t> encode_shown(const Tokenizer& tokenizer, const char* option, const std::string& text) {
  if (!valid_utf8(text)) fail<DataError>("{}: is not valid UTF-8", option);
  const std::vector<int32_t> ids = tokenizer.encode(text);
  if (ids.empty()) fail<DataError>("{}: the sentence has no tokens", option);
  if (ids.size() > most_tokens_shown)
    fail<DataError>("{}: the sentence has {} tokens, at most {} can be shown", option, ids.size(), most_tokens_shown);
  return ids;
}

/// Greedy: the attention of one hypothesis is to be seen, and the limit keeps the picture legible.
std::vector<int32_t> translate_greedily(const Translator& translator, const std::string& sentence) {
  GenerationConfig generation = translator.generation();
  generation.beam_size = 1;
  generation.max_length = std::min<int64_t>(generation.max_length, most_tokens_shown);
  TranslateOptions options;
  options.generation = generation;
  return translator.translate(std::vector{sentence}, options).front().n_best.front().tokens;
}

/// The weights of a teacher-forced pass: the decoder reads bos and the target, and each row predicts the next token.
AttentionPage look_at_attention(const InspectCommand& command) {
  const Translator translator = Translator::load(command.what);
  const Tokenizer& source_tokenizer = translator.source_tokenizer();
  const Tokenizer& target_tokenizer = translator.target_tokenizer();
  std::vector<int32_t> source = encode_shown(source_tokenizer, "--attention", command.attention);
  std::vector<int32_t> target = command.target.empty() ? translate_greedily(translator, command.attention)
                                                       : encode_shown(target_tokenizer, "--target", command.target);
  const std::string target_text = target_tokenizer.decode(target);
  source.push_back(source_tokenizer.eos_id());
  target.insert(target.begin(), target_tokenizer.bos_id());

  const NoGrad no_grad;
  TransformerWeights weights;
  const PackedTokens packed_source = one_sequence(source);
  const Tensor memory = translator.model().encode(packed_source, &weights);
  translator.model().decode(memory, packed_source.sequences, one_sequence(target), &weights);
  const auto source_pieces = pieces(source_tokenizer, source), target_pieces = pieces(target_tokenizer, target);
  const char* const reads_and_predicts = "The decoder has read the tokens up to the row's and predicts the next one.";
  AttentionPage page{.title = "Attention of " + command.what,
                     .source = command.attention,
                     .target = command.target.empty() ? target_text : command.target,
                     .maps = {}};
  page.maps.push_back(
      {"Encoder self-attention", "source", "source", source_pieces, source_pieces, "", false, weights.encoder});
  page.maps.push_back({"Decoder self-attention", "target", "target", target_pieces, target_pieces, reads_and_predicts,
                       true, weights.decoder.self});
  page.maps.push_back({"Cross-attention", "target", "source", target_pieces, source_pieces, reads_and_predicts, false,
                       weights.decoder.cross});
  return page;
}

int inspect(const InspectCommand& command) {
  TextOutput out;
  if (!command.attention.empty()) {
    if (!is_folder(command.what)) fail<ConfigError>("--attention needs a model's folder, {} is none", command.what);
    write_file(command.html, attention_page(look_at_attention(command)));
    out.line("wrote " + command.html);
  } else {
    if (!command.target.empty()) fail<ConfigError>("--target needs --attention");
    const Inspected inspected = read_what(command);
    const ModelSummary summary = summarize(inspected.config);
    if (command.json) {
      out.line(summary_json(command, inspected, summary).dump(2, ' ', false, Json::error_handler_t::replace));
    } else {
      write_architecture(out, inspected.config);
      write_parameters(out, summary, command.layers);
      write_costs(out, inspected, summary);
    }
  }
  out.finish();
  return 0;
}

}  // namespace

void add_inspect(CLI::App& app) {
  const auto c = std::make_shared<InspectCommand>();
  CLI::App* command =
      add_command(app, "inspect", "Say what a model consists of and costs, and draw its attention weights",
                  "  attune inspect runs/demo/model\n"
                  "  attune inspect examples/demo.toml --layers\n"
                  "  attune inspect runs/demo/model --json\n"
                  "  attune inspect runs/demo/model --attention \"The old dog sleeps.\" --html attention.html",
                  [c] { return inspect(*c); });
  command->add_option("model", c->what, "Folder of a model, or configuration (TOML) of a run")->required();
  command->add_flag("--layers", c->layers, "Parameters of every layer");
  command->add_flag("--json", c->json, "For programs; sizes in bytes");
  command->add_option("--attention", c->attention, "Draw the attention weights for this source sentence");
  command->add_option("--target", c->target, "Its translation [the model's own, greedy]");
  command->add_option("--html", c->html, "File for the drawing")->capture_default_str();
}

}  // namespace attune::cli
