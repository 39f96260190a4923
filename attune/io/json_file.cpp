#include "attune/io/json_file.h"

#include <set>
#include <vector>

#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/base/json_fields.h"

namespace attune {
namespace {

constexpr int kMaxDepth = 64;
constexpr size_t kMaxKeys = 4096;  // an ordered object looks keys up one by one, so that many would take quadratic time

}  // namespace

Json parse_json(std::string_view text, const std::string& where) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto check = [&](int depth, Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    if ((event == Event::object_start || event == Event::array_start) && depth >= kMaxDepth)
      fail<FileError>("{}: JSON is nested more than {} levels deep", where, kMaxDepth);
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys.back().insert(key).second) fail<FileError>("{}: JSON has key {} twice", where, in_quotes(key));
      if (keys.back().size() > kMaxKeys)
        fail<FileError>("{}: JSON has more than {} keys in one object", where, kMaxKeys);
    }
    return true;
  };
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos)  // the parser takes it for the end
    fail<FileError>("{}: is not valid JSON at byte {}", where, nul + 1);
  try {
    return Json::parse(text.begin(), text.end(), check);
  } catch (const Json::parse_error& error) {
    fail<FileError>("{}: is not valid JSON at byte {}", where, error.byte);
  } catch (const Json::exception& error) {  // a number that no double holds
    fail<FileError>("{}: is not valid JSON: {}", where, error.what());
  }
}

Json read_json_file(const std::filesystem::path& path, uint64_t max_bytes) {
  return parse_json(read_file(path, max_bytes), path.string());
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

std::string in_quotes(std::string_view text) {
  constexpr size_t kMost = 200;
  const bool cut = text.size() > kMost;
  const std::string shown = show(Json(text.substr(0, kMost)));
  return cut ? shown + "..." : shown;
}

}  // namespace attune
