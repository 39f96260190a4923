#include "attune/inference/translation_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "attune/base/fail.h"
#include "attune/base/interrupt.h"
#include "attune/base/parallel.h"

namespace attune {
namespace {

Translation skipped(const std::string& what) {
  Translation translation{.n_best = {ScoredText{}}, .error = what};
  translation.n_best.front().finished = false;
  return translation;
}

}  // namespace

TranslationCall::TranslationCall(const Translator& translator, Scheduler& scheduler, const TranslateOptions& options)
    : requests_(translator, options), client_(scheduler) {
  // Enough for every thread and the next batch, so that other callers have their turn.
  constexpr int64_t kLeastSubmitted = 256, kMostBatch = 1 << 16;
  most_submitted_ = std::max(kLeastSubmitted, 2 * std::min(requests_.batch().sequences, kMostBatch) * thread_count());
}

void TranslationCall::add(const std::string& sentence, const TranslationConstraints& constraints,
                          const std::string& place) {
  const size_t id = taken_ + entries_.size();
  const std::string name = place.empty() ? fmt::format("sentence {}", id + 1) : place;
  Entry entry{.source = requests_.encode(sentence, name)};
  entry.constraints = requests_.encode(constraints, name);
  entry.done = entry.source.empty();
  entry.name = name;
  if (entry.done) entry.translation.n_best = {ScoredText{}};
  add(std::move(entry));
}

void TranslationCall::add_skipped(const std::string& what) {
  add({.translation = skipped(what), .done = true});
}

void TranslationCall::add(Entry entry) {
  const size_t id = taken_ + entries_.size();
  (entry.done ? unreported_ : order_).push_back(id);
  if (entry.done) ++done_;
  entries_.push_back(std::move(entry));
}

// So that none that takes long is left to the end.
void TranslationCall::sort_new() {
  if (first_new_ == order_.size()) return;
  std::stable_sort(order_.begin() + static_cast<std::ptrdiff_t>(first_new_), order_.end(),
                   [&](size_t a, size_t b) { return entry(a).source.size() > entry(b).source.size(); });
  order_.erase(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(next_));
  next_ = 0;
  first_new_ = order_.size();
}

void TranslationCall::submit() {
  sort_new();
  for (; waiting() && client_.outstanding() < most_submitted_; ++next_) {
    Entry& e = entry(order_[next_]);
    auto source = requests_.options().alignments ? e.source : std::move(e.source);
    try {
      client_.submit(order_[next_], requests_.request(std::move(source), std::move(e.constraints)));
    } catch (const TooManyBytes& error) {
      e.failure = fmt::format("{}: {}", e.name, error.what());
      e.too_large = e.done = true;
      if (too_large_.empty()) too_large_ = e.failure;
      ++done_;
    }
  }
}

void TranslationCall::work() {
  submit();
  auto done = client_.work();
  check_interrupt(requests_.options().interrupt);  // then results are cut short
  for (auto& [id, found] : done) {
    if (found.cut_short == FinishReason::interrupted) throw Interrupted();  // by a flag that was reset since
    Entry& e = entry(id);
    try {
      if (found.error) std::rethrow_exception(found.error);
      e.translation = requests_.translation(found, e.source);
      unreported_.push_back(id);
    } catch (const NumericError& error) {
      e.failure = fmt::format("{}: {}", e.name, error.what());
    }
    e.done = true;
    ++done_;
  }
}

void TranslationCall::report() {
  const std::vector<size_t> ids = std::exchange(unreported_, {});
  const auto& on_translation = requests_.options().on_translation;
  if (!on_translation) return;
  for (const size_t id : ids) on_translation(id, entry(id).translation);
}

std::vector<Translation> TranslationCall::take() {
  report();
  std::vector<Translation> translations;
  for (; !entries_.empty() && entries_.front().done && entries_.front().failure.empty(); ++taken_) {
    translations.push_back(std::move(entries_.front().translation));
    entries_.pop_front();
  }
  return translations;
}

const std::string* TranslationCall::failure() const {
  return entries_.empty() || entries_.front().failure.empty() ? nullptr : &entries_.front().failure;
}

void TranslationCall::throw_failure() const {
  const Entry& e = entries_.front();
  if (e.too_large) fail<ConfigError>("{}", e.failure);
  fail<NumericError>("{}", e.failure);
}

void TranslationCall::refuse_too_large() const {
  if (!too_large_.empty()) fail<ConfigError>("{}", too_large_);
}

void TranslationCall::pass_over_failure() {
  Entry& e = entries_.front();
  e.translation = skipped(std::exchange(e.failure, {}));
  unreported_.push_back(taken_);
}

}  // namespace attune
