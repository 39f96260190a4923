#include "attune/inference/decoding/decoding_lane.h"

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
#include "attune/nn/query_groups.h"

namespace attune {
namespace {

constexpr int32_t kShort = kQueriesByRow;  // new tokens of a row that are no prompt; a draft proposes fewer

// How many of the tokens that are left of a row are read next. A last piece that is no prompt by its length would be
// read in another way than the rest: it belongs to the piece before.
int32_t next_piece(int32_t left) {
  return left <= kPromptPiece + kShort ? left : kPromptPiece;
}

// The most tokens of one row that are not yet read.
int32_t longest_left(const ActiveRequest& a) {
  int32_t most = 0;
  for (size_t r = 0; r < a.inputs.rows(); ++r) most = std::max(most, a.inputs.counts[r] - a.fed[r]);
  return most;
}

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

std::optional<FinishReason> ActiveRequest::ending() const {
  if ((request.cancel != nullptr && request.cancel->load()) ||
      (request.interrupt != nullptr && request.interrupt->load()))
    return FinishReason::interrupted;
  if (request.deadline && std::chrono::steady_clock::now() >= *request.deadline) return FinishReason::deadline;
  return std::nullopt;
}

void ActiveRequest::end_in_time() {
  if (over) return;
  cut_short = ending();
  over = cut_short.has_value();
}

void ActiveRequest::fail(std::exception_ptr why) {
  over = true;
  if (!error) error = std::move(why);
}

DecodingResult ActiveRequest::result() {
  if (error) return {.id = id, .error = error};
  try {
    DecodingResult result{.id = id, .cut_short = cut_short};
    strategy->finish(cut_short, result);
    return result;
  } catch (...) {
    return {.id = id, .error = std::current_exception()};
  }
}

// A model with its cache, in which the rows of its users stand one request after the other.
struct DecodingLane::Reader {
  const DecodingModel& model;
  ReadBy by;
  std::shared_ptr<const DecodingModel> owner;  // of a draft
  KvCache cache;
  std::vector<ActiveRequest*> users = {};

  // Of the step at work; kept for their memory.
  struct Look {
    ActiveRequest* request;
    size_t row, first, count;  // in the request; among the logits
    std::exception_ptr error = {};
  };
  std::vector<int32_t> parents = {}, tokens = {}, counts = {}, wanted = {};
  std::vector<int32_t> adapters = {};  // of the tokens
  std::vector<std::span<const int32_t>> columns = {};
  std::vector<ActiveRequest*> participants = {}, prompts = {};
  std::vector<Look> looks = {};
  DecodingOutput output = {};

  Reader(const DecodingModel& m, ReadBy r, std::shared_ptr<const DecodingModel> o)
      : model(m), by(r), owner(std::move(o)), cache(m.start()) {}

