#pragma once
// The message of an expected error, so that a test can look at what it names.

#include <gtest/gtest.h>

#include <string>

#include "attune/base/error.h"

namespace attune {

/// what() of the E that f() throws; "" and a failed test when it throws none.
template <class E, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return "";
}

}  // namespace attune
