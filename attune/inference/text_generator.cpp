#include "attune/inference/text_generator.h"

#include <algorithm>

#include "attune/base/check.h"
#include "attune/base/fail.h"
#include "attune/base/parallel.h"
#include "attune/inference/running_text.h"
#include "attune/inference/sampler.h"
#include "attune/inference/speculative.h"
#include "attune/nn/make_panels.h"

namespace attune {
namespace {

constexpr int64_t kBatchPromptTokens = 8192;  // of all prompts that are read at once

void check_options(const GenerateOptions& options) {
  const auto check = [](const char* field, int64_t value) {
    if (value < 1 || value > 1 << 16) fail<ConfigError>("{} = {}: needs a number from 1 to {}", field, value, 1 << 16);
  };
  check("samples", options.samples);
  check("batch_texts", options.batch_texts);
  check_range<int64_t>("draft_tokens", options.draft_tokens, 1, 64);
}

std::vector<RunningText> begin_texts(const GenerationRun& run, std::span<const std::string> prompts) {
  const StopStrings stop(run.options.stop);
  std::vector<RunningText> texts;
  for (size_t p = 0; p < prompts.size(); ++p) {
    const std::vector<int32_t> ids = run.generator.encode_prompt(prompts[p]);
    if (ids.size() > run.context() && !run.sampling.slide)
      fail<DataError>("prompt {}: has {} tokens, the model's context_length is {}; with slide its end would be used",
                      p + 1, ids.size(), run.context());
    for (int64_t s = 0; s < run.options.samples; ++s) {
      texts.push_back({.index = texts.size(),
                       .prompt = p,
                       .sample = static_cast<uint64_t>(s),
                       .tokens = ids,
                       .decoder = {run.generator.tokenizer(), ids, run.generator.eos_is_line_end()},
                       .stop = stop});
      texts.back().slide(run.context());
    }
  }
  return texts;
}

// Texts that are generated together. One whose window may slide is alone: all others of its batch would have to be read
// again with it.
std::vector<std::vector<RunningText*>> make_batches(const GenerationRun& run, std::vector<RunningText>& texts) {
  std::vector<std::vector<RunningText*>> batches;
  int64_t tokens = 0;
  bool full = true;
  for (RunningText& text : texts) {
    const size_t length = text.window().size() + static_cast<size_t>(run.sampling.max_tokens);
    const bool alone = run.sampling.slide && length > run.context();
    const auto prompt_tokens = static_cast<int64_t>(text.window().size());
    if (full || alone || tokens + prompt_tokens > kBatchPromptTokens ||
        static_cast<int64_t>(batches.back().size()) == run.options.batch_texts) {
      batches.emplace_back();
      tokens = 0;
    }
    batches.back().push_back(&text);
    tokens += prompt_tokens;
    full = alone;
  }
  return batches;
}

// The next token of each row of logits.
std::vector<int32_t> draw_tokens(const GenerationRun& run, const std::vector<RunningText*>& texts, const Tensor& logits,
                                 const std::vector<int32_t>& rows) {
  const int64_t vocab = logits.size(1);
  const auto count = static_cast<int64_t>(texts.size());
  std::vector<int32_t> tokens(texts.size());
  parallel_for(count, 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      const auto row = logits.values<float>().subspan(static_cast<size_t>(rows[i] * vocab), static_cast<size_t>(vocab));
      const RunningText& text = *texts[i];
      tokens[i] = draw(token_distribution(row, text.tokens, run.sampling, run.never_drawn),
                       random_number(run.sampling.seed, text.sample, text.result.tokens.size()));
    }
  });
  return tokens;
}

// Reads the windows into a fresh cache, those of one prompt once. rows[i] is the row of the logits that texts[i] has.
Tensor read_prompts(const GenerationRun& run, const std::vector<RunningText*>& texts, KvCache& cache,
                    std::vector<int32_t>& rows) {
  std::vector<int32_t> ids, offsets = {0};
  rows.clear();
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i == 0 || texts[i]->prompt != texts[i - 1]->prompt) {
      const auto window = texts[i]->window();
      ids.insert(ids.end(), window.begin(), window.end());
      offsets.push_back(static_cast<int32_t>(ids.size()));
    }
    rows.push_back(static_cast<int32_t>(offsets.size()) - 2);
  }
  cache = run.generator.model().start(static_cast<int64_t>(offsets.size()) - 1);
  return run.generator.model().prompt(pack_tokens(ids, offsets), cache);
}

