#include "attune/data/text_stream.h"

#include <string>
#include <utility>

#include "attune/base/fail.h"
#include "attune/base/parallel.h"
#include "attune/data/prompts.h"
#include "attune/text/text_frame.h"

namespace attune {
namespace {

constexpr size_t kTextBlockBytes = size_t{16} << 20;  // read and encoded at a time, so that memory holds ids, not text
constexpr size_t kBlockTexts = 1 << 14;
constexpr int64_t kTextGrain = 16;
constexpr size_t kPieceBytes = size_t{1} << 20;         // of a stream that is encoded as it is
constexpr size_t kMaxParagraphBytes = size_t{8} << 20;  // as much as SentencePiece takes

/// What stands around the ids of a text.
struct Frame {
  bool bos = false, eos = false;
  bool document = false;      // a text is a document; one without tokens is left out
  bool by_tokenizer = false;  // the tokenizer's special tokens in place of bos
};

using TakeIds = std::function<void(std::span<const int32_t> ids, bool ends_document)>;

/// Encodes texts in blocks, in parallel, and hands over their ids in order.
class Encoder {
 public:
  Encoder(const Tokenizer& tokenizer, const Frame& frame, const ReadProgress& on_read, const TakeIds& take)
      : tokenizer_(tokenizer), frame_(frame), without_tokens_(ids_of("").size()), on_read_(on_read), take_(take) {}
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  void add(std::string text) {
    bytes_ += text.size();
    texts_.push_back(std::move(text));
    if (bytes_ >= kTextBlockBytes || texts_.size() >= kBlockTexts) flush();
  }

  void flush() {
    std::vector<std::vector<int32_t>> encoded(texts_.size());
    const int64_t grain = texts_.size() <= 64 ? 1 : kTextGrain;  // few texts are long ones
    parallel_for(static_cast<int64_t>(texts_.size()), grain, [&](int64_t begin, int64_t end) {
      for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) encoded[i] = ids_of(texts_[i]);
    });
    for (std::vector<int32_t>& ids : encoded) hand_over(ids);
    texts_.clear();
    bytes_ = 0;
    if (on_read_) on_read_(std::exchange(bytes_read_, 0));
  }

  /// Counts bytes of the files that were read for what is added next.
  void count_read(int64_t bytes) { bytes_read_ += bytes; }

  /// Hands over eos behind everything that was added so far.
  void end_file() {
    flush();
    const int32_t eos = tokenizer_.eos_id();
    if (eos >= 0) take_({&eos, 1}, false);
  }

 private:
  std::vector<int32_t> ids_of(const std::string& text) const {
    return frame_.by_tokenizer ? tokenizer_.encode_for_model(text).ids : tokenizer_.encode(text);
  }

  void hand_over(std::vector<int32_t>& ids) {
    const int32_t bos = tokenizer_.bos_id(), eos = tokenizer_.eos_id();
    if (frame_.document && ids.size() == without_tokens_) return;
    if (frame_.bos && bos >= 0) ids.insert(ids.begin(), bos);
    if (frame_.eos && eos >= 0 && (!frame_.by_tokenizer || ids.back() != eos)) ids.push_back(eos);
    take_(ids, frame_.document);
  }

