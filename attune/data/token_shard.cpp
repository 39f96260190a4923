#include "attune/data/token_shard.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "attune/base/fail.h"
#include "attune/base/sha256.h"

namespace attune {
namespace {

static_assert(std::endian::native == std::endian::little, "shards are little-endian and read as they are");

constexpr std::array<char, 8> kMagic = {'A', 'T', 'N', 'T', 'O', 'K', 'E', 'N'};
constexpr uint32_t kVersion = 1;
constexpr int64_t kMaxLength = std::numeric_limits<int32_t>::max();

struct Header {
  std::array<char, 8> magic = kMagic;
  uint32_t version = kVersion;
  uint32_t token_bytes = 0;
  uint32_t sides = 0;
  uint32_t labelled = 0;  // 1: with labels, 2: with numbers
  uint64_t examples = 0;
  uint64_t tokens = 0;
  std::array<uint64_t, 3> reserved = {};
};
static_assert(sizeof(Header) == 64);

uint32_t labelled_as(const ShardForm& form) {
  if (form.numbers) return 2;
  return form.labels > 0 ? 1 : 0;
}

uint64_t padded(uint64_t bytes) {
  return (bytes + 7) / 8 * 8;
}

// Counts of things that are in the file are below its size, so that no sum here can overflow.
uint64_t file_bytes(const Header& header) {
  return sizeof(Header) + (header.examples * header.sides + 1) * sizeof(int64_t) +
         padded(header.labelled > 0 ? header.examples * sizeof(int32_t) : 0) +
         padded(header.tokens * header.token_bytes);
}

/// A file and the hash of what is written to it.
class HashedFile {
 public:
  explicit HashedFile(const std::filesystem::path& path) : file_(path) {}
  void write(const void* data, size_t bytes) {
    file_.write(data, bytes);
    hash_.update(data, bytes);
    bytes_ += bytes;
  }
  void pad() {
    constexpr std::array<char, 8> zeros = {};
    write(zeros.data(), padded(bytes_) - bytes_);
  }
  WrittenShard commit() {
    file_.commit();
    return {static_cast<int64_t>(bytes_), hash_.hex()};
  }

