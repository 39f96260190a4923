#include "attune/io/json_file.h"

#include <nlohmann/json.hpp>

#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/base/git_lfs.h"

namespace attune {

Json read_json_file(const std::filesystem::path& path, uint64_t max_bytes) {
  const std::string text = read_file(path, max_bytes);
  check_is_fetched(text, path.string());
  return parse_json(text, path.string());
}

void write_json_file(const std::filesystem::path& path, const Json& json) {
  std::string text;
  try {
    text = json.dump(2);
  } catch (const Json::exception&) {
    fail<FileError>("{}: a text to be written is not valid UTF-8", path.string());
  }
  write_file(path, text + "\n");
}

}  // namespace attune
