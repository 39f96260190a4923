#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attune/cache/slot_table.h"

namespace [[gnu::visibility("default")]] attune {

/// For each row of a cache, the slots that it reads, in the order of their positions. Rows that continue the same row
/// share its slots. A slot that no row reads any more is free and is used again, so a cache is no larger than what was
/// in use at one time. In steady state nothing is allocated: rows are reordered by index, a list is copied only when
/// two rows continue one, and adding a slot costs the same for any length of the list.
class SlotLists {
 public:
  int64_t rows() const { return static_cast<int64_t>(begin_.size()); }
  int32_t length(int64_t r) const { return end_[static_cast<size_t>(r)] - begin_[static_cast<size_t>(r)]; }
  /// The slots that each row reads. Valid until the next change.
  SlotTable table() const { return {.slots = slots_, .begin = begin_, .end = end_}; }
  int64_t slots_in_use() const { return static_cast<int64_t>(uses_.size() - free_slots_.size()); }

  /// Appends `count` rows without slots. Throws ShapeError, as the next two do, when the lists of all rows would have
  /// more than 2^31 - 1 entries.
  void add_rows(int64_t count);
  /// Adds counts[r] slots to row r; returns the new ones, row after row, valid until the next call. Throws ShapeError.
  std::span<const int32_t> extend(std::span<const int32_t> counts);
  /// Row r becomes what row parents[r] was: rows may be duplicated, dropped and reordered. Throws ShapeError.
  void select(std::span<const int32_t> parents);
  /// Row r keeps its first `length` slots. Throws ShapeError when it has fewer.
  void truncate(int64_t r, int32_t length);

 private:
  int32_t take_lane();
  static void check_entries(size_t lanes, int32_t capacity);
  int32_t take_slot();
  void drop_row(size_t r);
  void own_lane(size_t r);
  void reserve(int32_t length);
  size_t lane(size_t r) const { return static_cast<size_t>(begin_[r] / capacity_); }

  int32_t capacity_ = 8;                          // entries of a lane
  std::vector<int32_t> slots_;                    // lanes, one after another
  std::vector<int32_t> begin_, end_;              // of each row's list, which begins where a lane begins
  std::vector<int32_t> lane_users_;               // rows that use each lane; a row that grows must be the only one
  std::vector<int32_t> uses_;                     // of each slot: rows that end with it plus slots that follow it
  std::vector<int32_t> free_lanes_, free_slots_;  // the last one is used next
  std::vector<int32_t> children_, next_begin_, next_end_, new_slots_;  // members only to reuse their memory
};

}  // namespace attune
