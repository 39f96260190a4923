#include <fmt/format.h>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "attune/base/cut_text.h"
#include "attune/base/fail.h"
#include "attune/base/parsed_number.h"
#include "attune/data/labelled_corpus.h"

namespace attune {
namespace {

using nlohmann::json;

constexpr size_t kMaxLabelBytes = 1000;  // a longer one is a text in the wrong place
constexpr size_t kNamesShown = 8;

using Texts = std::vector<LabelledText>;
using TakeText = std::function<void(LabelledText&&)>;

/// "a, b, c, ..."
std::string shown(const std::vector<std::string>& names) {
  std::string list;
  for (size_t i = 0; i < std::min(names.size(), kNamesShown); ++i)
    list += (i == 0 ? "" : ", ") + cut_text(names[i], 100);
  return names.size() > kNamesShown ? list + ", ..." : list;
}

template <class... Args>
[[noreturn]] void fail_at(const LineReader& lines, fmt::format_string<Args...> format, Args&&... args) {
  fail<DataError>("{}:{}: {}", lines.name(), lines.line_number(), fmt::format(format, std::forward<Args>(args)...));
}

void add(LabelledText text, const LineReader& lines, const LabelledReadOptions& options, const TakeText& take) {
  if (text.label.empty() && options.needs_label) fail_at(lines, "the label is empty");
  if (text.label.size() > kMaxLabelBytes)
    fail_at(lines, "a label of {} bytes, at most {} are accepted", text.label.size(), kMaxLabelBytes);
  if (options.numbers && !text.label.empty() && !parsed_real(text.label))
    fail_at(lines, "the label \"{}\" is no finite number", cut_text(text.label, 100));
  text.line = lines.line_number();
  take(std::move(text));
}

void read_tsv(LineReader& lines, const LabelledReadOptions& options, const TakeText& take) {
  for (std::string line; lines.next(line);) {
    const size_t tab = line.find('\t');
    if (tab != std::string::npos)
      add({line.substr(0, tab), line.substr(tab + 1)}, lines, options, take);
    else if (!options.needs_label)
      add({"", line}, lines, options, take);
    else if (!line.empty())
      fail_at(lines, "has no tab, expected label<TAB>text");
  }
}

/// Records of RFC 4180: fields between commas; in quotes, they may hold commas, line breaks and doubled quotes.
class CsvReader {
 public:
  CsvReader(LineReader& lines, const TextLimits& limits) : lines_(lines), limits_(limits) {}

  /// Passes over empty lines; false at the end.
  bool next(std::vector<std::string>& fields) {
    do
      if (!lines_.next(line_)) return false;
    while (line_.empty());
    record_bytes_ = static_cast<int64_t>(line_.size());
    fields.clear();
    for (size_t place = 0;; ++place) {  // ++: over the comma
      std::string& field = fields.emplace_back();
      place = line_.compare(place, 1, "\"") == 0 ? quoted(place + 1, field) : plain(place, field);
      if (place == line_.size()) return true;
    }
  }

 private:
  /// Reads a field that begins at `place`; returns where it ends.
  size_t plain(size_t place, std::string& field) {
    const size_t end = std::min(line_.find(',', place), line_.size());
    field.assign(line_, place, end - place);
    if (field.find('"') != std::string::npos)
      fail_at(lines_, "a quote in a field without quotes around it: expected \"...\" with each quote doubled");
    return end;
  }

  /// Reads a field that begins after its opening quote; returns the place after the closing one.
  size_t quoted(size_t place, std::string& field) {
    const int64_t first_line = lines_.line_number();
    for (;;) {
      const size_t quote = std::min(line_.find('"', place), line_.size());
      field.append(line_, place, quote - place);
      if (quote == line_.size()) {
        next_line(first_line);
        field += '\n';
        place = 0;
      } else if (line_.compare(quote + 1, 1, "\"") == 0) {
        field += '"';
        place = quote + 2;
      } else if (quote + 1 == line_.size() || line_[quote + 1] == ',') {
        return quote + 1;
      } else {
        fail_at(lines_, "text follows a closing quote: expected a comma or the end of the line");
      }
    }
  }

