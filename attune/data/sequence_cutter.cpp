#include "attune/data/sequence_cutter.h"

#include <algorithm>
#include <utility>

#include "attune/base/fail.h"

namespace attune {

SequenceCutter::SequenceCutter(const Tokenizer& tokenizer, int64_t max_tokens, Take take, bool tokenizer_frames_texts)
    : tokenizer_(tokenizer),
      frame_(text_frame(tokenizer, tokenizer_frames_texts)),
      room_(static_cast<size_t>(max_tokens) - frame_.size()),
      take_(std::move(take)) {
  if (max_tokens <= static_cast<int64_t>(frame_.size()))
    fail<ConfigError>("max_tokens = {} leaves no room beside {} special tokens", max_tokens, frame_.size());
}

void SequenceCutter::add(std::span<const int32_t> ids) {
  if (ids.empty()) return;
  if (std::exchange(at_start_, false) && ids.front() == tokenizer_.bos_id()) ids = ids.subspan(1);
  pending_.insert(pending_.end(), ids.begin(), ids.end());
  size_t done = 0;
  // A full part is handed over once one more token is there: that one may be the eos at the end, which is left out.
  for (; pending_.size() - done > room_; done += room_) hand_over(std::span(pending_).subspan(done, room_));
  pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(done));
}

void SequenceCutter::end_document() {
  if (!pending_.empty() && pending_.back() == tokenizer_.eos_id()) pending_.pop_back();
  if (!pending_.empty()) hand_over(pending_);
  pending_.clear();
  at_start_ = true;
}

void SequenceCutter::hand_over(std::span<const int32_t> part) {
  if (std::ranges::all_of(part, [&](int32_t id) { return tokenizer_.special_ids().contains(id); })) {
    ++skipped_;
    return;
  }
  ++sequences_;
  sequence_ = frame_.before;
  sequence_.insert(sequence_.end(), part.begin(), part.end());
  sequence_.insert(sequence_.end(), frame_.after.begin(), frame_.after.end());
  take_(sequence_);
}

}  // namespace attune