 private:
  AtomicFile file_;
  Sha256 hash_;
  uint64_t bytes_ = 0;
};

void write_narrow(HashedFile& file, std::span<const int32_t> ids) {
  std::array<uint16_t, 1 << 15> block;
  while (!ids.empty()) {
    const auto part = ids.first(std::min(block.size(), ids.size()));
    std::ranges::transform(part, block.begin(), [](int32_t id) { return static_cast<uint16_t>(id); });
    file.write(block.data(), part.size() * sizeof(uint16_t));
    ids = ids.subspan(part.size());
  }
}

/// The greatest of the ids, negative ones being greater than all others.
template <class Id>
uint32_t greatest(std::span<const Id> ids) {
  uint32_t greatest = 0;
  for (const Id id : ids) greatest = std::max(greatest, static_cast<uint32_t>(id));
  return greatest;
}

template <class T>
std::span<const T> view(std::span<const std::byte> bytes, uint64_t at, uint64_t count) {
  return {reinterpret_cast<const T*>(bytes.data() + at), count};
}

}  // namespace

TokenExamples examples_of(std::span<const ParallelExample> pairs) {
  TokenExamples examples;
  std::vector<int32_t>& ids = examples.sequences.ids;
  std::vector<int64_t>& offsets = examples.sequences.offsets;
  for (const ParallelExample& pair : pairs) {
    for (const auto* side : {&pair.source, &pair.target}) {
      ids.insert(ids.end(), side->begin(), side->end());
      offsets.push_back(static_cast<int64_t>(ids.size()));
    }
  }
  return examples;
}

TokenExamples examples_of(std::span<const LabelledExample> texts) {
  TokenExamples examples;
  std::vector<int32_t>& ids = examples.sequences.ids;
  std::vector<int64_t>& offsets = examples.sequences.offsets;
  for (const LabelledExample& text : texts) {
    ids.insert(ids.end(), text.tokens.begin(), text.tokens.end());
    offsets.push_back(static_cast<int64_t>(ids.size()));
    examples.labels.push_back(text.label);
    examples.values.push_back(text.value);
    examples.sequences.seconds.push_back(text.second);
  }
  return examples;
}

WrittenShard write_token_shard(const std::filesystem::path& file, const TokenExamples& examples,
                               const ShardForm& form) {
  const Header header{.token_bytes = static_cast<uint32_t>(form.token_bytes()),
                      .sides = static_cast<uint32_t>(form.sides),
                      .labelled = labelled_as(form),
                      .examples = static_cast<uint64_t>(examples.sequences.documents() / form.sides),
                      .tokens = static_cast<uint64_t>(examples.sequences.tokens())};
  HashedFile out(file);
  out.write(&header, sizeof header);
  out.write(examples.sequences.offsets.data(), examples.sequences.offsets.size() * sizeof(int64_t));
  static_assert(sizeof(float) == sizeof(int32_t));
  if (form.numbers)
    out.write(examples.values.data(), examples.values.size() * sizeof(float));
  else
    out.write(examples.labels.data(), examples.labels.size() * sizeof(int32_t));
  out.pad();
  const std::span<const int32_t> ids = examples.sequences.ids;
  form.token_bytes() == 2 ? write_narrow(out, ids) : out.write(ids.data(), ids.size_bytes());
  out.pad();
  return out.commit();
}

TokenShard::TokenShard(TokenExamples examples, const ShardForm& form)
    : form_(form),
      name_("the text"),
      memory_(std::move(examples)),
      examples_(memory_.sequences.documents() / form.sides),
      offsets_(memory_.sequences.offsets),
      labels_(memory_.labels),
      values_(memory_.values),
      wide_(memory_.sequences.ids) {}

TokenShard::TokenShard(const std::filesystem::path& file, const ShardForm& form)
    : form_(form), name_(file.string()), file_(std::make_unique<MappedFile>(file)) {
  read_header();
  for (size_t i = 0; i + 1 < offsets_.size(); ++i)
    if (offsets_[i + 1] < offsets_[i])
      fail<FileError>("{}: sequence {} has the ids from {} to {}", name_, i, offsets_[i], offsets_[i + 1]);
}

void TokenShard::read_header() {
  const std::span<const std::byte> bytes = file_->bytes();
  Header header;
  if (bytes.size() < sizeof header)
    fail<FileError>("{}: has {} bytes, a shard of tokens has {} or more", name_, bytes.size(), sizeof header);
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kMagic) fail<FileError>("{}: is no shard of tokens: it does not begin with ATNTOKEN", name_);
  const auto expect = [&](const char* field, uint64_t found, uint64_t expected) {
    if (found != expected) fail<FileError>("{}: {} is {}, expected {}", name_, field, found, expected);
  };
  expect("version", header.version, kVersion);
  expect("token_bytes", header.token_bytes, static_cast<uint64_t>(form_.token_bytes()));
  expect("sides", header.sides, static_cast<uint64_t>(form_.sides));
  expect("labelled", header.labelled, labelled_as(form_));
  for (const auto& [field, count] : {std::pair{"examples", header.examples}, {"tokens", header.tokens}})
    if (count > bytes.size()) fail<FileError>("{}: {} is {} in {} bytes", name_, field, count, bytes.size());
  if (file_bytes(header) != bytes.size())
    fail<FileError>("{}: has {} bytes, {} examples and {} tokens need {}", name_, bytes.size(), header.examples,
                    header.tokens, file_bytes(header));
  examples_ = static_cast<int64_t>(header.examples);
  uint64_t at = sizeof header;
  offsets_ = view<int64_t>(bytes, at, header.examples * header.sides + 1);
  at += offsets_.size_bytes();
  if (form_.numbers)
    values_ = view<float>(bytes, at, header.examples);
  else
    labels_ = view<int32_t>(bytes, at, header.labelled * header.examples);
  at += padded(labels_.size_bytes() + values_.size_bytes());
  if (form_.token_bytes() == 2)
    narrow_ = view<uint16_t>(bytes, at, header.tokens);
  else
    wide_ = view<int32_t>(bytes, at, header.tokens);
  expect("the first offset", static_cast<uint64_t>(offsets_.front()), 0);
  expect("the last offset", static_cast<uint64_t>(offsets_.back()), header.tokens);
}

std::string TokenShard::sha256() const {
  Sha256 hash;
  const auto add = [&](const auto& values) { hash.update(values.data(), values.size() * sizeof(values[0])); };
  add(offsets_);
  add(labels_);
  add(values_);
  add(narrow_);
  add(wide_);
  add(memory_.sequences.seconds);
  return hash.hex();
}

int64_t TokenShard::tokens_of_side(int64_t side) const {
  int64_t tokens = 0;
  for (auto i = static_cast<size_t>(side); i + 1 < offsets_.size(); i += static_cast<size_t>(form_.sides))
    tokens += offsets_[i + 1] - offsets_[i];
  return tokens;
}

std::vector<std::pair<int32_t, int32_t>> TokenShard::lengths() const {
  std::vector<std::pair<int32_t, int32_t>> lengths;
  lengths.reserve(static_cast<size_t>(examples_));
  const auto length = [&](size_t i) {
    const int64_t ids = offsets_[i + 1] - offsets_[i];
    if (ids < 0 || ids > kMaxLength) fail<DataError>("{}: sequence {} has {} ids", name_, i, ids);
    return static_cast<int32_t>(ids);
  };
  for (size_t i = 0; i + 1 < offsets_.size(); i += static_cast<size_t>(form_.sides))
    lengths.emplace_back(length(i), form_.sides > 1 ? length(i + 1) : 0);
  return lengths;
}

