#pragma once
// Text in, labels out.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attune/base/execution.h"
#include "attune/base/interrupt.h"
#include "attune/tensor/device.h"
#include "attune/text/tokenizer.h"

namespace [[gnu::visibility("default")]] attune {

class EncoderClassifier;
struct ClassifierFolder;

/// A label with its probability: the softmax of the logits, or the sigmoid of each logit where several labels may hold
/// or there is one alone. A regression has the logit itself. The model's label_scores says which.
struct LabelProbability {
  int32_t label;  // index into Classifier::labels()
  double probability;
};

struct Classification {
  /// All of them or ClassifyOptions::top, likeliest first and equal ones in the order of the labels.
  std::vector<LabelProbability> labels;
  int64_t cut_tokens = 0;  // tokens that were cut from the end of a text that was too long
};

/// Two texts that are classified together: a question and an answer, a query and a document.
struct TextPair {
  std::string first, second;
};

struct ClassifyOptions {
  std::optional<int64_t> max_tokens = {};  // in place of Classifier::max_tokens()
  int64_t top = 0;                         // labels that a result has; 0: all
  int64_t batch_texts = 64;                // the most texts of a batch, and ...
  int64_t batch_tokens = 8192;             // ... its most tokens; a batch has at least one text

  /// Called with the number of texts that are done: once for those without tokens, if there are any, then after each
  /// batch.
  std::function<void(int64_t done, int64_t total)> progress = {};
  /// Called for a text without tokens, or for which the model's logits are not finite; its result then has no labels.
  /// Without this function such a text is a DataError or a NumericError.
  std::function<void(size_t text, const std::string& what)> skip = {};
  /// Once true, classify() throws Interrupted before the next batch.
  const std::atomic<bool>* interrupt = nullptr;
};

/// A model with its tokenizer. The model reads bos, the text's tokens and eos, or what the tokenizer of a hub folder
/// puts around texts. Safe to use from several threads at once, copies too: they share the weights and nothing else.
class Classifier {
 public:
  /// Takes the model over. Makes the panels of its weights, unless it has them. Throws ConfigError when the tokenizer's
  /// vocabulary is not the model's, and DeviceError. `precision` and `device`: see SchedulerOptions.
  explicit Classifier(ClassifierFolder files, ProductPrecision precision = ProductPrecision::float32,
                      const std::optional<Device>& device = {});

  /// From a model folder. Throws FileError, ConfigError or DeviceError.
  static Classifier load(const std::filesystem::path& folder, ProductPrecision precision = ProductPrecision::float32,
                         const std::optional<Device>& device = {});

  /// Returns the probabilities of the labels for each text, in the order of the texts; those of one text do not depend
  /// on the other texts. An empty text is read as bos and eos. Throws ConfigError for options that do not fit,
  /// DataError naming the text (counted from 1) that is not valid UTF-8, or for which a tokenizer of a hub folder gives
  /// no tokens, NumericError naming the one for which the model's logits are not finite.
  std::vector<Classification> classify(std::span<const std::string> texts, const ClassifyOptions& options = {}) const;
  std::vector<Classification> classify(std::initializer_list<std::string> texts,
                                       const ClassifyOptions& options = {}) const;
  Classification classify(std::string_view text, const ClassifyOptions& options = {}) const;
  /// The same for pairs of texts, in the tokenizer's form for two texts; the longer text is cut first. Throws
  /// ConfigError where the tokenizer has no such form: Attune's own.
  std::vector<Classification> classify(std::span<const TextPair> pairs, const ClassifyOptions& options = {}) const;
  /// What the model reads of a text, or of a pair, cut where it is too long. Throws DataError and ConfigError.
  Encoding encode(std::string_view text, const ClassifyOptions& options = {}) const;
  Encoding encode(const TextPair& pair, const ClassifyOptions& options = {}) const;
  /// classify() for texts as encode() returns them.
  std::vector<Classification> classify_encoded(std::span<const Encoding> texts,
                                               const ClassifyOptions& options = {}) const;
  /// The logits of each text, in the order of the labels. Throws as classify() does.
  std::vector<std::vector<float>> logits(std::span<const Encoding> texts, const ClassifyOptions& options = {}) const;
  /// The probabilities that classify() makes of a text's logits, in the order of the labels.
  std::vector<double> probabilities(std::span<const float> logits) const;

  const std::vector<std::string>& labels() const;
  /// The most tokens of a text that are read, bos and eos included: as many as in training (4,096 for a folder of the
  /// hub), but no more than the model has positions. Of a longer text the beginning is used.
  int64_t max_tokens() const;

  const EncoderClassifier& model() const { return *model_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }

 private:
  /// Calls use(i, logits) for each text in the order of the batches.
  void for_each_row(std::span<const Encoding> texts, const ClassifyOptions& options,
                    const std::function<void(size_t, std::span<const float>)>& use) const;
  int64_t longest(const ClassifyOptions& options) const;  // most tokens of a text; throws ConfigError for bad options

  std::shared_ptr<const EncoderClassifier> model_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  int64_t max_tokens_;
  bool tokenizer_frames_texts_;  // see ClassifierFolder
  ProductPrecision precision_;
};

}  // namespace attune