  void next_line(int64_t first_line) {
    if (!lines_.next(line_)) fail<DataError>("{}:{}: a quote is never closed", lines_.name(), first_line);
    record_bytes_ += static_cast<int64_t>(line_.size()) + 1;
    if (record_bytes_ > limits_.line_bytes)
      fail<DataError>("{}:{}: the quote that begins here makes a record of more than {} bytes", lines_.name(),
                      first_line, limits_.line_bytes);
  }

  LineReader& lines_;
  const TextLimits& limits_;
  std::string line_;
  int64_t record_bytes_ = 0;
};

constexpr size_t kNoColumn = static_cast<size_t>(-1);

size_t find_column(const std::vector<std::string>& header, const std::string& name, bool needed,
                   const LineReader& lines) {
  const auto found = std::find(header.begin(), header.end(), name);
  if (found == header.end()) {
    if (needed) fail_at(lines, "has no column \"{}\", found {}", name, shown(header));
    return kNoColumn;
  }
  if (std::find(found + 1, header.end(), name) != header.end()) fail_at(lines, "has the column \"{}\" twice", name);
  return static_cast<size_t>(found - header.begin());
}

void read_csv(LineReader& lines, const LabelledReadOptions& options, const TakeText& take) {
  CsvReader csv(lines, options.limits);
  std::vector<std::string> header, fields;
  if (!csv.next(header)) fail<DataError>("{}:1: has no header line", lines.name());
  const size_t text = find_column(header, options.text_field, true, lines);
  const size_t second =
      options.second_text_field.empty() ? kNoColumn : find_column(header, options.second_text_field, true, lines);
  const size_t label = find_column(header, options.label_field, options.needs_label, lines);
  while (csv.next(fields)) {
    if (fields.size() != header.size())
      fail_at(lines, "has {} fields, expected {} as in the header", fields.size(), header.size());
    const auto field = [&](size_t column) { return column == kNoColumn ? std::string() : std::move(fields[column]); };
    add({field(label), field(text), field(second)}, lines, options, take);
  }
}

/// Returns the object of a line with only the fields that are wanted, since others may be large; a discarded value if
/// the line is not JSON.
json parse_object(const std::string& line, const LabelledReadOptions& options, const LineReader& lines,
                  std::vector<std::string>& fields) {
  if (line.find('\0') != std::string::npos) return json(json::value_t::discarded);  // the parser takes it for the end
  std::set<std::string> seen;
  // The deepest level that is kept. Of a list, or of an object within the line's object, the kind is enough.
  int deepest = 1;
  const auto wanted = [&](int depth, json::parse_event_t event, const json& value) {
    if (depth == 0 && event == json::parse_event_t::array_start) deepest = 0;
    if (depth > deepest) return false;
    if (depth != 1 || event != json::parse_event_t::key) return true;
    const auto& name = value.get_ref<const std::string&>();
    if (fields.size() <= kNamesShown) fields.push_back(name);
    const bool is_wanted =
        name == options.label_field || name == options.text_field || name == options.second_text_field;
    if (is_wanted && !seen.insert(name).second) fail_at(lines, "has the field \"{}\" twice", name);
    return is_wanted;
  };
  return json::parse(line, wanted, /*allow_exceptions=*/false);
}

std::string label_of(const json& object, const LabelledReadOptions& options, const LineReader& lines,
                     const std::vector<std::string>& fields) {
  const auto label = object.find(options.label_field);
  const bool missing = label == object.end();
  if (!options.needs_label && (missing || label->is_null())) return "";
  if (missing) fail_at(lines, "has no field \"{}\", found {}", options.label_field, shown(fields));
  if (label->is_string()) return label->get<std::string>();
  if (options.numbers && label->is_number()) return label->dump();
  if (options.numbers)
    fail_at(lines, "the field \"{}\" is {}, expected a number", options.label_field, label->type_name());
  if (label->is_boolean() || label->is_number_integer()) return label->dump();
  fail_at(lines, "the field \"{}\" is {}, expected a string, an integer, true or false", options.label_field,
          label->is_number() ? "a number with a fraction" : label->type_name());
}

void read_jsonl(LineReader& lines, const LabelledReadOptions& options, const TakeText& take) {
  for (std::string line; lines.next(line);) {
    if (line.empty()) continue;
    std::vector<std::string> fields;
    json object = parse_object(line, options, lines, fields);
    if (object.is_discarded()) fail_at(lines, "not valid JSON: expected one object a line");
    if (!object.is_object()) fail_at(lines, "expected one JSON object a line, found {}", object.type_name());
    const auto text = [&](const std::string& name) {
      const auto found = object.find(name);
      if (found == object.end()) fail_at(lines, "has no field \"{}\", found {}", name, shown(fields));
      if (!found->is_string()) fail_at(lines, "the field \"{}\" is {}, expected a string", name, found->type_name());
      return std::move(found->get_ref<std::string&>());
    };
    LabelledText read{.label = {}, .text = text(options.text_field)};
    if (!options.second_text_field.empty()) read.second = text(options.second_text_field);
    read.label = label_of(object, options, lines, fields);
    add(std::move(read), lines, options, take);
  }
}

LabelledFormat format_of(std::filesystem::path file) {
  if (file.extension() == ".gz") file.replace_extension();
  const std::string extension = file.extension().string();
  if (extension == ".tsv" || extension == ".txt") return LabelledFormat::tsv;
  if (extension == ".csv") return LabelledFormat::csv;
  if (extension == ".jsonl" || extension == ".json") return LabelledFormat::jsonl;
  fail<DataError>("{}: the name does not tell the format, expected .tsv, .txt, .csv, .jsonl or .json", file.string());
}

void read(const std::filesystem::path& file, const LabelledReadOptions& options, const TakeText& take) {
  if (options.label_field == options.text_field)
    fail<ConfigError>("the label and the text have the same field \"{}\"", options.text_field);
  const std::string& second = options.second_text_field;
  if (!second.empty() && (second == options.text_field || second == options.label_field))
    fail<ConfigError>("the second text has the same field \"{}\" as the label or the first text", second);
  const LabelledFormat format = options.format == LabelledFormat::automatic ? format_of(file) : options.format;
  if (!second.empty() && format == LabelledFormat::tsv)
    fail<ConfigError>("{}: pairs of texts need csv or jsonl, where the second text has the field \"{}\"", file.string(),
                      second);
  LineReader lines(file, options.limits);
  const auto name = std::make_shared<const std::string>(lines.name());
  int64_t reported = 0;
  const TakeText counting = [&](LabelledText&& text) {
    text.file = name;
    take(std::move(text));
    const int64_t bytes = lines.bytes_read();
    if (options.on_read && bytes > reported) options.on_read(bytes - std::exchange(reported, bytes));
  };
  switch (format) {
    case LabelledFormat::csv:
      return read_csv(lines, options, counting);
    case LabelledFormat::jsonl:
      return read_jsonl(lines, options, counting);
    default:
      return read_tsv(lines, options, counting);
  }
}

}  // namespace

void read_labelled(const std::vector<std::filesystem::path>& files, const LabelledReadOptions& options,
                   const TakeText& take) {
  for (const auto& file : files) read(file, options, take);
}

Texts read_labelled(const std::vector<std::filesystem::path>& files, const LabelledReadOptions& options) {
  Texts texts;
  read_labelled(files, options, [&](LabelledText&& text) { texts.push_back(std::move(text)); });
  return texts;
}

Texts read_labelled(const std::filesystem::path& file, const LabelledReadOptions& options) {
  return read_labelled(std::vector{file}, options);
}

}  // namespace attune
