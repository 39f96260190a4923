#include "attune/text/huggingface/decoders.h"

#include <charconv>

#include "attune/base/replace_all.h"
#include "attune/text/huggingface/model.h"
#include "attune/text/huggingface/pattern.h"
#include "attune/text/huggingface/steps.h"
#include "attune/text/huggingface/unicode.h"
#include "attune/text/text_file.h"

namespace attune::huggingface {
namespace {

// As `tokenizers` does, which has one replacement more.
void clean_up(std::string& text) {
  clean_up_spaces(text);
  replace_all(text, " do not", " don't");
}

// A piece counts as one byte more, for the space that a step may put before it.
size_t bytes_of(const std::vector<std::string>& pieces) {
  size_t bytes = pieces.size();
  for (const std::string& piece : pieces) bytes += piece.size();
  return bytes;
}

class SequenceDecoder final : public Steps<Decoder> {
 public:
  using Steps::Steps;
  void apply(std::vector<std::string>& pieces) const override {
    const size_t before = bytes_of(pieces);
    for (const auto& step : steps_) {
      step->apply(pieces);
      check_growth("decoding", before, bytes_of(pieces));
    }
  }
};

class ByteLevelDecoder final : public Decoder {
 public:
  void apply(std::vector<std::string>& pieces) const override {
    std::string text, bytes;
    for (const std::string& piece : pieces) text += bytes_of_characters(piece, bytes) ? bytes : piece;
    pieces.assign(1, valid_utf8(text) ? std::move(text) : with_replacements(text));
  }
};

class ByteFallbackDecoder final : public Decoder {
 public:
  void apply(std::vector<std::string>& pieces) const override {
    std::vector<std::string> result;
    std::string bytes;
    const auto flush = [&] {
      if (bytes.empty()) return;
      if (valid_utf8(bytes)) {
        result.push_back(bytes);
      } else {
        result.insert(result.end(), bytes.size(), "\uFFFD");
      }
      bytes.clear();
    };
    for (std::string& piece : pieces) {
      if (const int byte = byte_of(piece); byte >= 0) {
        bytes.push_back(static_cast<char>(byte));
        continue;
      }
      flush();
      result.push_back(std::move(piece));
    }
    flush();
    pieces = std::move(result);
  }

 private:
  static int byte_of(std::string_view piece) {
    if (piece.size() != 6 || !piece.starts_with("<0x") || piece.back() != '>') return -1;
    int value = 0;
    const auto [end, error] = std::from_chars(piece.data() + 3, piece.data() + 5, value, 16);
    return error == std::errc() && end == piece.data() + 5 && value >= 0 ? value : -1;
  }
};

class WordPieceDecoder final : public Decoder {
 public:
  WordPieceDecoder(std::string prefix, bool cleanup) : prefix_(std::move(prefix)), cleanup_(cleanup) {}
  void apply(std::vector<std::string>& pieces) const override {
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (i > 0) pieces[i] = pieces[i].starts_with(prefix_) ? pieces[i].substr(prefix_.size()) : " " + pieces[i];
      if (cleanup_) clean_up(pieces[i]);
    }
  }

 private:
  std::string prefix_;
  bool cleanup_;
};

class MetaspaceDecoder final : public Decoder {
 public:
  MetaspaceDecoder(std::string replacement, bool drops_first)
      : replacement_(std::move(replacement)), drops_first_(drops_first) {}
  void apply(std::vector<std::string>& pieces) const override {
    for (size_t i = 0; i < pieces.size(); ++i) replace_all(pieces[i], replacement_, i == 0 && drops_first_ ? "" : " ");
  }

 private:
  std::string replacement_;
  bool drops_first_;
};

class BpeSuffixDecoder final : public Decoder {
 public:
  explicit BpeSuffixDecoder(std::string suffix) : suffix_(std::move(suffix)) {}
  void apply(std::vector<std::string>& pieces) const override {
    for (size_t i = 0; i < pieces.size(); ++i) replace_all(pieces[i], suffix_, i + 1 == pieces.size() ? "" : " ");
  }