void generate_batch(const GenerationRun& run, std::vector<RunningText*> texts) {
  KvCache cache;
  std::vector<int32_t> rows;  // of the logits and of the cache
  Tensor logits;
  if (!run.interrupted()) logits = read_prompts(run, texts, cache, rows);
  while (!texts.empty() && !run.interrupted()) {
    const std::vector<int32_t> tokens = draw_tokens(run, texts, logits, rows);
    std::vector<RunningText*> alive;
    std::vector<int32_t> parents, next;
    bool reread = false;
    for (size_t i = 0; i < texts.size(); ++i) {
      if (!texts[i]->accept(run, tokens[i])) continue;
      reread = reread || texts[i]->window().size() > run.context();
      texts[i]->slide(run.context());
      alive.push_back(texts[i]);
      parents.push_back(rows[i]);
      next.push_back(tokens[i]);
    }
    texts = std::move(alive);
    if (texts.empty()) return;
    if (reread) {  // a text that is alone
      logits = read_prompts(run, texts, cache, rows);
      continue;
    }
    cache.select(parents);
    logits = run.generator.model().step(next, cache);
    for (size_t i = 0; i < texts.size(); ++i) rows[i] = static_cast<int32_t>(i);
    rows.resize(texts.size());
  }
  for (RunningText* text : texts) text->finish(run, FinishReason::interrupted);
}

std::vector<int32_t> encode_lines(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> ids;
  for (;;) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (end != std::string_view::npos && line.ends_with('\r')) line.remove_suffix(1);
    const std::vector<int32_t> of_line = tokenizer.encode(line);
    ids.insert(ids.end(), of_line.begin(), of_line.end());
    if (end == std::string_view::npos) return ids;
    ids.push_back(tokenizer.eos_id());
    text.remove_prefix(end + 1);
  }
}

}  // namespace

TextGenerator::TextGenerator(LanguageModelFiles files)
    : tokenizer_(std::move(files.tokenizer)), sampling_(files.sampling), text_unit_(files.text_unit) {
  sampling_.validate();
  check_vocabulary(files.model->config(), *tokenizer_);
  ensure_panels(*files.model);
  model_ = std::move(files.model);
}

std::vector<GeneratedText> TextGenerator::generate(std::span<const std::string> prompts,
                                                   const GenerateOptions& options) const {
  check_options(options);
  GenerationRun run{
      .generator = *this, .options = options, .sampling = options.sampling.value_or(sampling_), .never_drawn = {}};
  run.sampling.validate();
  if (options.draft != nullptr) check_draft(run);
  for (const int32_t id : {tokenizer_->bos_id(), tokenizer_->pad_id(), tokenizer_->unk_id()}) {
    if (id != tokenizer_->eos_id()) run.never_drawn.push_back(id);
  }
  std::vector<RunningText> texts = begin_texts(run, prompts);
  for (std::vector<RunningText*>& batch : make_batches(run, texts)) {
    if (options.draft != nullptr) {
      generate_speculatively(run, std::move(batch));
    } else {
      generate_batch(run, std::move(batch));
    }
  }
  std::vector<GeneratedText> results;
  results.reserve(texts.size());
  for (RunningText& text : texts) results.push_back(std::move(text.result));
  return results;
}

GeneratedText TextGenerator::generate(const std::string& prompt, const GenerateOptions& options) const {
  if (options.samples != 1) fail<ConfigError>("samples = {}: one text is asked for", options.samples);
  return generate(std::span(&prompt, 1), options).front();
}

bool TextGenerator::eos_is_line_end() const {
  return text_unit_ == TextUnit::stream && !tokenizer_->keeps_line_ends();
}

std::vector<int32_t> TextGenerator::encode_prompt(std::string_view prompt) const {
  if (eos_is_line_end()) {
    std::vector<int32_t> ids = encode_lines(*tokenizer_, prompt);
    return ids.empty() ? std::vector{tokenizer_->eos_id()} : ids;
  }
  if (text_unit_ == TextUnit::stream) {
    const std::vector<int32_t> ids = tokenizer_->encode(prompt.empty() ? "\n" : prompt);
    const bool unknown_start = prompt.empty() && (ids.size() != 1 || ids.front() == tokenizer_->unk_id());
    return ids.empty() || unknown_start ? std::vector{tokenizer_->bos_id()} : ids;
  }
  std::string text(prompt);
  if (!tokenizer_->keeps_line_ends()) std::replace(text.begin(), text.end(), '\n', ' ');
  std::vector<int32_t> ids = tokenizer_->encode(text);
  ids.insert(ids.begin(), tokenizer_->bos_id());
  return ids;
}

}  // namespace attune
