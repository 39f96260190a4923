#include "attune/inference/export.h"

#include <array>
#include <utility>

#include "attune/base/atomic_folder.h"
#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/hub/adapter_folder.h"
#include "attune/hub/hub_folder.h"
#include "attune/hub/hub_generation.h"
#include "attune/hub/hub_writer.h"
#include "attune/hub/open_folder.h"
#include "attune/inference/embedder.h"
#include "attune/inference/stored_model.h"
#include "attune/io/json_file.h"
#include "attune/text/huggingface/settings_files.h"
#include "attune/text/huggingface/written_tokenizer.h"
#include "attune/text/sentence_piece_tokenizer.h"
#include "attune/text/tokenizer_files.h"

namespace attune {
namespace {

namespace fs = std::filesystem;

// What is copied of a folder of the hub beside config.json and the weights.
constexpr std::array kOtherFiles = {"generation_config.json",
                                    "tokenizer.json",
                                    huggingface::kSettingsFiles[0],
                                    huggingface::kSettingsFiles[1],
                                    huggingface::kSettingsFiles[2],
                                    "tokenizer.model",
                                    "sentencepiece.bpe.model",
                                    "spiece.model",
                                    "source.spm",
                                    "target.spm",
                                    "vocab.json",
                                    "target_vocab.json",
                                    "vocab.txt",
                                    "merges.txt",
                                    huggingface::kChatTemplate,
                                    huggingface::kToolTemplate,
                                    "chat_template.json",
                                    "modules.json",
                                    "sentence_bert_config.json",
                                    "config_sentence_transformers.json"};

HubWriteOptions write_options(const ExportOptions& options) {
  HubWriteOptions result{.shard_bytes = options.shard_bytes, .before_each = options.before_each};
  if (options.precision) result.dtype = *options.precision == ProductPrecision::bfloat16 ? DType::bf16 : DType::f32;
  return result;
}

// A model with what its folder says, as those who use it load it.
struct Loaded {
  std::unique_ptr<Module> model;
  TokenizerPair tokenizers;
  TextFrame frame;                      // around a text, for Attune's own tokenizers
  bool tokenizer_frames_texts = false;  // tokenizers of the hub know their frame
  std::function<Json(std::vector<std::string>& left_out)> generation = {};
};

Loaded loaded(ModelFolder files) {
  const SpecialIds special = files.target_tokenizer->special_ids();
  return {.model = std::move(files.model),
          .tokenizers = {files.source_tokenizer, files.target_tokenizer},
          .frame = {.before = {}, .after = {special.eos}},
          .generation = [g = files.generation, special](auto& left_out) {
            return hub_generation_of(g, special, left_out);
          }};
}

Loaded loaded(LanguageModelFolder files) {
  const SpecialIds special = files.tokenizer->special_ids();
  TextFrame frame;
  if (files.text_unit != TextUnit::stream) frame.before = {special.bos};
  return {
      .model = std::move(files.model),
      .tokenizers = {files.tokenizer, files.tokenizer},
      .frame = frame,
      .tokenizer_frames_texts = files.tokenizer_frames_texts,
      .generation = [s = files.sampling, special](auto& left_out) { return hub_sampling_of(s, special, left_out); }};
}

template <class Model>
Loaded loaded(EncoderFolderOf<Model> files) {
  const SpecialIds special = files.tokenizer->special_ids();
  return {.model = std::move(files.model),
          .tokenizers = {files.tokenizer, files.tokenizer},
          .frame = {.before = {special.bos}, .after = {special.eos}},
          .tokenizer_frames_texts = files.tokenizer_frames_texts};
}

Loaded load(const OpenedFolder& folder) {
  Loaded files =
      load_by_architecture(folder, LoadedWeights::mapped, [](auto opened) { return loaded(std::move(opened)); });
  if (folder.config().model.architecture == Architecture::encoder_decoder)
    files.tokenizer_frames_texts = folder.hub() != nullptr;
  return files;
}

// The files of Marian's own tokenizer, beside tokenizer.json.
void write_marian_files(const fs::path& folder, const SentencePieceTokenizer& tokenizer) {
  write_file(folder / "vocab.json", huggingface::vocabulary_of(tokenizer).dump());
  write_file(folder / "source.spm", tokenizer.model());
  write_file(folder / "target.spm", tokenizer.model());
}

void write_tokenizers(const fs::path& folder, const Loaded& files, const TransformerConfig& config,
                      std::string_view model_type, std::vector<std::string>& left_out) {
  const Tokenizer& tokenizer = *files.tokenizers.source;
  if (files.tokenizers.target != files.tokenizers.source) {
    left_out.push_back("tokenizers: there is one for each side, and a folder of the hub has one for both");
    return;
  }
  const auto most_tokens = std::min<int64_t>(config.longest_sequence(), 1 << 30);
  if (files.tokenizer_frames_texts ||
      !huggingface::write_tokenizer(folder, tokenizer, {files.frame, most_tokens}, left_out))
    return tokenizer.save(folder / tokenizer.file_name());
  if (model_type == "qwen2")
    left_out.push_back("tokenizer: transformers 5 has bytes in all folders of qwen2, and gives other ids; 4 has these");
  const auto* const pieces = dynamic_cast<const SentencePieceTokenizer*>(&tokenizer);
  if (pieces != nullptr && model_type == "marian") write_marian_files(folder, *pieces);
}

std::vector<std::string> parameter_names(Module& model) {
  std::vector<std::string> names;
  for (const NamedParameter& p : named_parameters(model)) names.push_back(p.name);
  return names;
}

// Throws ConfigError that begins with the folder.
HubForm form_of(const OpenedFolder& folder, const Loaded& files, const std::string& family) {
  SpecialIds special = files.tokenizers.target->special_ids();
  if (folder.hub()) special = special_ids_of(folder.hub()->hub_config(), special);
  try {
    return hub_form_of(stored_config(folder, *files.model), parameter_names(*files.model), special, family);
  } catch (const ConfigError& error) {
    fail<ConfigError>("{}: {}", folder.path().string(), error.what());
  }
}

// A folder that is there and empty gives way.
void remove_empty_folder(const fs::path& out) {
  std::error_code ignored;
  if (fs::is_directory(out, ignored) && fs::is_empty(out, ignored)) fs::remove(out, ignored);
}

ExportedModel copy_hub_folder(const OpenedFolder& source, const fs::path& folder, const ExportOptions& options) {
  const HubFolder& hub = *source.hub();
  hub.check();
  const std::vector<fs::path> of_modules = embedding_module_files(source.path());  // throws for other modules
  ExportedModel done{.family = hub.hub_config().text("model_type"), .class_name = std::string(hub.class_name())};
  const WrittenTensors written = copy_hub_model(source.path(), folder, write_options(options));
  done.parameters = written.numbers;
  done.bytes = written.bytes;
  std::vector<fs::path> others(kOtherFiles.begin(), kOtherFiles.end());
  others.insert(others.end(), of_modules.begin(), of_modules.end());
  for (const fs::path& name : others) {
    const fs::path from = source.path() / name;
    if (!is_there(from)) continue;
    make_directories((folder / name).parent_path());
    write_file(folder / name, read_file(from));
  }
  return done;
}

ExportedModel write_as_hub_folder(const OpenedFolder& source, const fs::path& folder, const ExportOptions& options) {
  const Loaded files = load(source);
  const TransformerConfig config = stored_config(source, *files.model);
  const bool own_family = options.family.empty() && source.hub() != nullptr;  // that of an adapter's base
  HubForm form = form_of(source, files, own_family ? source.hub()->hub_config().text("model_type") : options.family);
  ExportedModel done{.family = std::string(form.hub_class.model_type), .class_name = std::string(form.hub_class.name)};
  const Json generation = files.generation ? files.generation(done.left_out) : Json();
  if (generation.contains("decoder_start_token_id"))  // older versions of transformers read it there
    form.config["decoder_start_token_id"] = generation["decoder_start_token_id"];
  const WrittenTensors written = write_hub_model(folder, *files.model, config, form, write_options(options));
  done.parameters = written.numbers;
  done.bytes = written.bytes;
  if (files.generation) write_json_file(folder / kGenerationConfigFile, generation);
  write_tokenizers(folder, files, config, form.hub_class.model_type, done.left_out);
  for (const char* name : {huggingface::kChatTemplate, huggingface::kToolTemplate})
    if (const fs::path chat = source.path() / name; is_there(chat))
      huggingface::write_settings_file(folder, name, read_file(chat, kMaxTokenizerBytes));
  const bool is_embedder = config.architecture == Architecture::encoder;
  if (is_embedder) write_embedding_settings(folder, read_embedding_settings(source.path()), config.d_model);
  return done;
}

}  // namespace

ExportedModel export_model_folder(const fs::path& model, const fs::path& out, const ExportOptions& options) {
  const OpenedFolder source(model);
  if (source.config().weight_format) refuse_panels(source.path(), "export");
  const bool as_it_is = source.hub() && options.family.empty() && !is_adapter_folder(model);
  remove_empty_folder(out);
  AtomicFolder folder(out);
  ExportedModel done = as_it_is ? copy_hub_folder(source, folder.temporary(), options)
                                : write_as_hub_folder(source, folder.temporary(), options);
  if (options.before_each) options.before_each();
  folder.commit();
  return done;
}

}  // namespace attune
