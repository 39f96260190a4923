#include "attune/cli/draw/attention_view.h"

#include <fmt/format.h>
#include <algorithm>
#include <iterator>
#include <span>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/hub/open_folder.h"
#include "attune/inference/classifier.h"
#include "attune/inference/text_generator.h"
#include "attune/inference/text_limits.h"
#include "attune/inference/translation_attention.h"
#include "attune/inference/translation_requests.h"
#include "attune/inference/translator.h"
#include "attune/models/decoder_lm.h"
#include "attune/models/encoder_classifier.h"
#include "attune/text/tokenizer.h"

namespace attune::cli {
namespace {

std::vector<std::string> pieces(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  std::vector<std::string> texts;
  for (const int32_t id : ids) texts.push_back(tokenizer.piece(id));
  return texts;
}

PackedTokens one_sequence(const std::vector<int32_t>& ids) {
  return pack_tokens(ids, {0, static_cast<int32_t>(ids.size())});
}

/// `read`: the tokens of a text with those that the model adds.
void check_shown(const AttentionRequest& request, const std::string& name, int64_t read) {
  if (read <= request.most_tokens) return;
  fail<DataError>("{}: the model reads {} tokens, at most {} can be drawn{}", name, read, request.most_tokens,
                  request.most_tokens < kMostTokensOfPage && read <= kMostTokensOfPage
                      ? fmt::format("; attune inspect --attention shows up to {}", kMostTokensOfPage)
                      : "");
}

[[noreturn]] void fail_without_tokens(const std::string& name) {
  fail<DataError>("{}: the sentence has no tokens", name);
}

std::vector<int32_t> read_source(const AttentionRequest& request, const TranslationRequests& requests) {
  check_text(request.text, request.text_name);
  check_shown(request, request.text_name, std::ssize(requests.read_by_encoder(request.text)));
  std::vector<int32_t> source = requests.encode(request.text, request.text_name);
  if (source.empty()) fail_without_tokens(request.text_name);
  return source;
}

/// Greedy: the attention of one hypothesis is to be seen, and the limit keeps the picture legible.
std::vector<int32_t> translate_greedily(const AttentionRequest& request, const Translator& translator) {
  GenerationConfig generation = translator.generation();
  generation.resize_beam(1);
  generation.limit_length(std::min(generation.max_length, request.most_tokens - 1));  // and the start token
  TranslateOptions options;
  options.generation = generation;
  return translator.translate(std::vector{request.text}, options).front().n_best.front().tokens;
}

/// What the decoder reads.
std::vector<int32_t> read_target(const AttentionRequest& request, const Translator& translator,
                                 const TranslationRequests& requests) {
  if (request.target.empty()) return requests.decoder_input(translate_greedily(request, translator));
  std::vector<int32_t> target = requests.decoder_input(request.target, "--target");
  if (translator.target_tokenizer().encode_target(request.target).empty()) fail_without_tokens("--target");
  check_shown(request, "--target", std::ssize(target));
  return target;
}

/// The decoder reads its start token and the target, and each row predicts the next token.
AttentionPage view_translation(const AttentionRequest& request) {
  const Translator translator = Translator::load(request.folder);
  const TranslationRequests requests(translator, {});
  const Tokenizer& target_tokenizer = translator.target_tokenizer();
  const std::vector<int32_t> source = read_source(request, requests);
  const std::vector<int32_t> target = read_target(request, translator, requests);
  const std::string target_text =
      request.target.empty() ? target_tokenizer.decode(std::span(target).subspan(1)) : request.target;

  const TranslationAttention found = translation_attention(translator.model(), source, target);
  const auto source_pieces = pieces(translator.source_tokenizer(), source);
  const auto target_pieces = pieces(target_tokenizer, target);
  const char* const reads_and_predicts = "The decoder has read the tokens up to the row's and predicts the next one.";
  AttentionPage page{.title = "", .texts = {{"Source", request.text}, {"Target", target_text}}, .maps = {}};
  page.maps.push_back(
      {"Encoder self-attention", "source", "source", source_pieces, source_pieces, "", false, found.encoder});
  page.maps.push_back({"Decoder self-attention", "target", "target", target_pieces, target_pieces, reads_and_predicts,
                       true, found.decoder});
  page.maps.push_back(
      {"Cross-attention", "target", "source", target_pieces, source_pieces, reads_and_predicts, false, found.cross});
  return page;
}

AttentionPage view_classification(const AttentionRequest& request) {
  const Classifier classifier = Classifier::load(request.folder);
  check_text(request.text, request.text_name);
  if (classifier.tokenizer().encode(request.text).empty()) fail_without_tokens(request.text_name);
  const Encoding read = classifier.encode(request.text);
  check_shown(request, request.text_name, std::ssize(read.ids) + read.cut);
  if (read.cut > 0)
    fail<DataError>("{}: the text is {} tokens longer than the {} that the model reads", request.text_name, read.cut,
                    classifier.max_tokens());
  const std::vector<int32_t>& ids = read.ids;

  const std::vector<Tensor> weights = classifier.model().encode_with_weights(one_sequence(ids)).weights;
  const std::vector<Classification> result = classifier.classify(std::vector{request.text});
  const LabelProbability& best = result.front().labels.front();
  const auto shown = pieces(classifier.tokenizer(), ids);
  const char* const first = "The first token's state stands for the text when its label is chosen.";
  const bool uses_first = classifier.model().config().pooling == Pooling::first;
  return {.title = "",
          .texts = {{"Text", request.text},
                    {"Label", fmt::format("{} ({:.4f})", classifier.labels()[static_cast<size_t>(best.label)],
                                          best.probability)}},
          .maps = {{"Encoder self-attention", "text", "text", shown, shown, uses_first ? first : "", false, weights}}};
}

AttentionPage view_language_model(const AttentionRequest& request) {
  const TextGenerator generator = TextGenerator::load(request.folder);
  check_text(request.text, request.text_name);
  const std::vector<int32_t> ids = generator.encode_prompt(request.text);
  check_shown(request, request.text_name, std::ssize(ids));
  const int64_t context = generator.model().config().context_length;
  if (static_cast<int64_t>(ids.size()) > context)
    fail<DataError>("{}: the text has {} tokens, the model's context_length is {}", request.text_name, ids.size(),
                    context);
  const DecoderOutput decoded = generator.model().decode_with_weights(one_sequence(ids));
  const auto shown = pieces(generator.tokenizer(), ids);
  return {.title = "",
          .texts = {{"Text", request.text}},
          .maps = {{"Self-attention", "text", "text", shown, shown,
                    "The model has read the tokens up to the row's and predicts the next one.", true,
                    decoded.self_weights}}};
}

AttentionPage view(const AttentionRequest& request, Architecture architecture) {
  if (architecture != Architecture::encoder_decoder && !request.target.empty())
    fail<ConfigError>("--target: a model of architecture \"{}\" does not translate", enum_name(architecture));
  switch (architecture) {
    case Architecture::encoder_classifier:
      return view_classification(request);
    case Architecture::decoder_lm:
      return view_language_model(request);
    case Architecture::encoder_decoder:
      return view_translation(request);
    default:
      fail<ConfigError>(
          "attention of a model of architecture \"{}\" cannot be drawn{}", enum_name(architecture),
          architecture == Architecture::encoder_masked_lm ? "; that of a classifier made from it can" : "");
  }
}

}  // namespace

AttentionPage view_attention(const AttentionRequest& request) {
  const NoGrad no_grad;
  AttentionPage page = view(request, open_config(request.folder).model.architecture);
  page.title = "Attention of " + request.folder;
  return page;
}

}  // namespace attune::cli
