#include "attune/kernels/rows_by_id.h"

#include <gtest/gtest.h>

namespace attune {
namespace {

TEST(RowsById, KeepTheirOrderAndLeaveOutNegativeIds) {
  const RowsById rows(std::vector<int32_t>{3, -1, 0, 3, 1, 3, 0}, 5);
  EXPECT_EQ(rows.starts, (std::vector<int32_t>{0, 2, 3, 3, 6, 6}));
  EXPECT_EQ(rows.positions, (std::vector<int32_t>{2, 6, 4, 0, 3, 5}));
}

TEST(RowsById, OfNone) {
  const RowsById rows({}, 2);
  EXPECT_EQ(rows.starts, (std::vector<int32_t>{0, 0, 0}));
  EXPECT_TRUE(rows.positions.empty());
}

}  // namespace
}  // namespace attune
