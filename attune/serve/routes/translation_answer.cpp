#include "attune/serve/routes/translation_answer.h"

#include <fmt/format.h>

#include <algorithm>

#include "attune/serve/http/http_error.h"
#include "attune/serve/sentences.h"
#include "attune/text/text_file.h"

namespace attune::serve {

void check_sentences(const std::string& field, int64_t sentences, int64_t most) {
  if (sentences > most) throw HttpError(413, fmt::format("{}: has more than {} sentences", field, most), field);
}

std::string TranslatedText::text(size_t rank) const {
  std::string whole = space_before;
  for (const TranslatedSentence& s : sentences) {
    const auto& candidates = s.translation.n_best;
    whole += candidates[std::min(rank, candidates.size() - 1)].text + s.space_after;
  }
  return whole;
}

TranslationAnswer::TranslationAnswer(const Service& service, std::shared_ptr<Call> call, TranslationRequests requests,
                                     Callbacks callbacks)
    : service_(service), call_(std::move(call)), requests_(std::move(requests)), callbacks_(std::move(callbacks)) {}

// An error of the constraints begins with their field, not with the place of the sentence.
SentenceConstraints TranslationAnswer::encoded(const TranslationConstraints& constraints,
                                               const std::string& place) const {
  try {
    return requests_.encode(constraints, place);
  } catch (const ConfigError& error) {
    const std::string_view message = error.what(), before = place;
    throw ConfigError(std::string(message.starts_with(before) ? message.substr(before.size() + 2) : message));
  }
}

void TranslationAnswer::add_text(const std::string& text, const TranslationConstraints& constraints, bool split,
                                 std::vector<DecodingRequest>& requests) {
  const RequestLimits& limits = service_.config().limits;
  const std::string& field = callbacks_.field;
  const std::string name = fmt::format("{}: text {}", field, texts_.size() + 1);
  check_utf8(text, name);
  const SplitText pieces = split ? split_sentences(text) : SplitText{"", {{text, ""}}};
  TranslatedText& translated = texts_.emplace_back();
  translated.space_before = pieces.space_before;
  for (const Sentence& piece : pieces.sentences) {
    const std::string place = fmt::format("{}, sentence {}", name, translated.sentences.size() + 1);
    const bool first = translated.sentences.empty();
    TranslatedSentence& s = translated.sentences.emplace_back();
    s.source = piece.text;
    s.space_after = piece.space_after;
    s.translation.n_best = {ScoredText{}};
    std::vector<int32_t> source = requests_.encode(s.source, place);
    tokens_in_ += static_cast<int64_t>(source.size());
    check_sentences(field, ++sentences_, limits.texts);
    if (tokens_in_ > limits.tokens)
      throw HttpError(413, fmt::format("{}: has more than {} tokens", field, limits.tokens), field);
    s.done = source.empty();
    if (s.done) continue;
    ++left_;
    DecodingRequest request = requests_.request(source, encoded(first ? constraints : TranslationConstraints{}, place));
    request.cancel = call_->unwanted();
    request.deadline = call_->deadline;
    Place to{texts_.size() - 1, translated.sentences.size() - 1, std::move(source)};
    request.on_done = [self = shared_from_this(), to = std::move(to)](DecodingResult&& result) {
      self->finish(to, result);
    };
    requests.push_back(std::move(request));
  }
}

void TranslationAnswer::start(const std::vector<std::string>& texts,
                              const std::vector<TranslationConstraints>& constraints, bool split) {
  std::vector<DecodingRequest> requests;
  for (size_t i = 0; i < texts.size(); ++i)
    add_text(texts[i], constraints.empty() ? TranslationConstraints{} : constraints[i], split, requests);
  call_->count_tokens(tokens_in_, 0);
  const ServedModel& model = *call_->model;
  if (const auto warning = model.text_style().add(texts)) service_.warn(model.name(), *warning);
  if (requests.empty()) {
    hand_over();
    return callbacks_.on_done(std::move(texts_));
  }
  model.decoder().add(call_->client.name, std::move(requests));
}

// Calls on_sentence in the order of the texts, up to the first sentence that is not done.
void TranslationAnswer::hand_over() {
  if (!callbacks_.on_sentence) return;
  for (; next_text_ < texts_.size(); ++next_text_, next_sentence_ = 0) {
    const auto& sentences = texts_[next_text_].sentences;
    for (; next_sentence_ < sentences.size(); ++next_sentence_) {
      if (!sentences[next_sentence_].done) return;
      callbacks_.on_sentence(next_text_, next_sentence_, sentences[next_sentence_]);
    }
  }
}

void TranslationAnswer::finish(const Place& place, const DecodingResult& result) {
  const std::lock_guard lock(mutex_);
  try {
    if (result.error) std::rethrow_exception(result.error);
    TranslatedSentence& s = texts_[place.text].sentences[place.sentence];
    s.translation = requests_.translation(result, place.source);
    s.done = true;
    call_->count_tokens(0, static_cast<int64_t>(s.translation.n_best.front().tokens.size()));
    if (!failed_) hand_over();
    if (--left_ == 0 && !failed_) callbacks_.on_done(std::move(texts_));
  } catch (...) {
    failed_ = true;
    call_->fail(std::current_exception(), callbacks_.field);
  }
}

}  // namespace attune::serve
