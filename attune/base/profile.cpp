#include "attune/base/profile.h"

#include <algorithm>
#include <new>
#include <utility>

namespace attune {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_of(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

Profile::Profile(Counter counter)
    : counter_(std::move(counter)), begin_(Clock::now()), scope_([this](Execution& e) { e.profile = this; }) {}

std::vector<ProfileEntry> Profile::entries() const {
  std::vector<ProfileEntry> entries;
  for (const auto& [name, entry] : entries_)
    if (entry.calls > 0) entries.push_back(entry);
  std::ranges::stable_sort(entries, std::ranges::greater{}, &ProfileEntry::seconds);
  return entries;
}

void ProfileScope::begin(std::string_view name, std::string_view suffix) {
  std::string full(name);
  full += suffix;
  entry_ = &profile_->entries_.try_emplace(full, ProfileEntry{.name = full}).first->second;
  outer_ = std::exchange(profile_->innermost_, this);
  if (profile_->counter_) work_at_begin_ = profile_->counter_();
  begin_ = Clock::now();
}

void ProfileScope::end() noexcept {
  const double seconds = seconds_of(Clock::now() - begin_);
  const int64_t work = profile_->counter_ ? profile_->counter_() - work_at_begin_ : 0;
  entry_->calls += 1;
  entry_->seconds += seconds - seconds_within_;
  entry_->work += work - work_within_;
  if (outer_ != nullptr) {
    outer_->seconds_within_ += seconds;
    outer_->work_within_ += work;
  }
  profile_->innermost_ = outer_;
  if (!profile_->keeps_events_) return;
  try {
    profile_->events_.push_back({entry_->name, seconds_of(begin_ - profile_->begin_), seconds, work});
  } catch (const std::bad_alloc&) {  // leaves this event out of the trace
  }
}

}  // namespace attune
