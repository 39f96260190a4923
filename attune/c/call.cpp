#include "attune/c/call.h"

#include <exception>
#include <new>
#include <nlohmann/json.hpp>
#include <utility>

#include "attune/base/interrupt.h"
#include "attune/base/version.h"
#include "attune/inference/option_fields.h"
#include "attune/io/json_file.h"

namespace attune::c {
namespace {

// The thread's last message. "out of memory" is short enough to be stored without allocating.
std::string& last_message() {
  thread_local std::string message;
  return message;
}

attune_status failed(attune_status status, const char* message) noexcept {
  try {
    last_message() = message;
  } catch (const std::bad_alloc&) {
    last_message().clear();
  }
  return status;
}

}  // namespace

attune_status status_of_exception() noexcept {
  try {
    throw;
  } catch (const Interrupted& e) {
    return failed(ATTUNE_INTERRUPTED, e.what());
  } catch (const ArgumentError& e) {
    return failed(ATTUNE_ARGUMENT_ERROR, e.what());
  } catch (const FileError& e) {
    return failed(ATTUNE_FILE_ERROR, e.what());
  } catch (const ConfigError& e) {
    return failed(ATTUNE_CONFIG_ERROR, e.what());
  } catch (const DataError& e) {
    return failed(ATTUNE_DATA_ERROR, e.what());
  } catch (const ShapeError& e) {
    return failed(ATTUNE_SHAPE_ERROR, e.what());
  } catch (const NumericError& e) {
    return failed(ATTUNE_NUMERIC_ERROR, e.what());
  } catch (const CommunicationError& e) {
    return failed(ATTUNE_COMMUNICATION_ERROR, e.what());
  } catch (const std::bad_alloc&) {
    return failed(ATTUNE_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& e) {
    return failed(ATTUNE_OTHER_ERROR, e.what());
  } catch (...) {
    return failed(ATTUNE_OTHER_ERROR, "an exception that is none of the standard library's");
  }
}

std::vector<std::string> texts_of(const char* const* texts, size_t count, const char* name) {
  std::vector<std::string> list;
  if (count > 0) given(texts, name);
  for (size_t i = 0; i < count; ++i) list.emplace_back(&given(texts[i], name));
  return list;
}

const std::atomic<bool>* flag_of(const attune_interrupt* interrupt) {
  return interrupt == nullptr ? nullptr : &interrupt->flag;
}

Json options_of(const char* options) {
  if (options == nullptr) return Json::object();
  try {
    return parse_json(options, "options");
  } catch (const FileError& e) {
    throw ConfigError(e.what());
  }
}

Loading loading_of(const char* options) {
  Json fields = options_of(options);
  AdapterFolders adapters = take_adapters(fields, "options");
  return {.scheduling = load_fields(fields).scheduling, .adapters = std::move(adapters)};
}

const int32_t* tokens_of(const std::vector<int32_t>* tokens, size_t* count) {
  if (count != nullptr) *count = tokens == nullptr ? 0 : tokens->size();
  return tokens == nullptr ? nullptr : tokens->data();
}

}  // namespace attune::c

using namespace attune;
using namespace attune::c;

const char* attune_error_message(void) {
  return last_message().c_str();
}
const char* attune_version(void) {
  return version().data();  // of a literal, so it ends with NUL
}

attune_status attune_interrupt_new(attune_interrupt** interrupt) {
  return guarded([&] {
    auto& out = given(interrupt, "interrupt");
    out = new attune_interrupt;
  });
}
void attune_interrupt_set(attune_interrupt* interrupt) {
  interrupt->flag = true;
}
void attune_interrupt_reset(attune_interrupt* interrupt) {
  interrupt->flag = false;
}
void attune_interrupt_free(attune_interrupt* interrupt) {
  delete interrupt;
}
