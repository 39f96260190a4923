#include "attune/cache/slot_lists.h"

#include <algorithm>

#include "attune/base/fail.h"

namespace attune {

int32_t SlotLists::take_lane() {
  if (!free_lanes_.empty()) {
    const int32_t lane = free_lanes_.back();
    free_lanes_.pop_back();
    lane_users_[static_cast<size_t>(lane)] = 1;
    return lane;
  }
  lane_users_.push_back(1);
  table_.slots.resize(lane_users_.size() * static_cast<size_t>(capacity_));
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
    table_.begin.push_back(begin);
    table_.end.push_back(begin);
  }
}

void SlotLists::reserve(int32_t length) {
  if (length <= capacity_) return;
  const int32_t capacity = std::max(2 * capacity_, length);
  std::vector<int32_t> slots(lane_users_.size() * static_cast<size_t>(capacity));
  for (size_t l = 0; l < lane_users_.size(); ++l)
    std::copy_n(table_.slots.data() + l * static_cast<size_t>(capacity_), capacity_,
                slots.data() + l * static_cast<size_t>(capacity));
  for (size_t r = 0; r < table_.begin.size(); ++r) {
    const int32_t begin = static_cast<int32_t>(lane(r)) * capacity;
    table_.end[r] += begin - table_.begin[r];
    table_.begin[r] = begin;
  }
  table_.slots = std::move(slots);
  capacity_ = capacity;
}

void SlotLists::own_lane(size_t r) {
  const size_t shared = lane(r);
  if (lane_users_[shared] == 1) return;
  --lane_users_[shared];
  const int32_t begin = take_lane() * capacity_, count = table_.end[r] - table_.begin[r];
  std::copy_n(table_.slots.data() + table_.begin[r], count, table_.slots.data() + begin);
  table_.begin[r] = begin;
  table_.end[r] = begin + count;
}

std::span<const int32_t> SlotLists::extend(std::span<const int32_t> counts) {
  if (counts.size() != table_.begin.size())
    fail<ShapeError>("cache: {} lengths for {} rows", counts.size(), table_.begin.size());
  int32_t longest = 0;
  for (size_t r = 0; r < counts.size(); ++r) {
    if (counts[r] < 0) fail<ShapeError>("cache: row {} cannot have {} more tokens", r, counts[r]);
    longest = std::max(longest, table_.end[r] - table_.begin[r] + counts[r]);
  }
  reserve(longest);
  new_slots_.clear();
  for (size_t r = 0; r < counts.size(); ++r) {
    if (counts[r] > 0) own_lane(r);
    for (int32_t i = 0; i < counts[r]; ++i) {
      // The row's use of its last slot becomes that of the slot that follows.
      new_slots_.push_back(take_slot());
      table_.slots[static_cast<size_t>(table_.end[r]++)] = new_slots_.back();
    }
  }
  return new_slots_;
}

void SlotLists::drop_row(size_t r) {
  const size_t l = lane(r);
  for (int32_t i = table_.end[r]; i > table_.begin[r]; --i) {
    const int32_t slot = table_.slots[static_cast<size_t>(i) - 1];
    if (--uses_[static_cast<size_t>(slot)] > 0) break;
    free_slots_.push_back(slot);
  }
  if (--lane_users_[l] == 0) free_lanes_.push_back(static_cast<int32_t>(l));
}

void SlotLists::select(std::span<const int32_t> parents) {
  children_.assign(table_.begin.size(), 0);
  for (const int32_t parent : parents) {
    if (parent < 0 || parent >= rows()) fail<ShapeError>("cache: row {} of {}", parent, rows());
    ++children_[static_cast<size_t>(parent)];
  }
  for (size_t r = 0; r < children_.size(); ++r) {
    if (children_[r] == 0) {
      drop_row(r);
      continue;
    }
    lane_users_[lane(r)] += children_[r] - 1;
    if (table_.end[r] > table_.begin[r])
      uses_[static_cast<size_t>(table_.slots[static_cast<size_t>(table_.end[r]) - 1])] += children_[r] - 1;
  }
  begin_.clear();
  end_.clear();
  for (const int32_t parent : parents) {
    begin_.push_back(table_.begin[static_cast<size_t>(parent)]);
    end_.push_back(table_.end[static_cast<size_t>(parent)]);
  }
  std::swap(table_.begin, begin_);
  std::swap(table_.end, end_);
}

void SlotLists::truncate(int64_t row, int32_t length) {
  if (row < 0 || row >= rows()) fail<ShapeError>("cache: row {} of {}", row, rows());
  if (length < 0 || length > this->length(row))
    fail<ShapeError>("cache: row {} has {} tokens, cannot keep {}", row, this->length(row), length);
  const auto r = static_cast<size_t>(row);
  while (table_.end[r] - table_.begin[r] > length) {
    const auto last = static_cast<size_t>(--table_.end[r]);
    const int32_t slot = table_.slots[last];
    if (--uses_[static_cast<size_t>(slot)] == 0) {
      free_slots_.push_back(slot);  // the slot before is used by the row instead of by this one
    } else if (table_.end[r] > table_.begin[r]) {
      ++uses_[static_cast<size_t>(table_.slots[last - 1])];
    }
  }
}

}  // namespace attune
