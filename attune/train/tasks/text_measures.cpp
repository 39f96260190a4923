#include "attune/train/tasks/text_measures.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "attune/base/fail.h"
#include "attune/base/parallel.h"
#include "attune/data/labelled_corpus.h"
#include "attune/kernels/gemm/matmul.h"
#include "attune/text/text_file.h"
#include "attune/text/text_style.h"
#include "attune/text/unicode.h"

namespace attune {
namespace {

constexpr std::string_view kSubwordMark = "@@";
constexpr int64_t kStyleLines = 10000;  // that tell how a text is written
constexpr char32_t kCodePoints = 0x110000;

class Counter {
 public:
  void add(std::string_view text) {
    counts_.bytes += static_cast<int64_t>(text.size());
    size_t word = 0;  // where it begins
    for (size_t at = 0; at < text.size();) {
      const size_t begin = at;
      const char32_t c = next_code_point(text, at);
      if (c != U'\n') ++counts_.characters;
      if (!is_space(c)) {
        seen_[c] = true;
        continue;
      }
      end_word(text.substr(word, begin - word));
      word = at;
    }
    end_word(text.substr(word));
  }

  /// One of the texts that tell the style.
  void add_style(const std::string& line) {
    if (style_lines_ >= kStyleLines) return;
    ++style_lines_;
    style_.add(line);
  }

  TextMeasures result() const {
    TextMeasures measures = counts_;
    for (const bool seen : seen_) measures.distinct_characters += seen ? 1 : 0;
    measures.separate_punctuation = style_.style().punctuation == Punctuation::separate;
    return measures;
  }

  void add_examples(int64_t count) { counts_.examples += count; }

 private:
  void end_word(std::string_view word) {
    if (word.empty()) return;
    ++counts_.words;
    if (word.ends_with(kSubwordMark)) ++counts_.subword_marks;
  }

  TextMeasures counts_;
  std::vector<bool> seen_ = std::vector<bool>(kCodePoints);
  TextStyleCounts style_;
  int64_t style_lines_ = 0;
};

// Returns the number of lines.
int64_t count_file(const std::filesystem::path& file, Counter& counter) {
  TextReader reader(file);
  int64_t line_ends = 0;
  bool open_line = false;
  for (std::string piece; reader.next(piece);) {
    counter.add(piece);
    for (const char c : piece) line_ends += c == '\n' ? 1 : 0;
    if (!piece.empty()) open_line = piece.back() != '\n';
  }
  return line_ends + (open_line ? 1 : 0);
}

void count_labelled(const RunConfig& config, Counter& counter) {
  const DataConfig& data = config.data;
  const LabelledReadOptions options{.format = data.format,
                                    .label_field = data.label_field,
                                    .text_field = data.text_field,
                                    .second_text_field = data.second_text_field,
                                    .numbers = config.model.is_regression()};
  read_labelled({data.train_files.begin(), data.train_files.end()}, options, [&](LabelledText&& text) {
    for (const std::string* part : {&text.text, &text.second}) {
      counter.add(*part);
      counter.add_style(*part);
    }
    counter.add_examples(1);
  });
}

}  // namespace

TextMeasures measure_text(const RunConfig& config) {
  const DataConfig& data = config.data;
  const Architecture architecture = config.model.architecture;
  const bool pairs = architecture == Architecture::encoder_decoder;
  const std::vector<std::string>& files = pairs ? data.train_source : data.train_files;
  if (files.empty()) fail<ConfigError>("{} names no file", training_files_field(architecture));
  Counter counter;
  if (architecture == Architecture::encoder_classifier) {
    count_labelled(config, counter);
  } else {
    for (const std::string& file : files) counter.add_examples(count_file(file, counter));
    for (const std::string& file : data.train_target) count_file(file, counter);
  }
  TextMeasures measures = counter.result();
  measures.architecture = architecture;
  measures.regression = config.model.is_regression();
  measures.processors = config.train.threads > 0 ? static_cast<int>(config.train.threads) : thread_count();
  measures.avx512 = has_avx512_products();
  return measures;
}

}  // namespace attune
