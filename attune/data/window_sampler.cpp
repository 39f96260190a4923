#include "attune/data/window_sampler.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "attune/base/fail.h"
#include "attune/base/random.h"

namespace attune {
namespace {

constexpr int64_t kMaxTokens = std::numeric_limits<int32_t>::max();

void check_context(int64_t context_length) {
  if (context_length < 1 || context_length > kMaxTokens)
    fail<ConfigError>("context_length = {} is not between 1 and 2147483647", context_length);
}

/// Calls visit(begin, predictions, document) for each document that has something to predict.
template <class Visit>
void for_each_document(const std::vector<int64_t>& offsets, Visit&& visit) {
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    const int64_t begin = offsets[i], predictions = offsets[i + 1] - begin - 1;
    if (predictions > 0) visit(begin, predictions, i);
  }
}

std::vector<std::vector<Window>> group(const std::vector<Window>& windows, int64_t max_tokens) {
  std::vector<std::vector<Window>> batches;
  int64_t tokens = 0;
  for (const Window& window : windows) {
    tokens += window.length;
    if (batches.empty() || tokens > max_tokens) {
      batches.emplace_back();
      tokens = window.length;
    }
    batches.back().push_back(window);
  }
  return batches;
}

/// `Any` is Window or ScoredWindow; label_from(window) is the first label that counts.
template <class Any, class LabelFrom>
LanguageModelBatch pack_windows(const TokenDocuments& documents, std::span<const Any> windows, int32_t ignored,
                                LabelFrom&& label_from) {
  int64_t tokens = 0;
  for (const Any& window : windows) {
    if (window.length < 1 || window.begin < 0 || window.begin >= documents.tokens() - window.length)
      fail<DataError>("a window of {} predictions at id {} is not inside of {} ids", window.length, window.begin,
                      documents.tokens());
    tokens += window.length;
  }
  if (tokens > kMaxTokens) fail<DataError>("a batch of {} tokens is too large", tokens);

  LanguageModelBatch batch;
  batch.input.reserve(static_cast<size_t>(tokens));
  batch.labels.reserve(static_cast<size_t>(tokens));
  batch.offsets.assign(1, 0);
  for (const Any& window : windows) {
    const auto ids = std::span(documents.ids).subspan(static_cast<size_t>(window.begin));
    const int32_t from = label_from(window);
    for (int32_t i = 0; i < window.length; ++i) {
      batch.input.push_back(ids[static_cast<size_t>(i)]);
      batch.labels.push_back(i < from ? ignored : ids[static_cast<size_t>(i) + 1]);
    }
    batch.offsets.push_back(static_cast<int32_t>(batch.input.size()));
  }
  return batch;
}

}  // namespace

void WindowSamplerOptions::validate() const {
  check_context(context_length);
  if (max_tokens < 1 || max_tokens > kMaxTokens)
    fail<ConfigError>("max_tokens = {} is not between 1 and 2147483647", max_tokens);
}

WindowSampler::WindowSampler(std::vector<int64_t> offsets, const WindowSamplerOptions& options)
    : offsets_(std::move(offsets)), options_(options) {
  options_.validate();
}

WindowSampler::WindowSampler(const TokenDocuments& documents, const WindowSamplerOptions& options)
    : WindowSampler(documents.offsets, options) {
  bool any = false;
  for_each_document(offsets_, [&](int64_t, int64_t, size_t) { any = true; });
  if (!any)
    fail<DataError>("{} documents of {} tokens have nothing to predict, expected one of 2 tokens or more",
                    documents.documents(), documents.tokens());
}

std::vector<std::vector<Window>> WindowSampler::epoch(int64_t epoch) const {
  Random random(options_.seed, static_cast<uint64_t>(epoch));
  const int64_t context = options_.context_length;
  std::vector<Window> windows;
  for_each_document(offsets_, [&](int64_t begin, int64_t predictions, size_t) {
    const bool varied = options_.shuffle && predictions > context;
    int64_t length = varied ? 1 + static_cast<int64_t>(random.below(static_cast<uint64_t>(context))) : context;
    for (int64_t place = 0; place < predictions; place += length, length = context)
      windows.push_back({begin + place, static_cast<int32_t>(std::min(length, predictions - place))});
  });
  if (options_.shuffle) random.shuffle(windows);
  return group(windows, options_.max_tokens);
}

LanguageModelBatch pack(const TokenDocuments& documents, std::span<const Window> windows) {
  return pack_windows(documents, windows, 0, [](const Window&) { return 0; });
}

LanguageModelBatch pack(const TokenDocuments& documents, std::span<const ScoredWindow> windows, int32_t ignored) {
  return pack_windows(documents, windows, ignored, [](const ScoredWindow& window) { return window.first_label; });
}

std::vector<ScoredWindow> sliding_windows(const TokenDocuments& documents, int64_t context_length, int64_t stride) {
  check_context(context_length);
  if (stride < 1 || stride > context_length)
    fail<ConfigError>("stride = {} is not between 1 and context_length = {}", stride, context_length);
  std::vector<ScoredWindow> windows;
  for_each_document(documents.offsets, [&](int64_t begin, int64_t predictions, size_t document) {
    int64_t scored = documents.seconds.empty() ? 0 : std::max(documents.seconds[document] - 1, 0);
    for (int64_t place = 0; scored < predictions; place += stride) {
      const int64_t length = std::min(context_length, predictions - place);
      if (place + length <= scored) continue;
      windows.push_back({begin + place, static_cast<int32_t>(length), static_cast<int32_t>(scored - place)});
      scored = place + length;
    }
  });
  return windows;
}

}  // namespace attune
