#pragma once
// What the functions of the C interface share: exceptions become a status, pointers are checked, options are read. The
// options of a function are a struct whose fields are listed as those of configurations are (base/fields.h).

#include <atomic>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "attune/base/error.h"
#include "attune/base/fail.h"
#include "attune/base/json.h"
#include "attune/hub/adapter_folders.h"
#include "attune/inference/decoding/scheduler_options.h"

#pragma GCC visibility push(default)  // other names are hidden, see cmake/AttuneCompiler.cmake
#include "attune/c.h"
#pragma GCC visibility pop

struct attune_interrupt {
  std::atomic<bool> flag = false;
};

namespace attune::c {

/// In a catch block: the status of the exception, whose message is kept for attune_error_message().
attune_status status_of_exception() noexcept;

/// Calls the body. Returns ATTUNE_OK, or the status of the exception that the body throws. This is a template because a
/// std::function of the body may need memory: where there is none, the exception would reach the caller, which is C.
template <class Body>
attune_status guarded(const Body& body) noexcept {
  try {
    body();
    return ATTUNE_OK;
  } catch (...) {
    return status_of_exception();
  }
}

/// A pointer is NULL where none may be.
class ArgumentError : public Error {
 public:
  using Error::Error;
};

/// Returns what the pointer points to. Throws ArgumentError that begins with `name` when it is NULL.
template <class T>
T& given(T* pointer, const char* name) {
  if (pointer == nullptr) fail<ArgumentError>("{} is NULL", name);
  return *pointer;
}

/// `count` texts. Throws ArgumentError when one of the pointers is NULL.
std::vector<std::string> texts_of(const char* const* texts, size_t count, const char* name);

/// The JSON object of a call's options; an empty one for NULL. Throws ConfigError.
Json options_of(const char* options);

/// How a model that decodes is loaded.
struct Loading {
  SchedulerOptions scheduling;
  AdapterFolders adapters;
};
/// Reads the JSON object of a load's options. Throws ConfigError, and DeviceError if the device cannot be used.
Loading loading_of(const char* options);

const std::atomic<bool>* flag_of(const attune_interrupt* interrupt);

/// The element of a list, null where there is none.
template <class T>
const T* element(const std::vector<T>& list, size_t index) {
  return index < list.size() ? &list[index] : nullptr;
}

/// The tokens of a text, and their number in *count; null and 0 where there is no text.
const int32_t* tokens_of(const std::vector<int32_t>* tokens, size_t* count);

inline constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

}  // namespace attune::c
