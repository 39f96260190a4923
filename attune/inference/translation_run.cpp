#include "attune/inference/translation_run.h"

#include <algorithm>

#include "attune/base/fail.h"
#include "attune/base/parallel.h"
#include "attune/inference/batches.h"

namespace attune {
namespace {

const TranslateOptions& checked(const TranslateOptions& options) {
  const auto check = [](const char* field, int64_t value) {
    if (value < 1) fail<ConfigError>("{} = {}: needs a number from 1", field, value);
  };
  check("batch_sentences", options.batch_sentences);
  check("batch_tokens", options.batch_tokens);
  check("max_source_tokens", options.max_source_tokens);
  return options;
}

SpecialIds special_ids(const Tokenizer& t) {
  return {.pad = t.pad_id(), .unk = t.unk_id(), .bos = t.bos_id(), .eos = t.eos_id()};
}

TokenSequences encode_phrases(const char* field, const Tokenizer& tokenizer, const std::vector<std::string>& phrases) {
  TokenSequences ids;
  for (const std::string& phrase : phrases) {
    ids.push_back(tokenizer.encode(phrase));
    if (ids.back().empty()) fail<ConfigError>("{}: \"{}\" has no tokens", field, phrase);
    if (std::find(ids.back().begin(), ids.back().end(), tokenizer.unk_id()) != ids.back().end())
      fail<ConfigError>("{}: \"{}\" has what the target vocabulary does not", field, phrase);
  }
  return ids;
}

BeamSearchOptions search_options(const Translator& translator, const TranslateOptions& options) {
  const Tokenizer& target = translator.target_tokenizer();
  BeamSearchOptions search{.generation = options.generation.value_or(translator.generation()),
                           .n_best = options.n_best,
                           .special = special_ids(target),
                           .banned = encode_phrases("banned", target, options.banned),
                           .alignments = options.alignments,
                           .shortlist = options.shortlist.get()};
  search.validate(target.vocab_size());
  return search;
}

// Threads that each have sentences of their own wait for each other a few times a sentence, threads that share each
// product several times a layer. But a few sentences read the weights once for all of them, where threads would do so
// for each; a single one shares them with nobody.
int64_t searches_at_once(const TranslateOptions& options) {
  constexpr int64_t kLeastBatch = 16;
  return options.batch_sentences > 1 && options.batch_sentences < kLeastBatch ? 1 : thread_count();
}

}  // namespace

TranslationRun::TranslationRun(const Translator& translator, const TranslateOptions& options)
    : translator_(translator),
      options_(checked(options)),
      required_(encode_phrases("required", translator.target_tokenizer(), options.required)),
      search_options_(search_options(translator, options)) {
  for (int64_t i = 0; i < searches_at_once(options); ++i) searches_.emplace_back(translator.model(), search_options_);
}

TranslationRun::Entry TranslationRun::new_entry(const std::string& sentence, size_t number) const {
  const Tokenizer& tokenizer = translator_.source_tokenizer();
  const int64_t most_tokens = translator_.longest_source(options_);
  Entry entry{.source = tokenizer.encode(sentence)};
  if (static_cast<int64_t>(entry.source.size()) > most_tokens)
    fail<DataError>("sentence {}: has {} tokens, at most {} are accepted", number, entry.source.size(), most_tokens);
  if (!entry.source.empty()) entry.source.push_back(tokenizer.eos_id());
  return entry;
}

void TranslationRun::add_constraints(const TranslationConstraints& constraints, size_t number, Entry& entry) const {
  const Tokenizer& tokenizer = translator_.target_tokenizer();
  entry.constraints.required = required_;
  entry.constraints.prefix = tokenizer.encode(constraints.prefix);
  for (auto& phrase : encode_phrases("required", tokenizer, constraints.required))
    entry.constraints.required.push_back(std::move(phrase));
  if (entry.constraints.empty()) return;
  try {
    entry.constraints.validate(search_options_, tokenizer.vocab_size());
  } catch (const ConfigError& error) {
    fail<ConfigError>("sentence {}: {}", number, error.what());
  }
}

void TranslationRun::add(std::span<const std::string> sentences, std::span<const TranslationConstraints> constraints) {
  const size_t first = taken_ + entries_.size();
  std::vector<Entry> entries;
  entries.reserve(sentences.size());
  for (size_t i = 0; i < sentences.size(); ++i) {
    entries.push_back(new_entry(sentences[i], first + i + 1));
    if (!constraints.empty() || !required_.empty())
      add_constraints(constraints.empty() ? TranslationConstraints{} : constraints[i], first + i + 1, entries.back());
  }
  order_.erase(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(next_));
  next_ = 0;
  const auto begin = static_cast<std::ptrdiff_t>(order_.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    entries_.push_back(std::move(entries[i]));
    Entry& e = entries_.back();
    e.done = e.source.empty();
    if (e.done) {
      e.translation.n_best = {ScoredText{}};
      ++done_;
    } else {
      order_.push_back(first + i);
    }
  }
  // So that none that takes long is left to the end.
  std::stable_sort(order_.begin() + begin, order_.end(),
                   [&](size_t a, size_t b) { return entry(a).source.size() > entry(b).source.size(); });
}

int64_t TranslationRun::at_work() const {
  int64_t sentences = 0;
  for (const BatchedSearch& search : searches_) sentences += search.sentences();
  return sentences;
}

// As many as there is room for, once that is a quarter of a search's batch: the encoder reads several at once. Searches
// with room take turns, so that each has long sentences and short ones.
void TranslationRun::enter() {
  struct Batch {
    BatchedSearch* search;
    int64_t tokens;  // of the source, with those that are there
    std::vector<size_t> ids = {};
    bool full = false;
  };
  std::vector<Batch> batches;
  for (BatchedSearch& search : searches_) {
    const int64_t room = options_.batch_sentences - search.sentences();
    if (search.sentences() == 0 || 4 * room >= options_.batch_sentences)
      batches.push_back({.search = &search, .tokens = search.source_tokens()});
  }
  for (bool any = true; any && waiting();) {
    any = false;
    for (Batch& b : batches) {
      if (b.full || !waiting()) continue;
      const auto tokens = static_cast<int64_t>(entry(order_[next_]).source.size());
      const int64_t sentences = b.search->sentences() + static_cast<int64_t>(b.ids.size());
      b.full = sentences == options_.batch_sentences || (sentences > 0 && b.tokens + tokens > options_.batch_tokens);
      if (b.full) continue;
      b.tokens += tokens;
      b.ids.push_back(order_[next_++]);
      any = true;
    }
  }
  std::erase_if(batches, [](const Batch& b) { return b.ids.empty(); });
  parallel_for(static_cast<int64_t>(batches.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      enter(*batches[static_cast<size_t>(i)].search, batches[static_cast<size_t>(i)].ids);
  });
}

void TranslationRun::enter(BatchedSearch& search, std::span<const size_t> ids) {
  std::vector<int32_t> packed, offsets = {0};
  std::vector<SentenceConstraints> constraints;
  for (const size_t id : ids) {
    const Entry& e = entry(id);
    packed.insert(packed.end(), e.source.begin(), e.source.end());
    offsets.push_back(static_cast<int32_t>(packed.size()));
    constraints.push_back(e.constraints);
  }
  search.add(ids, pack_tokens(packed, offsets), constraints);
}

// For a search of one sentence that is done with it, while others go on with theirs.
bool TranslationRun::enter_next(BatchedSearch& search) {
  if (options_.batch_sentences > 1) return false;
  std::unique_lock lock(next_mutex_);
  if (!waiting()) return false;
  const size_t id = order_[next_++];
  lock.unlock();
  enter(search, {&id, 1});
  return true;
}

// Each search on a thread; the last one has all of them.
void TranslationRun::step() {
  enter();
  std::vector<BatchedSearch*> active;
  for (BatchedSearch& search : searches_)
    if (search.sentences() > 0) active.push_back(&search);
  // Until the threads wait for each other.
  const int64_t steps = active.size() == 1 ? 1 : options_.batch_sentences == 1 ? 32 : 8;
  std::vector<std::vector<FoundSentence>> found(active.size());
  parallel_for(static_cast<int64_t>(active.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto at = static_cast<size_t>(i);
      for (int64_t n = 0; n < steps && (active[at]->sentences() > 0 || enter_next(*active[at])); ++n)
        for (FoundSentence& f : active[at]->step()) found[at].push_back(std::move(f));
    }
  });
  for (const std::vector<FoundSentence>& of_search : found) {
    for (const FoundSentence& f : of_search) {
      Entry& e = entry(f.id);
      e.translation = to_text(f.hypotheses, e.source);
      e.done = true;
      ++done_;
    }
  }
}

std::vector<Translation> TranslationRun::take() {
  std::vector<Translation> translations;
  for (; !entries_.empty() && entries_.front().done; ++taken_) {
    translations.push_back(std::move(entries_.front().translation));
    entries_.pop_front();
  }
  return translations;
}

Translation TranslationRun::to_text(const std::vector<Hypothesis>& hypotheses, std::span<const int32_t> source) const {
  const Tokenizer& target = translator_.target_tokenizer();
  Translation translation;
  for (const Hypothesis& h : hypotheses) {
    ScoredText text{.text = target.decode(h.tokens),
                    .score = h.score,
                    .tokens = h.tokens,
                    .finished = h.finished,
                    .token_log_probabilities = h.token_log_probabilities,
                    .log_probability = h.log_probability};
    if (!h.alignment.empty())
      text.alignment = align_words(words_of_tokens(translator_.source_tokenizer(), source.first(source.size() - 1)),
                                   words_of_tokens(target, h.tokens), h.alignment);
    translation.n_best.push_back(std::move(text));
  }
  if (translation.n_best.empty()) translation.n_best.emplace_back();  // a vocabulary of nothing that may be produced
  return translation;
}

}  // namespace attune
