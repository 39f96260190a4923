#include "attune/train/evaluate_file.h"

#include <fmt/format.h>

#include <numbers>
#include <string>
#include <system_error>

#include "attune/base/fail.h"
#include "attune/data/prompts.h"
#include "attune/data/text_stream.h"
#include "attune/ops/linear/precision.h"
#include "attune/text/text_file.h"
#include "attune/text/text_frame.h"
#include "attune/train/evaluate.h"

namespace attune {
namespace {

// What comes through a pipe can be read only once.
void check_regular(const std::filesystem::path& file) {
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(file, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    fail<FileError>("{}: needs a regular file, which is read twice: for its tokens, and for its bytes", file.string());
}

int64_t count_bytes(const std::filesystem::path& file) {
  int64_t bytes = 0;
  TextReader reader(file);
  for (std::string piece; reader.next(piece);) bytes += static_cast<int64_t>(piece.size());
  return bytes;
}

TokenDocuments documents_of(const std::filesystem::path& file, const LanguageModelFolder& model) {
  TokenDocuments documents = load_text(
      {file}, *model.tokenizer, {.unit = model.text_unit, .tokenizer_frames_texts = model.tokenizer_frames_texts});
  // What the tokenizer puts in front of a stream is read and not predicted.
  if (model.text_unit == TextUnit::stream && model.tokenizer_frames_texts)
    if (const auto before = text_frame(*model.tokenizer, true).before.size(); before > 1)
      documents.seconds = {static_cast<int32_t>(before)};
  return documents;
}

}  // namespace

double FileEvaluation::bits_per_byte() const {
  return loss.nll * static_cast<double>(loss.tokens) / std::numbers::ln2 / static_cast<double>(bytes);
}

LoadedWeights weights_to_measure(const OpenedFolder& model, ProductPrecision precision, const Device& device) {
  const bool narrow = precision == ProductPrecision::bfloat16 || model.config().bfloat16_numbers > 0;
  return narrow ? weights_for(precision, device) : LoadedWeights::mapped;
}

FileEvaluation evaluate_file(const OpenedFolder& model, const std::filesystem::path& file,
                             const FileEvaluationOptions& options) {
  check_regular(file);
  const LoadedWeights weights = weights_to_measure(model, options.precision, options.device);
  const LanguageModelFolder files = model.load_language_model(weights, {}, options.device);
  FileEvaluation result;
  result.text_unit = files.text_unit;
  result.context = files.model->config().context_length;
  result.stride = options.stride == 0 ? result.context : options.stride;
  if (result.stride < 1 || result.stride > result.context)
    fail<ConfigError>("stride {}: needs a number from 1 to the model's context of {}", options.stride, result.context);
  const TokenDocuments documents = documents_of(file, files);
  result.documents = documents.documents();
  result.bytes = files.text_unit == TextUnit::answer ? answer_bytes(file) : count_bytes(file);
  const ProductPrecisionScope precision(options.precision);
  const auto place = [&](size_t document) {  // which line it is, the documents do not say
    return files.text_unit == TextUnit::stream ? file.string()
                                               : fmt::format("{}: text {}", file.string(), document + 1);
  };
  result.loss = evaluate(*files.model, documents, result.stride, {.interrupt = options.interrupt, .place = place});
  return result;
}

}  // namespace attune
