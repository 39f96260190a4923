#include "attune/inference/decoding/decoding_reader.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "attune/base/execution.h"
#include "attune/base/interrupt.h"
#include "attune/base/parallel_tasks.h"
#include "attune/base/profile.h"
#include "attune/inference/decoding/row_sampling.h"
#include "attune/inference/decoding/top_candidates.h"
#include "attune/kernels/row_grain.h"

namespace attune {
namespace {

int32_t adapter_of(const ActiveRequest& a, ReadBy reader) {
  return reader == ReadBy::model ? a.request.adapter : kNoAdapter;
}

bool on_host(std::span<const LogitsRow> rows) {
  return rows.front().logits->device().is_host();
}

// Whether nobody waits for the work any more.
bool all_end(const std::vector<ActiveRequest*>& requests) {
  return std::ranges::all_of(requests, [](const ActiveRequest* a) { return a->ending().has_value(); });
}

}  // namespace

DecodingReader::DecodingReader(const DecodingModel& model, ReadBy by, std::shared_ptr<const DecodingModel> owner)
    : model_(model), by_(by), owner_(std::move(owner)), cache_(model.start()) {}

void DecodingReader::add(const std::vector<ActiveRequest*>& newcomers) {
  std::vector<std::span<const int32_t>> sources;
  std::vector<int32_t> adapters;  // of the tokens
  for (const ActiveRequest* a : newcomers) {
    sources.push_back(a->request.source);
    adapters.resize(adapters.size() + a->request.source.size(), adapter_of(*a, by_));
  }
  std::vector<int32_t> before(static_cast<size_t>(cache_.rows()));
  std::iota(before.begin(), before.end(), 0);
  try {
    const ExecutionScope scope([&](Execution& e) { e.unwanted = [&] { return all_end(newcomers); }; });
    const AdapterRowsScope rows(std::move(adapters));
    model_.add(sources, cache_);
  } catch (const Interrupted&) {
    cache_.select(before);
    for (ActiveRequest* a : newcomers) a->end_given_up();
    return;
  } catch (...) {
    cache_.select(before);
    throw;
  }
  users_.insert(users_.end(), newcomers.begin(), newcomers.end());
}

void DecodingReader::apply_inputs() {
  parents_.clear();
  int32_t base = 0;
  for (ActiveRequest* a : users_) {
    const auto rows = static_cast<int32_t>(a->rows(by_));
    if (!a->over && a->fresh && a->reader == by_) {
      for (const int32_t parent : a->inputs.parents) parents_.push_back(base + parent);
    } else if (!a->over) {
      for (int32_t r = 0; r < rows; ++r) parents_.push_back(base + r);
    }
    base += rows;
  }
  bool same = static_cast<size_t>(base) == parents_.size();
  for (size_t r = 0; same && r < parents_.size(); ++r) same = parents_[r] == static_cast<int32_t>(r);
  if (!same) cache_.select(parents_);
  std::erase_if(users_, [](const ActiveRequest* a) { return a->over; });
  int64_t row = 0;
  for (ActiveRequest* a : users_) {
    if (a->fresh && a->reader == by_) {
      a->fresh = false;
      a->rows(by_) = static_cast<int64_t>(a->inputs.rows());
      a->fed.assign(a->inputs.rows(), 0);
      a->left = static_cast<int64_t>(a->inputs.tokens.size());
      for (size_t r = 0; r < a->inputs.rows(); ++r) {
        const int64_t at = row + static_cast<int64_t>(r);
        const int32_t keep = a->inputs.keep[r];
        if (keep != RowInputs::kAll && keep < cache_.position(at)) cache_.truncate(at, keep);
      }
    }
    row += a->rows(by_);
  }
}

// The next piece of each row of those who take part; the logits come with the last piece of a row.
void DecodingReader::gather_inputs() {
  tokens_.clear();
  adapters_.clear();
  counts_.clear();
  wanted_.clear();
  columns_.clear();
  participants_.clear();
  looks_.clear();
  bool any_columns = false;
  size_t logits = 0;
  for (ActiveRequest* a : users_) {
    const auto rows = static_cast<size_t>(a->rows(by_));
    if (!a->takes_part) {
      counts_.resize(counts_.size() + rows, 0);
      wanted_.resize(wanted_.size() + rows, 0);
      columns_.resize(columns_.size() + rows);
      continue;
    }
    participants_.push_back(a);
    const auto columns = by_ == ReadBy::model ? a->strategy->columns() : std::span<const int32_t>{};
    any_columns = any_columns || !columns.empty();
    const int32_t* next = a->inputs.tokens.data();
    for (size_t r = 0; r < rows; ++r) {
      const int32_t total = a->inputs.counts[r], count = a->next_piece(r);
      tokens_.insert(tokens_.end(), next + a->fed[r], next + a->fed[r] + count);
      adapters_.resize(tokens_.size(), adapter_of(*a, by_));
      next += total;
      a->fed[r] += count;
      a->left -= count;
      const int32_t wanted = count > 0 && a->fed[r] == total ? a->inputs.wanted[r] : 0;
      counts_.push_back(count);
      wanted_.push_back(wanted);
      columns_.push_back(columns);
      if (wanted > 0) looks_.push_back({.request = a, .row = r, .first = logits, .count = static_cast<size_t>(wanted)});
      logits += static_cast<size_t>(wanted);
    }
  }
  if (!any_columns) columns_.clear();
}

// Finds the candidates that the strategies ask for, and shows them these and the logits.
void DecodingReader::look_at(std::span<Look> some) const {
  std::vector<CandidateJob> jobs;
  std::vector<SamplingJob*> sampling_jobs;
  std::vector<std::optional<size_t>> job_of(some.size());
  const auto guarded = [](Look& l, auto&& work) {
    try {
      if (!l.error) work(*l.request->strategy);
    } catch (...) {
      l.error = std::current_exception();
    }
  };
  for (size_t i = 0; i < some.size(); ++i)
    guarded(some[i], [&](DecodingStrategy& strategy) {
      if (const auto job = strategy.ask(some[i].row, logits_of(some[i]))) {
        job_of[i] = jobs.size();
        jobs.push_back(*job);
      }
      if (on_host(logits_of(some[i]))) return;
      if (SamplingJob* const job = strategy.ask_sampling(some[i].row, logits_of(some[i]))) sampling_jobs.push_back(job);
    });
  top_candidates(jobs);
  sample_rows(sampling_jobs);
  for (size_t i = 0; i < some.size(); ++i)
    guarded(some[i], [&](DecodingStrategy& strategy) {
      strategy.look(some[i].row, logits_of(some[i]), job_of[i] ? jobs[*job_of[i]].found : 0);
    });
}

void DecodingReader::look() {
  const ProfileScope scope("choose tokens");
  const auto reads_on_host = [](const Look& l) { return l.request->strategy->reads_on_host(); };
  if (std::any_of(looks_.begin(), looks_.end(), reads_on_host)) output_.read_on_host();
  if (looks_.empty()) return;
  const auto count = static_cast<int64_t>(looks_.size());
  parallel_tasks(count, on_host(output_.rows) ? row_grain(model_.vocab()) : count, [&](int64_t begin, int64_t end) {
    look_at(std::span(looks_).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
  });
  for (Look& l : looks_)
    if (l.error) l.request->fail(std::move(l.error));
}

bool DecodingReader::read(bool source_attention) {
  gather_inputs();
  if (tokens_.empty()) return false;
  try {
    // A pass with prompts is long: where all its requests end meanwhile, it is given up between two layers.
    const ExecutionScope scope([&](Execution& e) { e.unwanted = [&] { return all_end(participants_); }; });
    const AdapterRowsScope adapters(adapters_);
    model_.step({.tokens = tokens_,
                 .counts = counts_,
                 .wanted = wanted_,
                 .columns = columns_,
                 .source_attention = source_attention},
                cache_, output_);
  } catch (const Interrupted&) {  // only rows of these requests have changed, and they leave the cache
    for (ActiveRequest* a : participants_) a->end_given_up();
    participants_.clear();
    return true;
  }
  look();
  return true;
}

}  // namespace attune