void TokenShard::append(int64_t begin, int64_t end, std::vector<int32_t>& ids, int64_t side) const {
  const auto stored = static_cast<int64_t>(std::max(narrow_.size(), wide_.size()));
  if (begin < 0 || end < begin || end > stored)
    fail<DataError>("{}: the ids from {} to {} are not inside of {}", name_, begin, end, stored);
  const auto add = [&](auto all) {
    const auto chosen = all.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
    ids.insert(ids.end(), chosen.begin(), chosen.end());
  };
  narrow_.empty() ? add(wide_) : add(narrow_);
  const auto vocab = form_.vocab[static_cast<size_t>(side)];
  const std::span<const int32_t> added = std::span(ids).last(static_cast<size_t>(end - begin));
  if (const uint32_t id = greatest(added); !added.empty() && id >= vocab)
    fail<DataError>("{}: the ids from {} to {} have {}, which is outside the vocabulary of {}", name_, begin, end,
                    static_cast<int32_t>(id), vocab);
}

void TokenShard::append_sequence(int64_t example, std::vector<int32_t>& ids, int64_t side) const {
  if (example < 0 || example >= examples_)
    fail<DataError>("{}: example {} is outside of the {} examples", name_, example, examples_);
  const auto place = static_cast<size_t>(example * form_.sides + side);
  const int64_t begin = offsets_[place], end = offsets_[place + 1];
  if (begin == end) fail<DataError>("{}: example {} has an empty sequence", name_, example);
  append(begin, end, ids, side);
}

int32_t TokenShard::label(int64_t example) const {
  if (form_.numbers) return 0;
  const int32_t label = labels_[static_cast<size_t>(example)];
  if (label < 0 || label >= form_.labels)
    fail<DataError>("{}: example {} has label {} of {}", name_, example, label, form_.labels);
  return label;
}

float TokenShard::value(int64_t example) const {
  if (!form_.numbers) return 0;
  const float value = values_[static_cast<size_t>(example)];
  if (!std::isfinite(value)) fail<DataError>("{}: example {} has the number {}", name_, example, value);
  return value;
}

int32_t TokenShard::second(int64_t example) const {
  const std::vector<int32_t>& seconds = memory_.sequences.seconds;
  return seconds.empty() ? -1 : seconds[static_cast<size_t>(example)];
}

int32_t TokenShard::ignored_labels(const Window& window) const {
  if (memory_.sequences.seconds.empty()) return 0;
  const auto example = std::ranges::upper_bound(offsets_, window.begin) - offsets_.begin() - 1;
  const int64_t from = offsets_[static_cast<size_t>(example)] + second(example) - 1 - window.begin;
  return static_cast<int32_t>(std::clamp<int64_t>(from, 0, window.length));
}

namespace {

/// [0, count), as the places of what was gathered.
std::vector<int32_t> all_of(size_t count) {
  std::vector<int32_t> places(count);
  for (size_t i = 0; i < count; ++i) places[i] = static_cast<int32_t>(i);
  return places;
}

}  // namespace

PackedBatch pack_pairs(const TokenShard& shard, std::span<const int32_t> indices, int32_t bos_id) {
  std::vector<ParallelExample> chosen(indices.size());
  for (size_t i = 0; i < indices.size(); ++i) {
    shard.append_sequence(indices[i], chosen[i].source, 0);
    shard.append_sequence(indices[i], chosen[i].target, 1);
  }
  return pack(chosen, all_of(chosen.size()), bos_id);
}

LabelledBatch pack_labelled(const TokenShard& shard, std::span<const int32_t> indices) {
  std::vector<LabelledExample> chosen(indices.size());
  for (size_t i = 0; i < indices.size(); ++i) {
    shard.append_sequence(indices[i], chosen[i].tokens);
    chosen[i].label = shard.label(indices[i]);
    chosen[i].value = shard.value(indices[i]);
    chosen[i].second = shard.second(indices[i]);
  }
  return pack(chosen, all_of(chosen.size()));
}

LanguageModelBatch pack_windows(const TokenShard& shard, std::span<const Window> windows) {
  TokenDocuments gathered;
  std::vector<ScoredWindow> there;
  for (const Window& window : windows) {
    there.push_back({gathered.tokens(), window.length, shard.ignored_labels(window)});
    shard.append(window.begin, window.begin + window.length + 1, gathered.ids);
    gathered.offsets.push_back(gathered.tokens());
  }
  return pack(gathered, std::span<const ScoredWindow>(there));
}

TokenDocuments pack_sequences(const TokenShard& shard, std::span<const int32_t> indices) {
  TokenDocuments gathered;
  for (const int32_t index : indices) {
    shard.append_sequence(index, gathered.ids);
    gathered.offsets.push_back(gathered.tokens());
  }
  return gathered;
}

}  // namespace attune
