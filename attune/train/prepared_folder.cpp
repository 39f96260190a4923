#include "attune/train/prepared_folder.h"

#include <fmt/format.h>
#include <algorithm>
#include <system_error>

#include "attune/base/cut_text.h"
#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/base/json_fields.h"
#include "attune/base/sha256.h"
#include "attune/io/json_file.h"
#include "attune/text/tokenizer_files.h"

namespace attune {

namespace fs = std::filesystem;

template <class FieldVisitor>
void visit_fields(PreparedTokenizer& t, FieldVisitor& v) {
  v("file", t.file);
  v("sha256", t.sha256);
}

template <class FieldVisitor>
void visit_fields(PreparedShard& s, FieldVisitor& v) {
  v("file", s.file);
  v("examples", s.examples);
  v("tokens", s.tokens);
  v("target_tokens", s.target_tokens);
  v("bytes", s.bytes);
  v("sha256", s.sha256);
}

namespace {

constexpr const char* kIndex = "index.json";
constexpr const char* kFormat = "attune tokens";
constexpr int64_t kVersion = 1;
constexpr uint64_t kMaxIndexBytes = uint64_t{16} << 20;  // 80,000 shards
constexpr int64_t kLargestCount = int64_t{1} << 56;      // sums of a million stay in range
constexpr int64_t kMaxVocab = int64_t{1} << 24;

// The index without its lists, which are read element by element.
struct Head {
  std::string format;
  int64_t version = -1;
  PreparedIndex* index = nullptr;
};

template <class FieldVisitor>
void visit_fields(Head& h, FieldVisitor& v) {
  v("format", h.format);
  v("version", h.version);
  v("kind", h.index->kind);
  v("source_vocab", h.index->source_vocab);
  v("target_vocab", h.index->target_vocab);
  v("labels", h.index->labels);
  v("texts", h.index->texts);
  v("skipped_long", h.index->skipped_long);
  v("skipped_empty", h.index->skipped_empty);
  v("cut", h.index->cut);
}

std::vector<const char*> shaping_fields(PreparedKind kind) {
  switch (kind) {
    case PreparedKind::pairs:
      return {"max_tokens_per_sentence"};
    case PreparedKind::sequences:
      return {"text_unit", "max_tokens"};
    case PreparedKind::labelled:
    case PreparedKind::numbers:
      return {"max_tokens"};
    case PreparedKind::documents:
      break;
  }
  return {"text_unit"};
}

// A name that leads out of the folder would have other files read.
void check_file(const std::string& file, const std::string& where) {
  const bool plain = !file.empty() && file.size() < 200 && file[0] != '.' && std::ranges::all_of(file, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_';
  });
  if (!plain) fail<FileError>("{}.file: is {}, needs the name of a file in the folder", where, in_quotes(file));
}

void check_number(int64_t value, int64_t least, int64_t most, const std::string& where) {
  if (value < least || value > most)
    fail<FileError>("{}: is {}, needs a number from {} to {}", where, value, least, most);
}

void check_hash(const std::string& hash, const std::string& where) {
  const bool plain = hash.size() == 64 && hash.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!plain) fail<FileError>("{}.sha256: is {}, needs 64 hexadecimal digits", where, in_quotes(hash));
}

template <class Element>
std::vector<Element> read_list(const Json& json, const char* key, const std::string& where) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_array()) fail<FileError>("{}: needs a list \"{}\"", where, key);
  std::vector<Element> list;
  for (const Json& value : *found) {
    const std::string here = fmt::format("{}: {}[{}]", where, key, list.size());
    read_fields(value, list.emplace_back(), here);
    check_file(list.back().file, here);
    check_hash(list.back().sha256, here);
  }
  return list;
}

void check(const PreparedIndex& index, const std::string& where) {
  check_number(index.source_vocab, 1, kMaxVocab, where + ": source_vocab");
  check_number(index.target_vocab, 1, kMaxVocab, where + ": target_vocab");
  check_number(index.texts, 1, kLargestCount, where + ": texts");
  for (const auto& [name, count] :
       {std::pair{"skipped_long", index.skipped_long}, {"skipped_empty", index.skipped_empty}, {"cut", index.cut}})
    check_number(count, 0, kLargestCount, fmt::format("{}: {}", where, name));
  const bool pairs = index.kind == PreparedKind::pairs;
  const size_t labels = index.labels.size();
  const bool labels_fit = index.kind == PreparedKind::labelled  ? labels >= 2
                          : index.kind == PreparedKind::numbers ? labels == 1
                                                                : labels == 0;
  if (!labels_fit) fail<FileError>("{}: labels: {} of them for kind \"{}\"", where, labels, enum_name(index.kind));
  check_number(static_cast<int64_t>(index.tokenizers.size()), 1, pairs ? 2 : 1, where + ": number of tokenizers");
  if (index.shards.empty()) fail<FileError>("{}: shards: there is none", where);
  for (size_t i = 0; i < index.shards.size(); ++i) {
    const PreparedShard& shard = index.shards[i];
    const std::string here = fmt::format("{}: shards[{}].", where, i);
    check_number(shard.examples, 1, kLargestCount >> 20, here + "examples");
    check_number(shard.tokens, 0, kLargestCount >> 20, here + "tokens");
    check_number(shard.target_tokens, 0, pairs ? kLargestCount >> 20 : 0, here + "target_tokens");
    check_number(shard.bytes, 1, kLargestCount >> 8, here + "bytes");
  }
  for (const char* field : shaping_fields(index.kind))
    if (!index.options.contains(field)) fail<FileError>("{}: options: lacks \"{}\"", where, field);
}

