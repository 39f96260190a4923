#include "attune/io/weight_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/base/git_lfs.h"
#include "attune/base/json_fields.h"
#include "attune/io/json_file.h"

namespace attune {
namespace {

constexpr uint64_t kMaxIndexBytes = uint64_t{64} << 20;

// What nlohmann::json::sax_parse calls: no document is built, since an index may have a hundred thousand keys. Outside
// of "weight_map" everything is skipped.
class WeightMapHandler {
 public:
  explicit WeightMapHandler(std::string where) : where_(std::move(where)) {}

  std::map<std::string, std::string> take() {
    if (!found_) fail<FileError>("{}: has no weight_map", where_);
    return std::move(files_);
  }

  bool null() { return plain("null"); }
  bool boolean(bool) { return plain("true or false"); }
  bool number_integer(int64_t) { return plain("a number"); }
  bool number_unsigned(uint64_t) { return plain("a number"); }
  bool number_float(double, const std::string&) { return plain("a number"); }
  bool binary(std::vector<uint8_t>&) { return plain("binary data"); }

  bool string(std::string& file) {
    if (!in_map_) return plain("text");
    check_file(file);
    if (!files_.emplace(name_, std::move(file)).second)
      fail<FileError>("{}: weight_map has {} twice", where_, in_quotes(name_));
    return true;
  }

  bool key(std::string& key) {
    if (in_map_)
      name_ = std::move(key);
    else if (depth_ == 1)
      is_weight_map_ = key == "weight_map";
    return true;
  }

  bool start_object(size_t) {
    if (in_map_) refuse("an object");
    if (depth_ == 1 && is_weight_map_) {
      if (std::exchange(found_, true)) fail<FileError>("{}: has weight_map twice", where_);
      in_map_ = true;
    }
    ++depth_;
    return true;
  }
  bool end_object() {
    --depth_;
    in_map_ = false;  // the map has no objects in it
    return true;
  }
  bool start_array(size_t) {
    if (in_map_ || depth_ == 0 || (depth_ == 1 && is_weight_map_)) refuse("a list");
    ++depth_;
    return true;
  }
  bool end_array() {
    --depth_;
    return true;
  }

  template <class Exception>
  bool parse_error(size_t position, const std::string&, const Exception&) {
    fail<FileError>("{}: is not valid JSON at byte {}", where_, position);
  }

 private:
  [[noreturn]] void refuse(const char* found) const {
    if (in_map_)
      fail<FileError>("{}: weight_map needs the name of a file for {}, found {}", where_, in_quotes(name_), found);
    fail<FileError>("{}: needs an object with a weight_map, found {}", where_, found);
  }

  bool plain(const char* found) const {
    if (in_map_ || depth_ == 0 || (depth_ == 1 && is_weight_map_)) refuse(found);
    return true;
  }

  void check_file(const std::string& file) const {
    const bool plain_name = !file.empty() && file != "." && file != ".." &&
                            file.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
    if (!plain_name)
      fail<FileError>("{}: weight_map says {} for {}, needs the name of a file in the same folder", where_,
                      in_quotes(file), in_quotes(name_));
  }

  std::string where_;
  std::map<std::string, std::string> files_;
  std::string name_;  // the key in weight_map
  int64_t depth_ = 0;
  bool is_weight_map_ = false;  // the last key on the first level
  bool in_map_ = false;
  bool found_ = false;
};

// The number of shards that the name of a shard has at its end, as five digits; nothing for any other name.
std::optional<std::string> shard_total(const std::string& name, const std::string& stem, const std::string& extension) {
  constexpr std::string_view kForm = "-00000-of-00000.";
  if (!name.starts_with(stem) || !name.ends_with(extension)) return std::nullopt;
  if (name.size() != stem.size() + kForm.size() + extension.size()) return std::nullopt;
  const auto has_form = [](char c, char form) { return form == '0' ? c >= '0' && c <= '9' : c == form; };
  const std::string numbers = name.substr(stem.size(), kForm.size());
  if (!std::ranges::equal(numbers, kForm, has_form)) return std::nullopt;
  return numbers.substr(kForm.rfind("00000"), 5);
}

}  // namespace

std::map<std::string, std::string> read_weight_map(const std::filesystem::path& index) {
  const std::string text = read_file(index, kMaxIndexBytes);
  check_is_fetched(text, index.string());
  refuse_nul<FileError>(text, index.string());
  WeightMapHandler handler(index.string());
  nlohmann::json::sax_parse(text.begin(), text.end(), &handler);
  return handler.take();
}

std::vector<std::filesystem::path> find_shards(const std::filesystem::path& folder, const std::string& stem,
                                               const std::string& extension) {
  std::set<std::string> totals;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (auto total = shard_total(entry->path().filename().string(), stem, extension)) totals.insert(*std::move(total));
  }
  if (error && error != std::errc::no_such_file_or_directory)
    fail<FileError>("cannot list {}: {}", folder.string(), error.message());
  if (totals.empty()) return {};
  if (totals.size() > 1)
    fail<FileError>("{}: has shards {}-*-of-{}.{} and {}-*-of-{}.{}, needs one set of them", folder.string(), stem,
                    *totals.begin(), extension, stem, *totals.rbegin(), extension);
  std::vector<std::filesystem::path> shards;
  const int total = std::atoi(totals.begin()->c_str());
  for (int i = 1; i <= total; ++i) {
    shards.push_back(folder / fmt::format("{}-{:05}-of-{:05}.{}", stem, i, total, extension));
    if (!is_there(shards.back()))
      fail<FileError>("{}: is missing, there are other shards of {}", shards.back().string(), total);
  }
  return shards;
}

}  // namespace attune
