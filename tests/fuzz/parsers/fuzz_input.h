#pragma once
// What the fuzz programs share. Each program gives libFuzzer's bytes to one parser, which returns what it read or
// throws attune::Error. Everything else is a finding: another exception, a signal, a sanitizer's report, a timeout,
// memory out of proportion.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include "attune/base/error.h"
#include "tests/support/temporary_folder.h"

namespace attune::fuzz {

/// Calls `parse`, for which attune::Error is an answer like any other. Returns 0, as libFuzzer wants it.
template <class Parse>
int answer(Parse&& parse) {
  try {
    parse();
  } catch (const Error&) {
  }
  return 0;
}

/// Ends the program: what a parser accepted is not what it promises.
inline void require(bool holds) {
  if (!holds) std::abort();
}

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// The parts of an input for a parser that reads several files: they are separated by NUL, and missing ones are empty.
template <size_t parts>
std::array<std::string_view, parts> split(std::string_view input) {
  std::array<std::string_view, parts> result;
  for (size_t i = 0; i < parts; ++i) {
    const size_t end = i + 1 < parts ? input.find('\0') : std::string_view::npos;
    result[i] = input.substr(0, end);
    input = end == std::string_view::npos ? std::string_view() : input.substr(end + 1);
  }
  return result;
}

/// A folder in memory of this process, for parsers that read files.
inline const TemporaryFolder& folder() {
  static const TemporaryFolder here(memory_folder());
  return here;
}

/// Writes a file of folder() and returns its path.
inline std::filesystem::path file(const std::string& name, std::string_view content) {
  std::filesystem::path path = folder() / name;
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

}  // namespace attune::fuzz