ShardFile shard_file(const fs::path& folder, const PreparedShard& shard) {
  return {.path = folder / shard.file,
          .examples = shard.examples,
          .tokens = shard.tokens + shard.target_tokens,
          .sha256 = shard.sha256};
}

int64_t sum_over(const std::vector<PreparedShard>& shards, int64_t PreparedShard::*count) {
  int64_t sum = 0;
  for (const PreparedShard& shard : shards) sum += shard.*count;
  return sum;
}

std::string hash_of_file(const fs::path& file) {
  return sha256(read_file(file, kMaxTokenizerBytes));
}

}  // namespace

PreparedKind prepared_kind(const TransformerConfig& model) {
  switch (model.architecture) {
    case Architecture::encoder_decoder:
      return PreparedKind::pairs;
    case Architecture::encoder_classifier:
      return model.is_regression() ? PreparedKind::numbers : PreparedKind::labelled;
    case Architecture::encoder_masked_lm:
    case Architecture::encoder:
      return PreparedKind::sequences;
    case Architecture::decoder_lm:
      break;
  }
  return PreparedKind::documents;
}

ShardForm PreparedIndex::form() const {
  return {.sides = kind == PreparedKind::pairs ? 2 : 1,
          .vocab = {source_vocab, target_vocab},
          .labels = kind == PreparedKind::labelled ? static_cast<int64_t>(labels.size()) : 0,
          .numbers = kind == PreparedKind::numbers};
}

int64_t PreparedIndex::tokens() const {
  return sum_over(shards, &PreparedShard::tokens);
}

int64_t PreparedIndex::target_tokens() const {
  return sum_over(shards, &PreparedShard::target_tokens);
}

int64_t PreparedIndex::bytes() const {
  return sum_over(shards, &PreparedShard::bytes);
}

Json shaping_options(const RunConfig& config) {
  const Json all = write_fields(config.data);
  Json options = Json::object();
  for (const char* field : shaping_fields(prepared_kind(config.model))) options[field] = all.at(field);
  return options;
}

PreparedIndex read_prepared_index(const fs::path& folder) {
  const std::string where = (folder / kIndex).string();
  Json json = read_json_file(folder / kIndex, kMaxIndexBytes);
  if (!json.is_object()) fail<FileError>("{}: needs an object, found {}", where, json.type_name());
  PreparedIndex index;
  Head head{.format = "", .index = &index};
  try {
    if (json.contains("format") && json["format"] != kFormat)
      fail<FileError>("{}: format: is {}, expected \"{}\"", where, cut_text(show(json["format"]), 80), kFormat);
    if (!json.contains("version") || json["version"] != kVersion)
      fail<FileError>("{}: version: is not {}, the one that this program reads", where, kVersion);
    index.tokenizers = read_list<PreparedTokenizer>(json, "tokenizers", where);
    index.shards = read_list<PreparedShard>(json, "shards", where);
    if (!json.contains("options") || !json["options"].is_object()) fail<FileError>("{}: options: is missing", where);
    index.options = json["options"];
    for (const char* key : {"tokenizers", "shards", "options"}) json.erase(key);
    if (!json.contains("kind")) fail<FileError>("{}: kind: is missing", where);
    read_fields(json, head, where);
  } catch (const ConfigError& error) {
    fail<FileError>("{}", error.what());
  }
  if (head.format != kFormat) fail<FileError>("{}: format: is missing, expected \"{}\"", where, kFormat);
  check(index, where);
  return index;
}

TokenCorpus open_prepared(const fs::path& folder, const PreparedIndex& index) {
  std::vector<ShardFile> files;
  for (const PreparedShard& shard : index.shards) {
    const fs::path file = folder / shard.file;
    const int64_t bytes = file_bytes(file);
    if (bytes != shard.bytes)
      fail<FileError>("{}: has {} bytes, {} says {}", file.string(), bytes, kIndex, shard.bytes);
    files.push_back(shard_file(folder, shard));
  }
  return TokenCorpus(std::move(files), index.form());
}

