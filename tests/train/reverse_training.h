#pragma once

#include <gtest/gtest.h>

#include "tests/train/reverse_task.h"

namespace attune {

/// A text to be reversed, and the configuration of a small model on it.
class ReverseTraining : public ::testing::Test {
 protected:
  ReverseTraining() {
    write_reverse_text(folder_, "train", 200, 2, 5, 1);
    write_reverse_text(folder_, "valid", 20, 2, 5, 2);
    config_ = reverse_config(folder_);
  }
  OneThread one_thread_;
  TemporaryFolder folder_;
  RunConfig config_;
};

}  // namespace attune
