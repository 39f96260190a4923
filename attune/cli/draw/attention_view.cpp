#include "attune/cli/draw/attention_view.h"

#include <fmt/format.h>
#include <algorithm>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/hub/open_folder.h"
#include "attune/inference/classifier.h"
#include "attune/inference/text_generator.h"
#include "attune/inference/translation_attention.h"
#include "attune/inference/translation_requests.h"
#include "attune/inference/translator.h"
#include "attune/models/decoder_lm.h"
#include "attune/models/encoder_classifier.h"
#include "attune/text/text_file.h"
#include "attune/text/tokenizer.h"

namespace attune::cli {
namespace {

constexpr size_t most_tokens_shown = 200;  // of a text

std::vector<std::string> pieces(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  std::vector<std::string> texts;
  for (const int32_t id : ids) texts.push_back(tokenizer.piece(id));
  return texts;
}

PackedTokens one_sequence(const std::vector<int32_t>& ids) {
  return pack_tokens(ids, {0, static_cast<int32_t>(ids.size())});
}

void check_shown(const std::string& name, size_t tokens) {
  if (tokens == 0) fail<DataError>("{}: the sentence has no tokens", name);
  if (tokens > most_tokens_shown)
    fail<DataError>("{}: the sentence has {} tokens, at most {} can be shown", name, tokens, most_tokens_shown);
}

std::vector<int32_t> encode_shown(const Tokenizer& tokenizer, const std::string& name, const std::string& text,
                                  bool target = false) {
  if (!valid_utf8(text)) fail<DataError>("{}: is not valid UTF-8", name);
  std::vector<int32_t> ids = target ? tokenizer.encode_target(text) : tokenizer.encode(text);
  check_shown(name, ids.size());
  return ids;
}

/// Greedy: the attention of one hypothesis is to be seen, and the limit keeps the picture legible.
std::vector<int32_t> translate_greedily(const Translator& translator, const std::string& sentence) {
  GenerationConfig generation = translator.generation();
  generation.beam_size = 1;
  generation.limit_length(std::min<int64_t>(generation.max_length, most_tokens_shown));
  TranslateOptions options;
  options.generation = generation;
  return translator.translate(std::vector{sentence}, options).front().n_best.front().tokens;
}

/// The decoder reads its start token and the target, and each row predicts the next token.
AttentionPage view_translation(const AttentionRequest& request) {
  const Translator translator = Translator::load(request.folder);
  const TranslationRequests requests(translator, {});
  const Tokenizer& target_tokenizer = translator.target_tokenizer();
  encode_shown(translator.source_tokenizer(), request.text_name, request.text);
  const std::vector<int32_t> source = requests.encode(request.text, request.text_name);
  const std::vector<int32_t> output = request.target.empty()
                                          ? translate_greedily(translator, request.text)
                                          : encode_shown(target_tokenizer, "--target", request.target, true);
  const std::vector<int32_t> target =
      request.target.empty() ? requests.decoder_input(output) : requests.decoder_input(request.target, "--target");
  const std::string target_text = request.target.empty() ? target_tokenizer.decode(output) : request.target;

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
  encode_shown(classifier.tokenizer(), request.text_name, request.text);  // throws where it cannot be shown
  const Encoding read = classifier.encode(request.text);
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
  if (!valid_utf8(request.text)) fail<DataError>("{}: is not valid UTF-8", request.text_name);
  const std::vector<int32_t> ids = generator.encode_prompt(request.text);
  check_shown(request.text_name, ids.size());
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
      fail<ConfigError>("attention of a model of architecture \"{}\" cannot be drawn; its classifiers can be drawn",
                        enum_name(architecture));
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