  const Tokenizer& tokenizer_;
  Frame frame_;
  size_t without_tokens_;  // ids of an empty text
  std::vector<std::string> texts_;
  size_t bytes_ = 0;
  const ReadProgress& on_read_;
  const TakeIds& take_;
  int64_t bytes_read_ = 0;
};

/// Calls add(text) for each text that the reader gives.
template <class Reader, class Add>
void for_each_text(Reader&& reader, Encoder& encoder, Add&& add) {
  int64_t counted = 0;
  for (std::string text; reader.next(text);) {
    const int64_t read = reader.bytes_read();
    encoder.count_read(read - std::exchange(counted, read));
    add(text);
  }
}

void add_pieces(const std::filesystem::path& file, const TextLimits& limits, Encoder& encoder) {
  for_each_text(TextReader(file, limits, kPieceBytes), encoder, [&](const std::string& text) { encoder.add(text); });
}

void add_lines(const std::filesystem::path& file, const TextLimits& limits, Encoder& encoder) {
  for_each_text(LineReader(file, limits), encoder, [&](const std::string& text) { encoder.add(text); });
}

void add_paragraphs(const std::filesystem::path& file, const TextLimits& limits, char separator, Encoder& encoder) {
  LineReader reader(file, limits);
  std::string paragraph;
  const auto finish = [&] {
    if (!paragraph.empty()) encoder.add(std::exchange(paragraph, {}));
  };
  for_each_text(reader, encoder, [&](const std::string& line) {
    if (line.find_first_not_of(" \t") == std::string::npos) return finish();
    if (!paragraph.empty()) paragraph += separator;
    paragraph += line;
    if (paragraph.size() > kMaxParagraphBytes)
      fail<DataError>("{}:{}: a paragraph of more than {} bytes, expected an empty line after each", reader.name(),
                      reader.line_number(), kMaxParagraphBytes);
  });
  finish();
}

void read_stream(const std::vector<std::filesystem::path>& files, const Tokenizer& tokenizer,
                 const TextStreamOptions& options, const TakeIds& take) {
  const bool whole = tokenizer.keeps_line_ends();
  std::vector<int32_t> before;
  if (options.tokenizer_frames_texts) before = text_frame(tokenizer, true).before;
  const TakeIds take_behind = [&](std::span<const int32_t> ids, bool ends_document) {
    if (!ids.empty() && !before.empty()) take(std::exchange(before, {}), false);
    take(ids, ends_document);
  };
  Encoder encoder(tokenizer, {.eos = !whole}, options.on_read, take_behind);
  for (size_t i = 0; i < files.size(); ++i) {
    if (whole && i > 0) encoder.end_file();
    whole ? add_pieces(files[i], options.limits, encoder) : add_lines(files[i], options.limits, encoder);
  }
  encoder.flush();
}

void read_documents(const std::vector<std::filesystem::path>& files, const Tokenizer& tokenizer,
                    const TextStreamOptions& options, const TakeIds& take) {
  const bool by_tokenizer = options.tokenizer_frames_texts;
  Encoder encoder(tokenizer, {.bos = !by_tokenizer, .eos = true, .document = true, .by_tokenizer = by_tokenizer},
                  options.on_read, take);
  for (const auto& file : files) {
    if (options.unit == TextUnit::line)
      add_lines(file, options.limits, encoder);
    else
      add_paragraphs(file, options.limits, tokenizer.keeps_line_ends() ? '\n' : ' ', encoder);
  }
  encoder.flush();
}

/// Ids [begin, end): the documents [first, last), or a part of a single one.
TokenDocuments part(const TokenDocuments& documents, int64_t begin, int64_t end, int64_t first, int64_t last) {
  TokenDocuments result;
  result.ids.assign(documents.ids.begin() + begin, documents.ids.begin() + end);
  for (int64_t i = first + 1; i < last; ++i)
    result.offsets.push_back(documents.offsets[static_cast<size_t>(i)] - begin);
  result.offsets.push_back(end - begin);
  if (!documents.seconds.empty())
    result.seconds.assign(documents.seconds.begin() + first, documents.seconds.begin() + last);
  return result;
}

}  // namespace

void read_text(const std::vector<std::filesystem::path>& files, const Tokenizer& tokenizer,
               const TextStreamOptions& options, const TakeIds& take) {
  if (files.empty()) fail<ConfigError>("a text needs at least one file");
  if (options.unit == TextUnit::answer) fail<ConfigError>("a text of prompts and answers cannot be read in parts");
  bool any = false;
  const TakeIds counting = [&](std::span<const int32_t> ids, bool ends_document) {
    any = any || !ids.empty();
    take(ids, ends_document);
  };
  const auto read = options.unit == TextUnit::stream ? read_stream : read_documents;
  read(files, tokenizer, options, counting);
  if (!any)
    fail<DataError>("{}{}: there is no text", files[0].string(), files.size() > 1 ? " and the other files" : "");
}

TokenDocuments load_text(const std::vector<std::filesystem::path>& files, const Tokenizer& tokenizer,
                         const TextStreamOptions& options) {
  if (options.unit == TextUnit::answer) return read_prompts(files, tokenizer, options);
  TokenDocuments documents;
  read_text(files, tokenizer, options, [&](std::span<const int32_t> ids, bool ends_document) {
    documents.ids.insert(documents.ids.end(), ids.begin(), ids.end());
    if (ends_document) documents.offsets.push_back(documents.tokens());
  });
  if (options.unit == TextUnit::stream) documents.offsets.push_back(documents.tokens());
  return documents;
}

std::pair<TokenDocuments, TokenDocuments> hold_out_last(const TokenDocuments& documents, double fraction) {
  if (!(fraction > 0 && fraction < 1)) fail<ConfigError>("the fraction held out, {}, is not between 0 and 1", fraction);
  const bool single = documents.documents() == 1 && documents.seconds.empty();
  const int64_t size = single ? documents.tokens() : documents.documents();
  const auto kept = static_cast<int64_t>(static_cast<double>(size) * (1 - fraction));
  if (const int64_t least = single ? 2 : 1; kept < least || size - kept < least)
    fail<DataError>("{} {} are too few to hold out the last {}", size, single ? "tokens" : "documents", fraction);
  const int64_t cut = single ? kept : documents.offsets[static_cast<size_t>(kept)];
  const int64_t last = documents.documents(), middle = single ? 1 : kept;
  return {part(documents, 0, cut, 0, middle), part(documents, cut, documents.tokens(), single ? 0 : kept, last)};
}

}  // namespace attune