void verify_prepared(const fs::path& folder, const PreparedIndex& index,
                     const std::function<void(int64_t bytes)>& progress) {
  for (const PreparedShard& shard : index.shards) verify_shard(shard_file(folder, shard), progress);
  check_prepared_tokenizers(folder, index);
  const TokenCorpus corpus = open_prepared(folder, index);
  for (int64_t i = 0; i < corpus.shards(); ++i) corpus.open(i);
}

void check_prepared_tokenizers(const fs::path& folder, const PreparedIndex& index) {
  for (const PreparedTokenizer& tokenizer : index.tokenizers)
    if (hash_of_file(folder / tokenizer.file) != tokenizer.sha256)
      fail<FileError>("{}: is not the tokenizer that the text was prepared with: its sha256 differs",
                      (folder / tokenizer.file).string());
}

PreparedWriter::PreparedWriter(fs::path folder, int64_t shard_tokens)
    : folder_(std::move(folder)), shard_tokens_(shard_tokens) {}

void PreparedWriter::begin(PreparedIndex index) {
  index_ = std::move(index);
  // Growing would need the old and the new memory at once. Reserved memory that nobody writes to takes no space.
  examples_.sequences.ids.reserve(static_cast<size_t>(std::min(shard_tokens_, int64_t{1} << 26) + (1 << 16)));
  const TokenizerFiles files = find_tokenizers(temporary());
  for (const fs::path& file : {files.source, files.target})
    if (index_.tokenizers.empty() || files.source != files.target)
      index_.tokenizers.push_back({file.filename().string(), hash_of_file(file)});
}

void PreparedWriter::append(std::span<const int32_t> ids) {
  examples_.sequences.ids.insert(examples_.sequences.ids.end(), ids.begin(), ids.end());
  tokens_ += static_cast<int64_t>(ids.size());
}

void PreparedWriter::end_sequence() {
  examples_.sequences.offsets.push_back(examples_.sequences.tokens());
}

void PreparedWriter::end_example(int32_t label, float value) {
  examples_.labels.push_back(label);
  examples_.values.push_back(value);
  end_example();
}

void PreparedWriter::end_example() {
  end_sequence();
  if (examples_.sequences.tokens() >= shard_tokens_) write_shard();
}

void PreparedWriter::append_stream(std::span<const int32_t> ids) {
  while (!ids.empty()) {
    const int64_t room = shard_tokens_ - examples_.sequences.tokens();
    const auto part = ids.first(std::min(static_cast<size_t>(room), ids.size()));
    append(part);
    ids = ids.subspan(part.size());
    if (examples_.sequences.tokens() >= shard_tokens_) end_example();
  }
}

void PreparedWriter::write_shard() {
  const ShardForm form = index_.form();
  PreparedShard entry{.file = fmt::format("{:05}.tokens", index_.shards.size())};
  const auto& offsets = examples_.sequences.offsets;
  entry.examples = examples_.sequences.documents() / form.sides;
  if (form.sides == 2)
    for (size_t i = 1; i + 1 < offsets.size(); i += 2) entry.target_tokens += offsets[i + 1] - offsets[i];
  entry.tokens = examples_.sequences.tokens() - entry.target_tokens;
  const WrittenShard written = write_token_shard(temporary() / entry.file, examples_, form);
  entry.bytes = written.bytes;
  entry.sha256 = written.sha256;
  index_.shards.push_back(std::move(entry));
  examples_.sequences.ids.clear();
  examples_.sequences.offsets.assign(1, 0);
  examples_.labels.clear();
  examples_.values.clear();
}

PreparedIndex PreparedWriter::commit(int64_t texts, int64_t skipped_long, int64_t skipped_empty, int64_t cut) {
  if (examples_.sequences.offsets.back() < examples_.sequences.tokens()) end_example();  // of a stream
  if (examples_.sequences.documents() > 0) write_shard();
  index_.texts = texts;
  index_.skipped_long = skipped_long;
  index_.skipped_empty = skipped_empty;
  index_.cut = cut;
  Head head{.format = kFormat, .version = kVersion, .index = &index_};
  Json json = write_fields(head);
  json["options"] = index_.options;
  json["tokenizers"] = json["shards"] = Json::array();
  for (const PreparedTokenizer& tokenizer : index_.tokenizers) json["tokenizers"].push_back(write_fields(tokenizer));
  for (const PreparedShard& shard : index_.shards) json["shards"].push_back(write_fields(shard));
  write_json_file(temporary() / kIndex, json);
  folder_.commit();
  return index_;
}

}  // namespace attune
