#pragma once

#include <gtest/gtest.h>

#include "tests/train/reverse_task.h"

namespace attune {

/// A text to be reversed, and the configuration of a small model on it.
class ReverseTraining : public ::testing::Test {
 protected:
  OneThread one_thread_;
  TemporaryFolder folder_;
  RunConfig config_ = make_reverse_task(folder_, 200, 20);
};

}  // namespace attune
