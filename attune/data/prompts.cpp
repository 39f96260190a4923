#include "attune/data/prompts.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "attune/base/fail.h"
#include "attune/base/json.h"
#include "attune/base/parallel.h"

namespace attune {
namespace {

// Parsed and encoded at a time, so that memory holds ids rather than text.
constexpr size_t kBlockLines = 1 << 12;
constexpr size_t kPromptBlockBytes = size_t{16} << 20;
constexpr int64_t kLinesPerTask = 16;
constexpr const char* kPrompt = "prompt";
constexpr const char* kAnswer = "answer";

struct Line {
  std::string text, place;  // "answers.jsonl:3"
};

struct Document {
  std::vector<int32_t> ids;
  int32_t second = 0;
};

std::string text_of(Json& object, const char* name, const Line& line) {
  const auto found = object.find(name);
  if (found == object.end()) fail<DataError>("{}: has no field \"{}\"", line.place, name);
  if (!found->is_string())
    fail<DataError>("{}: the field \"{}\" is {}, expected a string", line.place, name, found->type_name());
  return std::move(found->get_ref<std::string&>());
}

Json object_of(const Line& line) {
  const size_t first = line.text.find_first_not_of(" \t");
  if (first == std::string::npos || line.text[first] != '{')
    fail<DataError>("{}: expected one JSON object a line: {{\"{}\": ..., \"{}\": ...}}", line.place, kPrompt, kAnswer);
  return parse_json<DataError>(line.text, line.place);
}

// The prompt and the answer, as they are encoded.
std::pair<std::string, std::string> texts_of(const Line& line, bool keeps_line_ends) {
  Json object = object_of(line);
  std::string prompt = text_of(object, kPrompt, line), answer = text_of(object, kAnswer, line);
  if (!keeps_line_ends)
    for (std::string* text : {&prompt, &answer}) std::ranges::replace(*text, '\n', ' ');
  return {std::move(prompt), std::move(answer)};
}

Document document_of(const Line& line, const Tokenizer& tokenizer, bool tokenizer_frames_texts) {
  const auto [prompt, answer] = texts_of(line, tokenizer.keeps_line_ends());
  Document document;
  const int32_t bos = tokenizer.bos_id(), eos = tokenizer.eos_id();
  document.ids = tokenizer_frames_texts ? tokenizer.encode_for_model(prompt).ids : tokenizer.encode(prompt);
  if (bos >= 0 && (!tokenizer_frames_texts || document.ids.empty())) document.ids.insert(document.ids.begin(), bos);
  if (document.ids.empty()) fail<DataError>("{}: the prompt is empty, and the tokenizer names no bos", line.place);
  const std::vector<int32_t> ids = tokenizer.encode(answer);
  if (ids.empty()) fail<DataError>("{}: the answer has no tokens", line.place);
  document.second = static_cast<int32_t>(document.ids.size());
  document.ids.insert(document.ids.end(), ids.begin(), ids.end());
  if (eos >= 0) document.ids.push_back(eos);
  return document;
}

// Calls use(line) for each line that is not empty.
template <class Use>
void for_each_line(const std::filesystem::path& file, const TextLimits& limits, Use&& use) {
  LineReader lines(file, limits);
  for (std::string line; lines.next(line);)
    if (!line.empty()) use(Line{line, lines.name() + ":" + std::to_string(lines.line_number())});
}

}  // namespace

TokenDocuments read_prompts(const std::vector<std::filesystem::path>& files, const Tokenizer& tokenizer,
                            const TextStreamOptions& options) {
  if (files.empty()) fail<ConfigError>("a text needs at least one file");
  TokenDocuments documents;
  std::vector<Line> block;
  size_t bytes = 0;  // of the block
  const auto flush = [&] {
    std::vector<Document> encoded(block.size());
    parallel_for(static_cast<int64_t>(block.size()), kLinesPerTask, [&](int64_t begin, int64_t end) {
      for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
        encoded[i] = document_of(block[i], tokenizer, options.tokenizer_frames_texts);
    });
    for (const Document& document : encoded) {
      documents.ids.insert(documents.ids.end(), document.ids.begin(), document.ids.end());
      documents.offsets.push_back(documents.tokens());
      documents.seconds.push_back(document.second);
    }
    block.clear();
    bytes = 0;
  };
  for (const auto& file : files)
    for_each_line(file, options.limits, [&](Line line) {
      bytes += line.text.size();
      block.push_back(std::move(line));
      if (block.size() >= kBlockLines || bytes >= kPromptBlockBytes) flush();
    });
  flush();
  if (documents.documents() == 0)
    fail<DataError>("{}{}: there is no prompt", files[0].string(), files.size() > 1 ? " and the other files" : "");
  return documents;
}

void read_prompt_texts(const std::vector<std::filesystem::path>& files, bool keeps_line_ends,
                       const std::function<void(const std::string& prompt, const std::string& answer)>& use) {
  if (files.empty()) fail<ConfigError>("a text needs at least one file");
  for (const auto& file : files)
    for_each_line(file, {}, [&](const Line& line) {
      const auto [prompt, answer] = texts_of(line, keeps_line_ends);
      use(prompt, answer);
    });
}

int64_t answer_bytes(const std::filesystem::path& file) {
  int64_t bytes = 0;
  for_each_line(file, {}, [&](const Line& line) {
    Json object = object_of(line);
    bytes += std::ssize(text_of(object, kAnswer, line));
  });
  return bytes;
}

}  // namespace attune
