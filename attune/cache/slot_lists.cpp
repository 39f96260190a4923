#include "attune/cache/slot_lists.h"

#include <algorithm>
#include <limits>

#include "attune/base/fail.h"

namespace attune {
namespace {

bool can_be_counted(size_t lanes, int64_t capacity) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  return lanes <= static_cast<size_t>(kMost / capacity) && capacity <= kMost;
}

}  // namespace

void SlotLists::check_entries(size_t lanes, int32_t capacity) {
  if (!can_be_counted(lanes, capacity))
    fail<ShapeError>("cache: {} rows of {} tokens are more than it has room for", lanes, capacity);
}

int32_t SlotLists::take_lane() {
  if (!free_lanes_.empty()) {
    const int32_t lane = free_lanes_.back();
    free_lanes_.pop_back();
    lane_users_[static_cast<size_t>(lane)] = 1;
    return lane;
  }
  check_entries(lane_users_.size() + 1, capacity_);
  slots_.resize((lane_users_.size() + 1) * static_cast<size_t>(capacity_));  // first, since it may throw
  lane_users_.push_back(1);
  return static_cast<int32_t>(lane_users_.size()) - 1;
}

int32_t SlotLists::take_slot() {
  if (!free_slots_.empty()) {
    const int32_t slot = free_slots_.back();
    free_slots_.pop_back();
    uses_[static_cast<size_t>(slot)] = 1;
    return slot;
  }
  uses_.push_back(1);
  return static_cast<int32_t>(uses_.size()) - 1;
}

void SlotLists::add_rows(int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const int32_t begin = take_lane() * capacity_;
    begin_.push_back(begin);
    end_.push_back(begin);
  }
}

void SlotLists::reserve(int32_t length) {
  if (length <= capacity_) return;
  const int64_t doubled = 2 * int64_t{capacity_};
  const bool doubles = doubled > length && can_be_counted(lane_users_.size(), doubled);
  const int32_t capacity = doubles ? static_cast<int32_t>(doubled) : length;
  check_entries(lane_users_.size(), capacity);
  std::vector<int32_t> slots(lane_users_.size() * static_cast<size_t>(capacity));
  for (size_t l = 0; l < lane_users_.size(); ++l)
    std::copy_n(slots_.data() + l * static_cast<size_t>(capacity_), capacity_,
                slots.data() + l * static_cast<size_t>(capacity));
  for (size_t r = 0; r < begin_.size(); ++r) {
    const int32_t begin = static_cast<int32_t>(lane(r)) * capacity;
    end_[r] += begin - begin_[r];
    begin_[r] = begin;
  }
  slots_ = std::move(slots);
  capacity_ = capacity;
}

void SlotLists::own_lane(size_t r) {
  const size_t shared = lane(r);
  if (lane_users_[shared] == 1) return;
  const int32_t begin = take_lane() * capacity_;  // may throw: then the row still uses the shared lane
  const int32_t count = end_[r] - begin_[r];
  --lane_users_[shared];
  std::copy_n(slots_.data() + begin_[r], count, slots_.data() + begin);
  begin_[r] = begin;
  end_[r] = begin + count;
}

std::span<const int32_t> SlotLists::extend(std::span<const int32_t> counts) {
  if (counts.size() != begin_.size()) fail<ShapeError>("cache: {} lengths for {} rows", counts.size(), begin_.size());
  int32_t longest = 0;
  for (size_t r = 0; r < counts.size(); ++r) {
    if (counts[r] < 0) fail<ShapeError>("cache: row {} cannot have {} more tokens", r, counts[r]);
    longest = std::max(longest, end_[r] - begin_[r] + counts[r]);
  }
  reserve(longest);
  new_slots_.clear();
  for (size_t r = 0; r < counts.size(); ++r) {
    if (counts[r] > 0) own_lane(r);
    for (int32_t i = 0; i < counts[r]; ++i) {
      // The row's use of its last slot becomes that of the slot that follows.
      new_slots_.push_back(take_slot());
      slots_[static_cast<size_t>(end_[r]++)] = new_slots_.back();
    }
  }
  return new_slots_;
}

void SlotLists::drop_row(size_t r) {
  const size_t l = lane(r);
  for (int32_t i = end_[r]; i > begin_[r]; --i) {
    const int32_t slot = slots_[static_cast<size_t>(i) - 1];
    if (--uses_[static_cast<size_t>(slot)] > 0) break;
    free_slots_.push_back(slot);
  }
  if (--lane_users_[l] == 0) free_lanes_.push_back(static_cast<int32_t>(l));
}

void SlotLists::select(std::span<const int32_t> parents) {
  children_.assign(begin_.size(), 0);
  for (const int32_t parent : parents) {
    if (parent < 0 || parent >= rows()) fail<ShapeError>("cache: row {}, there are {} rows", parent, rows());
    ++children_[static_cast<size_t>(parent)];
  }
  for (size_t r = 0; r < children_.size(); ++r) {
    if (children_[r] == 0) {
      drop_row(r);
      continue;
    }
    lane_users_[lane(r)] += children_[r] - 1;
    if (end_[r] > begin_[r]) uses_[static_cast<size_t>(slots_[static_cast<size_t>(end_[r]) - 1])] += children_[r] - 1;
  }
  next_begin_.clear();
  next_end_.clear();
  for (const int32_t parent : parents) {
    next_begin_.push_back(begin_[static_cast<size_t>(parent)]);
    next_end_.push_back(end_[static_cast<size_t>(parent)]);
  }
  std::swap(begin_, next_begin_);
  std::swap(end_, next_end_);
}

void SlotLists::truncate(int64_t row, int32_t length) {
  if (row < 0 || row >= rows()) fail<ShapeError>("cache: row {}, there are {} rows", row, rows());
  if (length < 0 || length > this->length(row))
    fail<ShapeError>("cache: row {} has {} tokens, cannot keep {}", row, this->length(row), length);
  const auto r = static_cast<size_t>(row);
  while (end_[r] - begin_[r] > length) {
    const auto last = static_cast<size_t>(--end_[r]);
    const int32_t slot = slots_[last];
    if (--uses_[static_cast<size_t>(slot)] == 0) {
      free_slots_.push_back(slot);  // the slot before is used by the row instead of by this one
    } else if (end_[r] > begin_[r]) {
      ++uses_[static_cast<size_t>(slots_[last - 1])];
    }
  }
}

}  // namespace attune