 private:
  std::string suffix_;
};

class ReplaceDecoder final : public Decoder {
 public:
  ReplaceDecoder(std::unique_ptr<Pattern> pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  void apply(std::vector<std::string>& pieces) const override {
    SearchBudget budget(bytes_of(pieces));
    for (std::string& piece : pieces) {
      std::string result;
      size_t done = 0;
      bool any = false;
      if (piece.empty()) continue;
      const auto found = [&](Match match) {
        any = true;
        result.append(piece, done, match.begin - done);
        result += content_;
        done = match.end;
      };
      pattern_->search(piece, found, budget);
      if (any) piece = result.append(piece, done);
    }
  }

 private:
  std::unique_ptr<Pattern> pattern_;
  std::string content_;
};

class StripDecoder final : public Decoder {
 public:
  StripDecoder(std::string content, int64_t start, int64_t stop)
      : content_(std::move(content)), start_(start), stop_(stop) {}
  void apply(std::vector<std::string>& pieces) const override {
    for (std::string& piece : pieces) {
      std::string_view rest = piece;
      for (int64_t i = 0; i < start_ && rest.starts_with(content_); ++i) rest.remove_prefix(content_.size());
      for (int64_t i = 0; i < stop_ && rest.ends_with(content_); ++i) rest.remove_suffix(content_.size());
      piece = std::string(rest);
    }
  }

 private:
  std::string content_;  // one character
  int64_t start_, stop_;
};

class FuseDecoder final : public Decoder {
 public:
  void apply(std::vector<std::string>& pieces) const override {
    std::string text;
    for (const std::string& piece : pieces) text += piece;
    pieces.assign(1, std::move(text));
  }
};

class CtcDecoder final : public Decoder {
 public:
  CtcDecoder(std::string pad, std::string delimiter, bool cleanup)
      : pad_(std::move(pad)), delimiter_(std::move(delimiter)), cleanup_(cleanup) {}
  void apply(std::vector<std::string>& pieces) const override {
    std::vector<std::string> result;
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (i > 0 && pieces[i] == pieces[i - 1]) continue;
      std::string piece = pieces[i];
      replace_all(piece, pad_, "");
      if (cleanup_) {
        clean_up(piece);
        replace_all(piece, delimiter_, " ");
      }
      if (!piece.empty()) result.push_back(std::move(piece));
    }
    pieces = std::move(result);
  }

 private:
  std::string pad_, delimiter_;
  bool cleanup_;
};

}  // namespace

Decoder::~Decoder() = default;

void clean_up_spaces(std::string& text) {
  constexpr std::pair<std::string_view, std::string_view> replacements[] = {
      {" .", "."},     {" ?", "?"},   {" !", "!"},   {" ,", ","},     {" ' ", "'"},
      {" n't", "n't"}, {" 'm", "'m"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : replacements) replace_all(text, from, to);
}

std::unique_ptr<Decoder> word_piece_decoder() {
  return std::make_unique<WordPieceDecoder>("##", true);
}

std::unique_ptr<Decoder> byte_level_decoder() {
  return std::make_unique<ByteLevelDecoder>();
}

std::unique_ptr<Decoder> read_decoder(const nlohmann::json* value, const std::string& where, int depth) {
  if (value == nullptr || value->is_null()) return nullptr;
  const Fields fields(*value, where);
  const std::string& type = fields.string("type");
  if (type == "Sequence")
    return std::make_unique<SequenceDecoder>(read_steps<Decoder>(fields, "decoders", depth, read_decoder));
  if (type == "ByteLevel") return byte_level_decoder();
  if (type == "ByteFallback") return std::make_unique<ByteFallbackDecoder>();
  if (type == "Fuse") return std::make_unique<FuseDecoder>();
  if (type == "WordPiece")
    return std::make_unique<WordPieceDecoder>(fields.string("prefix", "##"), fields.boolean("cleanup", true));
  if (type == "Metaspace") {
    const std::string scheme =
        fields.string("prepend_scheme", fields.boolean("add_prefix_space", true) ? "always" : "never");
    return std::make_unique<MetaspaceDecoder>(read_character(fields, "replacement"), scheme != "never");
  }
  if (type == "BPEDecoder") return std::make_unique<BpeSuffixDecoder>(fields.string("suffix", "</w>"));
  if (type == "Replace")
    return std::make_unique<ReplaceDecoder>(read_pattern(fields, "pattern"), content_of(fields, "content"));
  if (type == "Strip")
    return std::make_unique<StripDecoder>(read_character(fields, "content"), fields.number("start", INT32_MAX),
                                          fields.number("stop", INT32_MAX));
  if (type == "CTC")
    return std::make_unique<CtcDecoder>(fields.string("pad_token", "<pad>"), fields.string("word_delimiter_token", "|"),
                                        fields.boolean("cleanup", true));
  fields.refuse("type", "a decoder that is known here");
}

}  // namespace attune::huggingface
