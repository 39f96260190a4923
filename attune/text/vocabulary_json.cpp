#include "attune/text/vocabulary_json.h"

#include <algorithm>
#include <set>

#include "attune/base/fail.h"
#include "attune/base/json.h"
#include "attune/text/tokenizer.h"

namespace attune {
namespace {

using nlohmann::json;

/// Parses without building more than a vocabulary can need: hostile JSON is small as text and large in memory.
/// keep(depth, event, value) says what is built at all.
template <class Keep>
json parse_bounded(std::string_view text, std::string_view kind, const std::string& name, Keep&& keep) {
  if (text.size() > kMaxTokenizerBytes)
    fail<FileError>("{}: has {} bytes, at most {} are accepted here", name, text.size(), kMaxTokenizerBytes);
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos)  // the parser takes it for the end
    fail<FileError>("{}: not valid JSON in UTF-8 (byte {})", name, nul + 1);
  size_t values = 0;
  std::set<std::string> keys;
  const auto limit = [&](int depth, json::parse_event_t event, json& value) {
    if (depth > 2) fail<FileError>("{}: not a {}vocabulary: nested more than 2 levels deep", name, kind);
    if (++values > kMaxPieces) fail<FileError>("{}: has more than {} pieces", name, kMaxPieces);
    if (depth == 1 && event == json::parse_event_t::key && !keys.insert(value.get_ref<std::string&>()).second)
      fail<FileError>("{}: has the field {} twice", name, show(Json(value.get_ref<std::string&>())).substr(0, 100));
    return keep(depth, event, value);
  };
  try {
    return json::parse(text, limit);
  } catch (const json::parse_error& error) {
    fail<FileError>("{}: not valid JSON in UTF-8 (byte {})", name, error.byte);
  } catch (const json::exception&) {  // a number that is out of range
    fail<FileError>("{}: not valid JSON", name);
  }
}

}  // namespace

std::string vocabulary_type(std::string_view text, const std::string& name) {
  const auto only_type = [](int depth, json::parse_event_t event, const json& value) {
    return depth != 1 || event != json::parse_event_t::key || value == "type";
  };
  const json vocabulary = parse_bounded(text, "", name, only_type);
  const auto type = vocabulary.find("type");
  return vocabulary.is_object() && type != vocabulary.end() && type->is_string() ? type->get<std::string>() : "";
}

json parse_vocabulary(std::string_view text, std::string_view type, std::initializer_list<std::string_view> fields,
                      const std::string& name) {
  const std::string kind = std::string(type) + " ";
  json vocabulary = parse_bounded(text, kind, name, [](auto&&...) { return true; });
  if (!vocabulary.is_object()) fail<FileError>("{}: not a {}vocabulary: not an object", name, kind);
  for (const auto& [field, value] : vocabulary.items())
    if (field != "type" && std::find(fields.begin(), fields.end(), field) == fields.end())
      fail<FileError>("{}: not a {}vocabulary: the field \"{}\" is unknown", name, kind, field.substr(0, 100));
  if (!vocabulary.contains("type"))
    fail<FileError>("{}: not a {}vocabulary: the field \"type\" is missing", name, kind);
  if (const std::string& found = string_field(vocabulary, "type", name); found != type)
    fail<FileError>("{}: the field \"type\" is \"{}\", expected \"{}\"", name, found.substr(0, 100), type);
  return vocabulary;
}

const std::string& string_field(const json& vocabulary, const char* field, const std::string& name) {
  const auto found = vocabulary.find(field);
  if (found == vocabulary.end()) fail<FileError>("{}: the field \"{}\" is missing", name, field);
  if (!found->is_string()) fail<FileError>("{}: the field \"{}\" is not a string", name, field);
  return found->get_ref<const std::string&>();
}

std::vector<std::string> take_strings(json& vocabulary, const char* field, std::string_view what,
                                      const std::string& name) {
  const auto found = vocabulary.find(field);
  if (found == vocabulary.end() || !found->is_array())
    fail<FileError>("{}: the field \"{}\" is missing or not an array", name, field);
  std::vector<std::string> strings;
  strings.reserve(found->size());
  for (json& value : *found) {
    if (!value.is_string()) fail<FileError>("{}: {} {} is not a string", name, what, strings.size());
    strings.push_back(std::move(value.get_ref<std::string&>()));
  }
  return strings;
}

}  // namespace attune
