#include "attune/text/vocabulary_json.h"

#include <algorithm>

#include "attune/base/cut_text.h"
#include "attune/base/fail.h"
#include "attune/base/git_lfs.h"
#include "attune/base/json.h"
#include "attune/text/tokenizer.h"

namespace attune {
namespace {

using nlohmann::json;

// A vocabulary is an object of texts and lists of texts.
json parse(std::string_view text, const std::string& name) {
  if (text.size() > kMaxTokenizerBytes)
    fail<FileError>("{}: has {} bytes, at most {} are accepted here", name, text.size(), kMaxTokenizerBytes);
  check_is_fetched(text, name);
  constexpr size_t kValues = kMaxPieces + 16;  // the object's keys and ends, and what is in it beside the pieces
  return parse_json<FileError, json>(text, name, {.depth = 2, .values = kValues});
}

}  // namespace

std::string vocabulary_type(std::string_view text, const std::string& name) {
  const json vocabulary = parse(text, name);
  const auto type = vocabulary.find("type");
  return vocabulary.is_object() && type != vocabulary.end() && type->is_string() ? type->get<std::string>() : "";
}

json parse_vocabulary(std::string_view text, std::string_view type, std::initializer_list<std::string_view> fields,
                      const std::string& name) {
  const std::string kind = std::string(type) + " ";
  json vocabulary = parse(text, name);
  if (!vocabulary.is_object()) fail<FileError>("{}: not a {}vocabulary: not an object", name, kind);
  for (const auto& [field, value] : vocabulary.items())
    if (field != "type" && std::find(fields.begin(), fields.end(), field) == fields.end())
      fail<FileError>("{}: not a {}vocabulary: the field \"{}\" is unknown", name, kind, cut_text(field, 100));
  if (!vocabulary.contains("type"))
    fail<FileError>("{}: not a {}vocabulary: the field \"type\" is missing", name, kind);
  if (const std::string& found = string_field(vocabulary, "type", name); found != type)
    fail<FileError>("{}: the field \"type\" is \"{}\", expected \"{}\"", name, cut_text(found, 100), type);
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