  std::span<const LogitsRow> logits_of(const Look& l) const { return std::span(output.rows).subspan(l.first, l.count); }
  void look_at(std::span<Look> some) const;
};

// Finds the candidates that the strategies ask for, and shows them these and the logits.
void DecodingLane::Reader::look_at(std::span<Look> some) const {
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

DecodingLane::DecodingLane(const DecodingModel& model)
    : model_(model), main_(std::make_unique<Reader>(model, ReadBy::model, nullptr)) {}
DecodingLane::~DecodingLane() = default;

CacheUse DecodingLane::cache_use() const {
  CacheUse use;
  for (const KvCache::Layer& layer : main_->cache.layers) {
    use.past += layer.self.bytes();
    use.source += layer.cross.bytes();
  }
  use.slots_in_use = main_->cache.past.slots_in_use() + main_->cache.source.slots_in_use();
  for (const auto& reader : drafts_) {
    use.draft += reader->cache.bytes();
    use.slots_in_use += reader->cache.past.slots_in_use() + reader->cache.source.slots_in_use();
  }
  return use;
}

void DecodingLane::release() {
  main_ = std::make_unique<Reader>(model_, ReadBy::model, nullptr);
  drafts_.clear();
}

DecodingLane::Reader& DecodingLane::draft_reader(const std::shared_ptr<const DecodingModel>& draft) {
  for (const auto& reader : drafts_)
    if (reader->owner == draft) return *reader;
  return *drafts_.emplace_back(std::make_unique<Reader>(*draft, ReadBy::draft, draft));
}

// Where the model fails, and where all newcomers end meanwhile, the cache is as it was.
void DecodingLane::add(Reader& reader, const std::vector<ActiveRequest*>& newcomers) {
  std::vector<std::span<const int32_t>> sources;
  std::vector<int32_t> adapters;  // of the tokens
  for (const ActiveRequest* a : newcomers) {
    sources.push_back(a->request.source);
    adapters.resize(adapters.size() + a->request.source.size(), adapter_of(*a, reader.by));
  }
  std::vector<int32_t> before(static_cast<size_t>(reader.cache.rows()));
  std::iota(before.begin(), before.end(), 0);
  try {
    const ExecutionScope scope([&](Execution& e) { e.unwanted = [&] { return all_end(newcomers); }; });
    const AdapterRowsScope rows(std::move(adapters));
    reader.model.add(sources, reader.cache);
  } catch (const Interrupted&) {
    reader.cache.select(before);
    for (ActiveRequest* a : newcomers) a->end_in_time();
    return;
  } catch (...) {
    reader.cache.select(before);
    throw;
  }
  reader.users.insert(reader.users.end(), newcomers.begin(), newcomers.end());
}

void DecodingLane::enter(std::vector<std::unique_ptr<ActiveRequest>> requests) {
  std::vector<ActiveRequest*> newcomers;
  for (auto& a : requests) {
    newcomers.push_back(a.get());
    requests_.push_back(std::move(a));
  }
  try {
    add(*main_, newcomers);
    for (ActiveRequest* a : newcomers)
      if (!a->over && a->strategy->draft() != nullptr) add(draft_reader(a->strategy->draft()), {a});
  } catch (...) {
    for (ActiveRequest* a : newcomers) a->fail(std::current_exception());
  }
  for (ActiveRequest* a : newcomers) {
    if (a->over) continue;
    try {
      a->strategy->start();
      a->reader = a->strategy->next(a->inputs);
      a->fresh = true;
    } catch (...) {
      a->fail(std::current_exception());
    }
  }
  remove_done();
}

void DecodingLane::step() {
  try {
    begin_step();
    step_all();
  } catch (...) {
    for (const auto& a : requests_) a->fail(std::current_exception());
    release();
  }
  remove_done();
}

void DecodingLane::remove_done() {
  apply_inputs(*main_);
  for (const auto& reader : drafts_) apply_inputs(*reader);
  std::erase_if(drafts_, [](const auto& reader) { return reader->users.empty(); });
  size_t kept = 0;
  for (auto& a : requests_) {
    if (a->over) {
      done_.push_back(std::move(a));
    } else {
      requests_[kept++] = std::move(a);
    }
  }
  requests_.resize(kept);
}

std::vector<std::unique_ptr<ActiveRequest>> DecodingLane::take_done() {
  return std::exchange(done_, {});
}

// What is asked of the rows of the users: those of requests that are over leave, others are doubled, reordered and
// forget tokens as their new inputs say.
void DecodingLane::apply_inputs(Reader& reader) {
  std::vector<int32_t>& parents = reader.parents;
  parents.clear();
  int32_t base = 0;
  for (ActiveRequest* a : reader.users) {
    const auto rows = static_cast<int32_t>(a->rows(reader.by));
    if (!a->over && a->fresh && a->reader == reader.by) {
      for (const int32_t parent : a->inputs.parents) parents.push_back(base + parent);
    } else if (!a->over) {
      for (int32_t r = 0; r < rows; ++r) parents.push_back(base + r);
    }
    base += rows;
  }
  bool same = static_cast<size_t>(base) == parents.size();
  for (size_t r = 0; same && r < parents.size(); ++r) same = parents[r] == static_cast<int32_t>(r);
  if (!same) reader.cache.select(parents);
  std::erase_if(reader.users, [](const ActiveRequest* a) { return a->over; });
  int64_t row = 0;
  for (ActiveRequest* a : reader.users) {
    if (a->fresh && a->reader == reader.by) {
      a->fresh = false;
      a->rows(reader.by) = static_cast<int64_t>(a->inputs.rows());
      a->fed.assign(a->inputs.rows(), 0);
      a->left = static_cast<int64_t>(a->inputs.tokens.size());
      for (size_t r = 0; r < a->inputs.rows(); ++r) {
        const int64_t at = row + static_cast<int64_t>(r);
        const int32_t keep = a->inputs.keep[r];
        if (keep != RowInputs::kAll && keep < reader.cache.position(at)) reader.cache.truncate(at, keep);
      }
    }
    row += a->rows(reader.by);
  }
}

// Inputs without tokens are read at once.
void DecodingLane::settle(Reader& reader) {
  for (bool again = true; again;) {
    apply_inputs(reader);
    again = false;
    for (ActiveRequest* a : reader.users) {
      if (a->over || a->fresh || a->reader != reader.by || a->left > 0) continue;
      advance(*a);
      again = true;
    }
  }
}

void DecodingLane::advance(ActiveRequest& a) {
  try {
    a.over = !a.strategy->advance();
    if (a.over) return;
    a.inputs.clear();
    a.reader = a.strategy->next(a.inputs);
    a.fresh = true;
  } catch (...) {
    a.fail(std::current_exception());
  }
}

// All users with a few tokens to read, and as many prompts as the step has room for. Prompts take turns: among those
// that are begun, the one whose last piece is longest ago comes first.
void DecodingLane::choose_participants(Reader& reader, bool source_attention) {
  std::vector<ActiveRequest*>& prompts = reader.prompts;
  prompts.clear();
  for (ActiveRequest* a : reader.users) {
    const bool reads = !a->over && !a->fresh && a->reader == reader.by && a->left > 0 &&
                       a->strategy->source_attention() == source_attention;
    a->takes_part = reads && longest_left(*a) <= kShort;
    if (reads && !a->takes_part) prompts.push_back(a);
  }
  const auto begun = [](const ActiveRequest* a) { return a->prompt_step >= 0; };
  std::stable_sort(prompts.begin(), prompts.end(), [&](const ActiveRequest* a, const ActiveRequest* b) {
    if (begun(a) != begun(b)) return begun(b) == newcomers_read_first_;
    return a->prompt_step < b->prompt_step;
  });
  for (ActiveRequest* a : prompts) {
    if (prompt_room_ <= 0) return;
    for (size_t r = 0; r < a->inputs.rows(); ++r) prompt_room_ -= next_piece(a->inputs.counts[r] - a->fed[r]);
    a->takes_part = true;
    a->prompt_step = step_;
  }
}

// The next piece of each row of those who take part; the logits come with the last piece of a row.
void DecodingLane::gather_inputs(Reader& reader, bool source_attention) {
  choose_participants(reader, source_attention);
  reader.tokens.clear();
  reader.adapters.clear();
  reader.counts.clear();
  reader.wanted.clear();
  reader.columns.clear();
  reader.participants.clear();
  reader.looks.clear();
  bool any_columns = false;
  size_t logits = 0;
  for (ActiveRequest* a : reader.users) {
    const auto rows = static_cast<size_t>(a->rows(reader.by));
    if (!a->takes_part) {
      reader.counts.resize(reader.counts.size() + rows, 0);
      reader.wanted.resize(reader.wanted.size() + rows, 0);
      reader.columns.resize(reader.columns.size() + rows);
      continue;
    }
    reader.participants.push_back(a);
    const auto columns = reader.by == ReadBy::model ? a->strategy->columns() : std::span<const int32_t>{};
    any_columns = any_columns || !columns.empty();
    const int32_t* next = a->inputs.tokens.data();
    for (size_t r = 0; r < rows; ++r) {
      const int32_t total = a->inputs.counts[r], count = next_piece(total - a->fed[r]);
      reader.tokens.insert(reader.tokens.end(), next + a->fed[r], next + a->fed[r] + count);
      reader.adapters.resize(reader.tokens.size(), adapter_of(*a, reader.by));
      next += total;
      a->fed[r] += count;
      a->left -= count;
      const int32_t wanted = count > 0 && a->fed[r] == total ? a->inputs.wanted[r] : 0;
      reader.counts.push_back(count);
      reader.wanted.push_back(wanted);
      reader.columns.push_back(columns);
      if (wanted > 0)
        reader.looks.push_back({.request = a, .row = r, .first = logits, .count = static_cast<size_t>(wanted)});
      logits += static_cast<size_t>(wanted);
    }
  }
  if (!any_columns) reader.columns.clear();
}

void DecodingLane::look(Reader& reader) {
  const ProfileScope scope("choose tokens");
  const auto reads_on_host = [](const Reader::Look& l) { return l.request->strategy->reads_on_host(); };
  if (std::any_of(reader.looks.begin(), reader.looks.end(), reads_on_host)) reader.output.read_on_host();
  if (reader.looks.empty()) return;
  const auto count = static_cast<int64_t>(reader.looks.size());
  parallel_tasks(
      count, on_host(reader.output.rows) ? row_grain(reader.model.vocab()) : count, [&](int64_t begin, int64_t end) {
        reader.look_at(std::span(reader.looks).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
      });
  for (Reader::Look& l : reader.looks)
    if (l.error) l.request->fail(std::move(l.error));
}

bool DecodingLane::pass(Reader& reader, bool source_attention) {
  gather_inputs(reader, source_attention);
  if (reader.tokens.empty()) return false;
  try {
    // A pass with prompts is long: where all its requests end meanwhile, it is given up between two layers.
    const ExecutionScope scope([&](Execution& e) { e.unwanted = [&] { return all_end(reader.participants); }; });
    const AdapterRowsScope adapters(reader.adapters);
    reader.model.step({.tokens = reader.tokens,
                       .counts = reader.counts,
                       .wanted = reader.wanted,
                       .columns = reader.columns,
                       .source_attention = source_attention},
                      reader.cache, reader.output);
  } catch (const Interrupted&) {  // only rows of these requests have changed, and they leave the cache
    for (ActiveRequest* a : reader.participants) a->end_in_time();
    reader.output.clear();
    return true;
  }
  look(reader);
  for (ActiveRequest* a : reader.participants)
    if (!a->over && a->left == 0) advance(*a);
  reader.output.clear();  // the memory of all logits of a step
  return true;
}

void DecodingLane::begin_step() {
  ++step_;
  bool newcomers = false, begun = false;
  for (const auto& a : requests_) {
    a->end_in_time();
    if (a->over || a->fresh || a->left == 0) continue;
    const bool prompt = longest_left(*a) > kShort;
    newcomers = newcomers || (prompt && a->prompt_step < 0);
    begun = begun || (prompt && a->prompt_step >= 0);
  }
  // One piece, also where nobody waits for a token: who comes next waits for this step. More tokens would not make the
  // matrix products faster.
  prompt_room_ = kPromptPiece;
  // Every second step, so that neither long prompts nor a stream of short ones keep the others waiting.
  newcomers_read_first_ = newcomers && begun && !newcomers_read_first_;
}

// A draft proposes several tokens, one after the other, before the model judges them in the same step.
void DecodingLane::step_all() {
  settle(*main_);
  for (bool more = true; more;) {
    more = false;
    for (const auto& reader : drafts_) {
      settle(*reader);
      more = pass(*reader, false) || more;
    }
  }
  settle(*main_);
  // Weights of the cross-attention are formed in another way: who wants them has a step of his own, so that he changes
  // nobody else's numbers.
  pass(*main_, false);
  const auto wants = [](const ActiveRequest* a) { return a->strategy->source_attention(); };
  if (std::any_of(main_->users.begin(), main_->users.end(), wants)) pass(*main_, true);
  settle(*main_);
  for (const auto& reader : drafts_) settle(*reader);
}

}  // namespace attune
