#pragma once
// Text in, vectors out.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attune/base/execution.h"
#include "attune/base/fields.h"
#include "attune/tensor/device.h"
#include "attune/text/tokenizer.h"

namespace [[gnu::visibility("default")]] attune {

class OpenedFolder;

/// How the states of a text's tokens become one vector.
///   cls                the state of the first token
///   max                the largest value of each column
///   mean               their mean
///   mean_sqrt_len      their sum over the square root of their number
///   last_token         the state of the last token
enum class TextPooling { cls, max, mean, mean_sqrt_len, last_token };

template <>
struct EnumNames<TextPooling> {
  static constexpr std::pair<TextPooling, const char*> values[] = {{TextPooling::cls, "cls"},
                                                                   {TextPooling::max, "max"},
                                                                   {TextPooling::mean, "mean"},
                                                                   {TextPooling::mean_sqrt_len, "mean_sqrt_len"},
                                                                   {TextPooling::last_token, "last_token"}};
};

/// What a folder says about its embeddings.
struct EmbeddingSettings {
  std::vector<TextPooling> pooling = {TextPooling::mean};  // several: one after the other in the vector
  bool normalize = false;                                  // to length 1
  bool lowercase = false;                                  // texts, before the tokenizer
  int64_t max_tokens = INT64_MAX;                          // of a text, special tokens included: longer ones are cut
  std::map<std::string, std::string> prompts = {};         // by name: what stands in front of texts
  std::string prompt_name = "";                            // the prompt unless a call names another; "": none
  bool pools_prompt = true;                                // false: calls with a prompt are refused
};

struct EmbedOptions {
  std::optional<TextPooling> pooling = {};  // in place of the folder's
  std::optional<bool> normalize = {};
  std::optional<std::string> prompt_name = {};  // of EmbeddingSettings::prompts; "": no prompt
  int64_t batch_texts = 64;                     // the most texts of a batch, and ...
  int64_t batch_tokens = 8192;                  // ... its most tokens; a batch has at least one text

  /// Called with the number of texts that are done: once for those without tokens, if there are any, then after each
  /// batch.
  std::function<void(int64_t done, int64_t total)> progress = {};
  /// Called for a text without tokens, or whose vector is not finite; its result is then empty. Without this function
  /// such a text is a DataError or a NumericError.
  std::function<void(size_t text, const std::string& what)> skip = {};
};

/// An encoder with its tokenizer. Safe to use from several threads at once, copies too: they share the weights and
/// nothing else.
class Embedder {
 public:
  /// From a folder of the Hugging Face hub with an encoder, or one of Attune's with an encoder, a classifier or a model
  /// of masked tokens. modules.json, 1_Pooling/config.json, sentence_bert_config.json and
  /// config_sentence_transformers.json of sentence-transformers are honoured; without them pooling is `mean` and
  /// vectors are not normalised. `precision` and `device`: see SchedulerOptions. Throws FileError, ConfigError or
  /// DeviceError.
  static Embedder load(const std::filesystem::path& folder, ProductPrecision precision = ProductPrecision::float32,
                       const std::optional<Device>& device = {});
  static Embedder load(const OpenedFolder& folder, ProductPrecision precision = ProductPrecision::float32,
                       const std::optional<Device>& device = {});

  /// Returns a vector of dimension() numbers for each text, in the order of the texts; it does not depend on the other
  /// texts. Texts of more than max_tokens() are cut. Throws ConfigError for options that do not fit, DataError naming
  /// the text (counted from 1) that is not valid UTF-8, NumericError naming the one whose vector is not finite.
  std::vector<std::vector<float>> embed(std::span<const std::string> texts, const EmbedOptions& options = {}) const;
  std::vector<std::vector<float>> embed(std::initializer_list<std::string> texts,
                                        const EmbedOptions& options = {}) const;
  std::vector<float> embed(std::string_view text, const EmbedOptions& options = {}) const;
  /// What the model reads of a text, its prompt in front, without spaces and line ends around both, cut where it is too
  /// long. Throws DataError, and ConfigError naming the prompts where there is none of the name that is asked for.
  Encoding encode(std::string_view text, const EmbedOptions& options = {}) const;
  /// The same for several; the DataError names the text, counted from 1.
  std::vector<Encoding> encode(std::span<const std::string> texts, const EmbedOptions& options = {}) const;
  /// embed() for texts as encode() returns them. Throws DataError for one without ids (see EmbedOptions::skip), with
  /// ids that the model does not have, or with more than it reads.
  std::vector<std::vector<float>> embed_encoded(std::span<const Encoding> texts,
                                                const EmbedOptions& options = {}) const;

  int64_t dimension(const EmbedOptions& options = {}) const;
  /// The most tokens of a text that are read, its prompt and special tokens included: as the folder says, or as the
  /// model has positions, whichever is less. Of a longer text the beginning is used; Encoding::cut of encode() says how
  /// many tokens it lost.
  int64_t max_tokens() const;
  const EmbeddingSettings& settings() const;
  const Tokenizer& tokenizer() const;

 private:
  struct Impl;
  explicit Embedder(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

/// Divides a vector by its length, or by 1e-12 if it is shorter, as torch.nn.functional.normalize does.
void normalize(std::vector<float>& vector);

/// Reads modules.json and what it names: the files of sentence-transformers. Without modules.json the defaults hold.
/// Where no file says how long texts may be, "model_max_length" of tokenizer_config.json does.
/// Throws FileError, and ConfigError naming the module or the pooling that is not supported.
EmbeddingSettings read_embedding_settings(const std::filesystem::path& folder);
/// The files of the folder, relative to it, in which modules.json says that its modules are described; some may not be
/// there. Throws as read_embedding_settings() does.
std::vector<std::filesystem::path> embedding_module_files(const std::filesystem::path& folder);
/// Writes what read_embedding_settings() reads, into a folder that is there. `dimension` is the width of a state.
/// Throws FileError.
void write_embedding_settings(const std::filesystem::path& folder, const EmbeddingSettings& settings,
                              int64_t dimension);

}  // namespace attune
