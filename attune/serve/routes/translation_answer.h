#pragma once
// Texts that are translated sentence by sentence and put together again.

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "attune/inference/translation_requests.h"
#include "attune/serve/service.h"

namespace attune::serve {

struct TranslatedSentence {
  std::string source;
  std::string space_after;
  Translation translation = {};
  bool done = false;
};

struct TranslatedText {
  std::string space_before;
  std::vector<TranslatedSentence> sentences;

  /// The whole text, with the candidate of this rank of each sentence (or its last) and the white space of the source.
  std::string text(size_t rank = 0) const;
};

/// Throws HttpError (413) naming the field where its texts have more sentences than `most`.
void check_sentences(const std::string& field, int64_t sentences, int64_t most);

/// The search for all sentences of a request. It shares its call, and lives as long as there are requests.
class TranslationAnswer : public std::enable_shared_from_this<TranslationAnswer> {
 public:
  struct Callbacks {
    /// Called with each sentence that is done, in the order of the texts; empty: not wanted.
    std::function<void(size_t text, size_t sentence, const TranslatedSentence&)> on_sentence = {};
    /// Called once, unless a sentence fails: then the call has the error as its answer.
    std::function<void(std::vector<TranslatedText>&& texts)> on_done = {};
    std::string field;  // of the request that has the texts, for errors
  };
  TranslationAnswer(const Service& service, std::shared_ptr<Call> call, TranslationRequests requests,
                    Callbacks callbacks);

  /// `constraints`: one for each text, which its first sentence gets, or none. `split`: false takes each text as one
  /// sentence. Throws HttpError and TooManyTokens for texts that are too many or too long.
  void start(const std::vector<std::string>& texts, const std::vector<TranslationConstraints>& constraints, bool split);

 private:
  struct Place {
    size_t text, sentence;
    std::vector<int32_t> source;
  };
  void add_text(const std::string& text, const TranslationConstraints& constraints, bool split,
                std::vector<DecodingRequest>& requests);
  SentenceConstraints encoded(const TranslationConstraints& constraints, const std::string& place) const;
  void finish(const Place& place, const DecodingResult& result);
  void hand_over();

  const Service& service_;
  const std::shared_ptr<Call> call_;
  const TranslationRequests requests_;
  const Callbacks callbacks_;
  int64_t sentences_ = 0, tokens_in_ = 0;
  std::mutex mutex_;  // of what follows, once requests are at work
  std::vector<TranslatedText> texts_;
  size_t left_ = 0;
  size_t next_text_ = 0, next_sentence_ = 0;  // for on_sentence
  bool failed_ = false;
};

}  // namespace attune::serve
