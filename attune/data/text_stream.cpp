#include "attune/data/text_stream.h"

#include <string>

#include "attune/base/error.h"
#include "attune/base/parallel.h"

namespace attune {
namespace {

constexpr size_t kBlockBytes = size_t{16} << 20;  // read and encoded at a time, so that memory holds ids, not text
constexpr size_t kBlockTexts = 1 << 14;
constexpr int64_t kTextsPerTask = 16;
constexpr size_t kPieceBytes = size_t{1} << 20;         // of a stream that is encoded as it is
constexpr size_t kMaxParagraphBytes = size_t{8} << 20;  // as much as SentencePiece takes

/// What stands around the ids of a text.
struct Frame {
  bool bos = false, eos = false;
  bool document = false;  // a text is a document; one without tokens is left out
};

/// Encodes texts in blocks, in parallel, and appends them in their order.
class Encoder {
 public:
  Encoder(const Tokenizer& tokenizer, const Frame& frame) : tokenizer_(tokenizer), frame_(frame) {}

  void add(std::string text) {
    bytes_ += text.size();
    texts_.push_back(std::move(text));
    if (bytes_ >= kBlockBytes || texts_.size() >= kBlockTexts) flush();
  }

  void flush() {
    std::vector<std::vector<int32_t>> encoded(texts_.size());
    const int64_t grain = texts_.size() <= 64 ? 1 : kTextsPerTask;  // few texts are long ones
    parallel_for(static_cast<int64_t>(texts_.size()), grain, [&](int64_t begin, int64_t end) {
      for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
        encoded[i] = tokenizer_.encode(texts_[i]);
    });
    for (const std::vector<int32_t>& ids : encoded) append(ids);
    texts_.clear();
    bytes_ = 0;
  }

  /// eos after everything added so far.
  void end_file() {
    flush();
    documents_.ids.push_back(tokenizer_.eos_id());
  }

  TokenDocuments take() {
    flush();
    if (!frame_.document && !documents_.ids.empty()) documents_.offsets.push_back(documents_.tokens());
    return std::move(documents_);
  }

 private:
  void append(const std::vector<int32_t>& ids) {
    if (frame_.document && ids.empty()) return;
    if (frame_.bos) documents_.ids.push_back(tokenizer_.bos_id());
    documents_.ids.insert(documents_.ids.end(), ids.begin(), ids.end());
    if (frame_.eos) documents_.ids.push_back(tokenizer_.eos_id());
    if (frame_.document) documents_.offsets.push_back(documents_.tokens());
  }

  const Tokenizer& tokenizer_;
  Frame frame_;
  std::vector<std::string> texts_;
  size_t bytes_ = 0;
  TokenDocuments documents_;
};

void add_pieces(const std::filesystem::path& file, const TextLimits& limits, Encoder& encoder) {
  TextReader reader(file, limits, kPieceBytes);
  for (std::string piece; reader.next(piece);) encoder.add(piece);
}

void add_lines(const std::filesystem::path& file, const TextLimits& limits, Encoder& encoder) {
  LineReader reader(file, limits);
  for (std::string line; reader.next(line);) encoder.add(line);
}

void add_paragraphs(const std::filesystem::path& file, const TextLimits& limits, char separator, Encoder& encoder) {
  LineReader reader(file, limits);
  std::string paragraph;
  const auto finish = [&] {
    if (!paragraph.empty()) encoder.add(std::exchange(paragraph, {}));
  };
  for (std::string line; reader.next(line);) {
    if (line.find_first_not_of(" \t") == std::string::npos) {
      finish();
      continue;
    }
    if (!paragraph.empty()) paragraph += separator;
    paragraph += line;
    if (paragraph.size() > kMaxParagraphBytes)
      fail<DataError>("{}:{}: a paragraph of more than {} bytes, expected an empty line after each", reader.name(),
                      reader.line_number(), kMaxParagraphBytes);
  }
  finish();
}

TokenDocuments load_stream(const std::vector<std::filesystem::path>& files, const Tokenizer& tokenizer,
                           const TextLimits& limits) {
  const bool whole = tokenizer.keeps_line_ends();
  Encoder encoder(tokenizer, {.eos = !whole});
  for (size_t i = 0; i < files.size(); ++i) {
    if (whole && i > 0) encoder.end_file();
    whole ? add_pieces(files[i], limits, encoder) : add_lines(files[i], limits, encoder);
  }
  return encoder.take();
}

TokenDocuments load_documents(const std::vector<std::filesystem::path>& files, const Tokenizer& tokenizer,
                              const TextStreamOptions& options) {
  Encoder encoder(tokenizer, {.bos = true, .eos = true, .document = true});
  for (const auto& file : files) {
    if (options.unit == TextUnit::line)
      add_lines(file, options.limits, encoder);
    else
      add_paragraphs(file, options.limits, tokenizer.keeps_line_ends() ? '\n' : ' ', encoder);
  }
  return encoder.take();
}

/// Ids [begin, end), which are document `first` to before `last`, or a part of it.
TokenDocuments part(const TokenDocuments& documents, int64_t begin, int64_t end, int64_t first, int64_t last) {
  TokenDocuments result;
  result.ids.assign(documents.ids.begin() + begin, documents.ids.begin() + end);
  for (int64_t i = first + 1; i < last; ++i)
    result.offsets.push_back(documents.offsets[static_cast<size_t>(i)] - begin);
  result.offsets.push_back(end - begin);
  return result;
}

}  // namespace

TokenDocuments load_text(const std::vector<std::filesystem::path>& files, const Tokenizer& tokenizer,
                         const TextStreamOptions& options) {
  if (files.empty()) fail<ConfigError>("a text needs at least one file");
  TokenDocuments documents = options.unit == TextUnit::stream ? load_stream(files, tokenizer, options.limits)
                                                              : load_documents(files, tokenizer, options);
  if (documents.ids.empty())
    fail<DataError>("{}{}: there is no text", files[0].string(), files.size() > 1 ? " and the other files" : "");
  return documents;
}

std::pair<TokenDocuments, TokenDocuments> hold_out_last(const TokenDocuments& documents, double fraction) {
  if (!(fraction > 0 && fraction < 1)) fail<ConfigError>("the fraction held out, {}, is not between 0 and 1", fraction);
  const bool single = documents.documents() == 1;
  const int64_t size = single ? documents.tokens() : documents.documents();
  const auto kept = static_cast<int64_t>(static_cast<double>(size) * (1 - fraction));
  if (const int64_t least = single ? 2 : 1; kept < least || size - kept < least)
    fail<DataError>("{} {} are too few to hold out the last {}", size, single ? "tokens" : "documents", fraction);
  const int64_t cut = single ? kept : documents.offsets[static_cast<size_t>(kept)];
  const int64_t last = documents.documents(), middle = single ? 1 : kept;
  return {part(documents, 0, cut, 0, middle), part(documents, cut, documents.tokens(), single ? 0 : kept, last)};
}

}  // namespace attune
