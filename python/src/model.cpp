// Models of every architecture: parameters, states, attention weights, losses.

#include "model.h"

#include <set>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/hub/open_folder.h"
#include "attune/models/build.h"
#include "attune/models/presets.h"
#include "attune/nn/module.h"
#include "attune/text/chat_template.h"
#include "attune/text/tokenizer_files.h"
#include "call.h"

namespace attune::python {
namespace {

[[noreturn]] void refuse(const TransformerConfig& config, const char* what) {
  fail<ConfigError>("{}: a model of architecture \"{}\" has none", what, enum_name(config.architecture));
}

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

// `types` is the number of types that the model has; 0: it ignores them.
void check_type_ids(const TokenLists& ids, const TokenLists& type_ids, int64_t types) {
  if (type_ids.size() != ids.size())
    fail<ShapeError>("type_ids: expected {} sequences, as ids has, found {}", ids.size(), type_ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (type_ids[i].size() != ids[i].size())
      fail<ShapeError>("type_ids: expected {} types for sequence {}, as it has ids, found {}", ids[i].size(), i,
                       type_ids[i].size());
    for (const int32_t type : type_ids[i])
      if (types > 0 && (type < 0 || type >= types))
        fail<DataError>("type_ids: sequence {} has type {}, the model has types 0 to {}", i, type, types - 1);
  }
}

// Guarded by the interpreter's lock. Never destroyed: models may be there until the interpreter's end.
std::set<const Tensor*>& given_parameters() {
  static auto* const given = new std::set<const Tensor*>();
  return *given;
}

TransformerConfig config_from(nb::handle source) {
  TransformerConfig config;
  if (nb::isinstance<nb::str>(source)) return preset_model(find_preset(nb::cast<std::string>(source)));
  const Json json = json_of(source);
  if (json.is_object() && json.contains("architecture"))  // which decides what fields there are
    read_fields(Json{{"architecture", json.at("architecture")}}, config, "config");
  read_fields(json, config, "config");
  config.validate();
  return config;
}

}  // namespace

PackedTokens packed(const TokenLists& lists) {
  std::vector<int32_t> ids, offsets = {0};
  for (const std::vector<int32_t>& list : lists) {
    ids.insert(ids.end(), list.begin(), list.end());
    offsets.push_back(static_cast<int32_t>(ids.size()));
  }
  return pack_tokens(ids, offsets);
}

PythonModel::PythonModel(const std::filesystem::path& folder) {
  const OpenedFolder opened(folder);
  if (opened.config().weight_format) refuse_panels(opened.path(), "attune.Model");
  load_by_architecture(opened, LoadedWeights::mapped, [&](auto files) { take(std::move(files)); });
  if (opened.hub() == nullptr) folder_ = std::filesystem::absolute(opened.path());
  folder_tokenizer_ = source_tokenizer;
}

void PythonModel::take(ModelFolder files) {
  model_ = std::shared_ptr<Transformer>(std::move(files.model));
  source_tokenizer = files.source_tokenizer;
  target_tokenizer = files.target_tokenizer;
  generation_ = files.generation;
}

template <class Folder>
void PythonModel::take(Folder files) {
  using Model = typename decltype(files.model)::element_type;
  model_ = std::shared_ptr<Model>(std::move(files.model));
  source_tokenizer = target_tokenizer = files.tokenizer;
  frames_texts_ = files.tokenizer_frames_texts;
  if constexpr (requires { files.max_tokens; }) max_tokens_ = files.max_tokens;
  if constexpr (requires { files.sampling; }) {
    sampling_ = files.sampling;
    text_unit_ = files.text_unit;
  }
}

PythonModel::PythonModel(const TransformerConfig& config, uint64_t seed) {
  switch (config.architecture) {
    case Architecture::encoder_decoder:
      model_ = std::shared_ptr<Transformer>(build_transformer(config, seed));
      break;
    case Architecture::decoder_lm:
      model_ = std::shared_ptr<DecoderLm>(build_decoder_lm(config, seed));
      break;
    case Architecture::encoder_classifier:
      model_ = std::shared_ptr<EncoderClassifier>(build_encoder_classifier(config, seed));
      break;
    case Architecture::encoder_masked_lm:
      model_ = std::shared_ptr<EncoderMaskedLm>(build_encoder_masked_lm(config, seed));
      break;
    case Architecture::encoder:
      model_ = std::shared_ptr<EncoderModel>(build_encoder_model(config, seed));
      break;
  }
}

Module& PythonModel::module() const {
  return std::visit([](const auto& model) -> Module& { return *model; }, model_);
}

PythonModel::~PythonModel() {
  for (const NamedParameter& p : named_parameters(module())) given_parameters().erase(p.tensor);
}

bool is_model_parameter(const Tensor& tensor) {
  return given_parameters().contains(&tensor);
}

const TransformerConfig& PythonModel::config() const {
  return std::visit([](const auto& model) -> const TransformerConfig& { return model->config(); }, model_);
}

States PythonModel::encode(const TokenLists& ids, const TokenLists& type_ids, bool with_weights) const {
  PackedTokens tokens = packed(ids);
  if (!type_ids.empty()) {
    check_type_ids(ids, type_ids, config().token_types);
    tokens.types = packed(type_ids).ids;
  }
  return std::visit(
      [&](const auto& model) -> States {
        if constexpr (requires { model->encode(tokens); }) {
          if constexpr (requires { model->encode_with_weights(tokens); }) {
            if (with_weights) {
              EncoderOutput output = model->encode_with_weights(tokens);
              return {output.states, tokens.sequences, std::move(output.weights), {}};
            }
          }
          if (with_weights) refuse(config(), "attention=True");
          return {model->encode(tokens), tokens.sequences, {}, {}};
        } else {
          refuse(config(), "encode");
        }
      },
      model_);
}

States PythonModel::decode(const TokenLists& ids, const States* memory, bool with_weights) const {
  const PackedTokens tokens = packed(ids);
  const auto states_of = [&](DecoderOutput output) -> States {
    return {output.states, tokens.sequences, std::move(output.self_weights), std::move(output.cross_weights)};
  };
  return std::visit(Overloaded{
                        [&](const std::shared_ptr<Transformer>& model) -> States {
                          if (memory == nullptr) fail<ConfigError>("decode: needs `memory`, what encode() returned");
                          if (with_weights)
                            return states_of(model->decode_with_weights(memory->states, memory->sequences, tokens));
                          return {model->decode(memory->states, memory->sequences, tokens), tokens.sequences, {}, {}};
                        },
                        [&](const std::shared_ptr<DecoderLm>& model) -> States {
                          if (!with_weights) return {model->decode(tokens), tokens.sequences, {}, {}};
                          States states = states_of(model->decode_with_weights(tokens));
                          states.cross_attention.clear();  // undefined
                          return states;
                        },
                        [&](const auto&) -> States { refuse(config(), "decode"); },
                    },
                    model_);
}

Tensor PythonModel::project(const Tensor& states) const {
  return std::visit(
      [&](const auto& model) -> Tensor {
        if constexpr (requires { model->project(states); })
          return model->project(states);
        else
          refuse(config(), "project");
      },
      model_);
}

Tensor PythonModel::logits(const TokenLists& ids, const std::optional<TokenLists>& target) const {
  return std::visit(
      Overloaded{
          [&](const std::shared_ptr<Transformer>&) -> Tensor {
            if (!target) fail<ConfigError>("logits: needs `target`, what the decoder reads");
            const States memory = encode(ids, {}, false);
            return project(decode(*target, &memory, false).states);
          },
          [&](const std::shared_ptr<DecoderLm>&) -> Tensor { return project(decode(ids, nullptr, false).states); },
          [&](const std::shared_ptr<EncoderClassifier>& model) -> Tensor { return (*model)(packed(ids)); },
          [&](const std::shared_ptr<EncoderMaskedLm>&) -> Tensor { return project(encode(ids, {}, false).states); },
          [&](const auto&) -> Tensor { refuse(config(), "logits"); },
      },
      model_);
}

CrossEntropy PythonModel::loss(const TokenLists& ids, const Indices& labels, const std::optional<TokenLists>& target,
                               const std::optional<std::vector<int32_t>>& rows,
                               const CrossEntropyOptions& options) const {
  const PackedTokens tokens = packed(ids);
  return std::visit(Overloaded{
                        [&](const std::shared_ptr<Transformer>& model) -> CrossEntropy {
                          if (!target) fail<ConfigError>("loss: needs `target`, what the decoder reads");
                          return model->loss(tokens, packed(*target), labels, options);
                        },
                        [&](const std::shared_ptr<EncoderMaskedLm>& model) -> CrossEntropy {
                          if (!rows) fail<ConfigError>("loss: needs `rows`, where the labels' tokens are hidden");
                          for (const int32_t row : *rows)  // gather() would take -1 for a row of zeros
                            if (row < 0 || row >= tokens.sequences.total())
                              fail<DataError>("rows: row {} is not one of the {} tokens", row,
                                              tokens.sequences.total());
                          return model->loss(tokens, *rows, labels, options);
                        },
                        [&](const std::shared_ptr<EncoderModel>&) -> CrossEntropy { refuse(config(), "loss"); },
                        [&](const auto& model) -> CrossEntropy { return model->loss(tokens, labels, options); },
                    },
                    model_);
}

bool PythonModel::frames_texts() const {
  return frames_texts_ && (source_tokenizer == folder_tokenizer_ || source_tokenizer->kind() == "Hugging Face");
}

void PythonModel::save(const std::filesystem::path& folder) const {
  if (!source_tokenizer) fail<ConfigError>("save: the model has no tokenizer; set model.tokenizer before");
  std::visit(Overloaded{
                 [&](const std::shared_ptr<Transformer>& model) {
                   save_model_folder(folder, *model, *source_tokenizer, *target_tokenizer, generation_);
                 },
                 [&](const std::shared_ptr<DecoderLm>& model) {
                   save_model_folder(folder, *model, *source_tokenizer, sampling_, text_unit_, frames_texts());
                   if (!folder_.empty() && source_tokenizer == folder_tokenizer_) copy_chat_template(folder_, folder);
                 },
                 [&](const std::shared_ptr<EncoderClassifier>& model) {
                   save_model_folder(folder, *model, *source_tokenizer, max_tokens_, frames_texts());
                 },
                 [&](const std::shared_ptr<EncoderMaskedLm>& model) {
                   save_model_folder(folder, *model, *source_tokenizer, frames_texts());
                 },
                 [&](const std::shared_ptr<EncoderModel>&) {
                   fail<ConfigError>(
                       "save: an encoder cannot be written, since its folder says how texts are pooled; "
                       "attune.export(FOLDER, OUT) writes the folder that it came from anew");
                 },
             },
             model_);
}

namespace {

void bind_states(nb::module_& m) {
  nb::class_<States>(m, "States", "What a pass over sequences gives. Rows of all sequences stand one after another.")
      .def_ro("states", &States::states, "[tokens, d_model]")
      .def_prop_ro(
          "offsets", [](const States& self) { return self.sequences.offsets(); },
          "Sequence i has the rows offsets[i] to offsets[i + 1].")
      .def_ro("attention", &States::attention,
              "Self-attention's weights of each layer, [sequences, heads, queries, keys], zeros beyond a sequence.")
      .def_ro("cross_attention", &States::cross_attention, "The same of cross-attention, with the source as keys.")
      .def(
          "with_states",
          [](const States& self, const Tensor& states) {
            if (states.shape() != self.states.shape())
              fail<ShapeError>("with_states: expected shape {}, found {}", self.states.shape().text(),
                               states.shape().text());
            States changed = self;
            changed.states = states;
            return changed;
          },
          nb::arg("states"), "The same sequences with other states: those that a computation between made.");
}

std::shared_ptr<const Tokenizer> tokenizer_in(const PythonTokenizer& tokenizer) {
  return tokenizer.tokenizer;
}

std::optional<PythonTokenizer> out_of(const std::shared_ptr<const Tokenizer>& tokenizer, bool target) {
  if (!tokenizer) return {};
  return PythonTokenizer{tokenizer, target};
}

void bind_parameters(nb::class_<PythonModel>& model) {
  model
      .def_prop_ro(
          "config", [](const PythonModel& self) { return object_of(write_fields(self.config())); },
          nb::sig("def config(self) -> dict[str, typing.Any]"), "The fields of config.json.")
      .def_prop_ro("architecture", [](const PythonModel& self) { return enum_name(self.config().architecture); })
      .def_prop_ro("parameter_count", [](const PythonModel& self) { return parameter_count(self.module()); })
      .def(
          "parameters",
          [](nb::handle self) {  // the model's own tensors, not copies: these would not see its later gradients
            nb::dict parameters;
            for (const NamedParameter& p : named_parameters(nb::cast<const PythonModel&>(self).module())) {
              given_parameters().insert(p.tensor);
              parameters[p.name.c_str()] = nb::cast(*p.tensor, nb::rv_policy::reference_internal, self);
            }
            return parameters;
          },
          nb::sig("def parameters(self) -> dict[str, Tensor]"),
          "The parameters by name, which are the model's own: writing to one changes the model. A shared one has one "
          "name.")
      .def(
          "require_gradients", [](const PythonModel& self) { require_gradients(self.module()); },
          "From now on losses have gradients for every parameter that is trained. Those that there are stay.")
      .def("clear_gradients", [](const PythonModel& self) { clear_gradients(self.module()); })
      .def(
          "set_activation_checkpointing",
          [](const PythonModel& self, bool on) { set_activation_checkpointing(self.module(), on); }, nb::arg("on"),
          "On: layers compute activations again in backward(), which takes less memory and more time.")
      .def_prop_rw(
          "tokenizer", [](const PythonModel& self) { return out_of(self.source_tokenizer, false); },
          [](PythonModel& self, const PythonTokenizer& tokenizer) {
            self.source_tokenizer = self.target_tokenizer = tokenizer_in(tokenizer);
          },
          "That of the source, where there are two; None: the model was built and not loaded.")
      .def_prop_rw(
          "target_tokenizer", [](const PythonModel& self) { return out_of(self.target_tokenizer, true); },
          [](PythonModel& self, const PythonTokenizer& tokenizer) { self.target_tokenizer = tokenizer_in(tokenizer); })
      .def(
          "save",
          [](const PythonModel& self, const std::filesystem::path& folder) { unlocked([&] { self.save(folder); }); },
          nb::arg("folder"),
          "Writes a model folder in Attune's format, also where the model came from the Hugging Face hub; "
          "attune.export() makes one for transformers of it. The template of chats goes with the tokenizer: another "
          "tokenizer of the hub brings its own. Throws FileError, and ConfigError for a model without tokenizers and "
          "for an encoder.");
}

}  // namespace

void bind_model(nb::module_& m) {
  bind_states(m);
  nb::class_<PythonModel> model(m, "Model", R"(A model with its parameters, for training and for looking inside.

Model(folder) opens a model folder, Attune's or one of the Hugging Face hub; quantised ones have no parameters.
Sequences are lists of token ids, of any lengths: there is no padding, and results have the rows of all sequences one
after another.

>>> model = Model.build({"architecture": "decoder_lm", "vocab": 20, "d_model": 16, "heads": 2, "layers": 1, "d_ff": 32})
>>> model.logits([[1, 2, 3], [4, 5]]).shape
(5, 20)

Use a model from one thread only.)");
  model
      .def(
          "__init__",
          [](PythonModel* self, const std::filesystem::path& folder) {
            new (self) PythonModel(unlocked([&] { return PythonModel(folder); }));
          },
          nb::arg("folder"))
      .def_static(
          "build",
          [](const nb::object& config, uint64_t seed) {
            const TransformerConfig fields = config_from(config);
            return unlocked([&] { return PythonModel(fields, seed); });
          },
          nb::arg("config"), nb::arg("seed") = 1,
          nb::sig("def build(config: dict[str, typing.Any] | str, seed: int = 1) -> Model"),
          "A new model of the fields of config.json, or of a preset's name (\"gpt2-124m\"), with random parameters.")
      .def(
          "encode",
          [](const PythonModel& self, const TokenLists& ids, const TokenLists& type_ids, bool attention) {
            return unlocked([&] { return self.encode(ids, type_ids, attention); });
          },
          nb::arg("ids"), nb::kw_only(), nb::arg("type_ids") = TokenLists(), nb::arg("attention") = false,
          "The encoder's states of sequences: [tokens, d_model]. attention=True: with the weights of every layer.")
      .def(
          "decode",
          [](const PythonModel& self, const TokenLists& ids, const States* memory, bool attention) {
            return unlocked([&] { return self.decode(ids, memory, attention); });
          },
          nb::arg("ids"), nb::arg("memory") = nb::none(), nb::kw_only(), nb::arg("attention") = false,
          "The decoder's states of sequences, each of which sees the tokens before it. `memory`: what encode() "
          "returned for the sources of an encoder-decoder.")
      .def(
          "project",
          [](const PythonModel& self, const Tensor& states) { return unlocked([&] { return self.project(states); }); },
          nb::arg("states"), "states [..., d_model] -> logits [..., vocabulary].")
      .def(
          "logits",
          [](const PythonModel& self, const TokenLists& ids, const std::optional<TokenLists>& target) {
            return unlocked([&] { return self.logits(ids, target); });
          },
          nb::arg("ids"), nb::arg("target") = nb::none(),
          "Of a classifier [sequences, labels], else [tokens, vocabulary]. `target`: what the decoder of an "
          "encoder-decoder reads.")
      .def(
          "loss",
          [](const PythonModel& self, const TokenLists& ids, const std::vector<int32_t>& labels,
             const std::optional<TokenLists>& target, const std::optional<std::vector<int32_t>>& rows,
             double label_smoothing, int32_t ignore_index) {
            return unlocked([&] {
              return self.loss(ids, labels, target, rows,
                               {.label_smoothing = label_smoothing, .ignore_index = ignore_index, .scale = 0});
            });
          },
          nb::arg("ids"), nb::arg("labels"), nb::arg("target") = nb::none(), nb::kw_only(),
          nb::arg("rows") = nb::none(), nb::arg("label_smoothing") = 0.0, nb::arg("ignore_index") = -1,
          "The mean cross entropy of labels: one for each sequence of a classifier; for each token of `target`, or of "
          "`ids` of a language model, the token that follows; for `rows` of a masked language model, the token that "
          "is hidden there.");
  bind_parameters(model);
}

}  // namespace attune::python
