#include "attune/inference/decoding/decoding_lane.h"

#include <algorithm>
#include <utility>

namespace attune {

DecodingLane::DecodingLane(const DecodingModel& model)
    : model_(model), main_(std::make_unique<DecodingReader>(model, ReadBy::model)) {}

CacheUse DecodingLane::cache_use() const {
  CacheUse use;
  for (const KvCache::Layer& layer : main_->cache().layers) {
    use.past += layer.self.bytes();
    use.source += layer.cross.bytes();
  }
  use.slots_in_use = main_->cache().past.slots_in_use() + main_->cache().source.slots_in_use();
  for (const auto& reader : drafts_) {
    use.draft += reader->cache().bytes();
    use.slots_in_use += reader->cache().past.slots_in_use() + reader->cache().source.slots_in_use();
  }
  return use;
}

void DecodingLane::release() {
  main_ = std::make_unique<DecodingReader>(model_, ReadBy::model);
  drafts_.clear();
}

DecodingReader& DecodingLane::draft_reader(const std::shared_ptr<const DecodingModel>& draft) {
  for (const auto& reader : drafts_)
    if (reader->owner() == draft) return *reader;
  return *drafts_.emplace_back(std::make_unique<DecodingReader>(*draft, ReadBy::draft, draft));
}

void DecodingLane::enter(std::vector<std::unique_ptr<ActiveRequest>>&& requests) {
  std::vector<ActiveRequest*> newcomers;
  newcomers.reserve(requests.size());
  requests_.reserve(requests_.size() + requests.size());  // from here on no request can be lost
  for (auto& a : requests) {
    newcomers.push_back(a.get());
    requests_.push_back(std::move(a));
  }
  try {
    main_->add(newcomers);
  } catch (...) {
    for (ActiveRequest* a : newcomers) a->fail(std::current_exception());
  }
  for (ActiveRequest* a : newcomers) {
    if (a->over) continue;
    try {
      if (a->strategy->draft() != nullptr) draft_reader(a->strategy->draft()).add({a});
      if (a->over) continue;  // it ended while the draft read its source
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
  main_->apply_inputs();
  for (const auto& reader : drafts_) reader->apply_inputs();
  std::erase_if(drafts_, [](const auto& reader) { return reader->users().empty(); });
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

// Advances the requests whose inputs have no tokens: there is nothing to read.
void DecodingLane::settle(DecodingReader& reader) {
  for (bool again = true; again;) {
    reader.apply_inputs();
    again = false;
    for (ActiveRequest* a : reader.users()) {
      if (a->over || a->fresh || a->reader != reader.by() || a->left > 0) continue;
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
void DecodingLane::choose_participants(const DecodingReader& reader, bool source_attention) {
  prompts_.clear();
  for (ActiveRequest* a : reader.users()) {
    const bool reads = !a->over && !a->fresh && a->reader == reader.by() && a->left > 0 &&
                       a->strategy->source_attention() == source_attention;
    a->takes_part = reads && !a->reads_prompt();
    if (reads && !a->takes_part) prompts_.push_back(a);
  }
  const auto begun = [](const ActiveRequest* a) { return a->prompt_step >= 0; };
  std::stable_sort(prompts_.begin(), prompts_.end(), [&](const ActiveRequest* a, const ActiveRequest* b) {
    if (begun(a) != begun(b)) return begun(b) == newcomers_read_first_;
    return a->prompt_step < b->prompt_step;
  });
  for (ActiveRequest* a : prompts_) {
    if (prompt_room_ <= 0) return;
    for (size_t r = 0; r < a->inputs.rows(); ++r) prompt_room_ -= a->next_piece(r);
    a->takes_part = true;
    a->prompt_step = step_;
  }
}

bool DecodingLane::pass(DecodingReader& reader, bool source_attention) {
  choose_participants(reader, source_attention);
  if (!reader.read(source_attention)) return false;
  for (ActiveRequest* a : reader.participants())
    if (!a->over && a->left == 0) advance(*a);
  reader.clear_output();  // the memory of all logits of a step
  return true;
}

void DecodingLane::begin_step() {
  ++step_;
  bool newcomers = false, begun = false;
  for (const auto& a : requests_) {
    a->end_in_time();
    if (a->over || a->fresh || a->left == 0) continue;
    const bool prompt = a->reads_prompt();
    newcomers = newcomers || (prompt && a->prompt_step < 0);
    begun = begun || (prompt && a->prompt_step >= 0);
  }
  // One piece, even where no request waits for a token: one that comes next waits for this step. More tokens would not
  // make the matrix products faster.
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
  // Cross-attention with weights is computed in another way. Requests that want them have a pass of their own, so that
  // they do not change the numbers of others.
  pass(*main_, false);
  const auto wants = [](const ActiveRequest* a) { return a->strategy->source_attention(); };
  if (std::any_of(main_->users().begin(), main_->users().end(), wants)) pass(*main_, true);
  settle(*main_);
  for (const auto& reader : drafts_) settle(*reader);
}

}  // namespace attune
