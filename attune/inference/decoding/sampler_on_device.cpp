#include "attune/inference/decoding/sampler_on_device.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attune {
namespace {

// How many tokens are asked for where top_p limits them: most nuclei are smaller.
constexpr size_t kNucleus = 256;

// Weights that differ by less than this, relatively, may come in another order once they are divided by their sum.
constexpr double kNearWeights = 1e-12;

bool near(double weight, double other) {
  return std::abs(weight - other) <= kNearWeights * std::max(weight, other);
}

enum class Choice { greedy, top_k, nucleus, all };

Choice choice_of(const SamplingConfig& config) {
  if (config.temperature == 0) return Choice::greedy;
  if (config.top_k > 0) return Choice::top_k;
  return config.top_p < 1 ? Choice::nucleus : Choice::all;
}

size_t likeliest_for(const SamplingConfig& config) {
  switch (choice_of(config)) {
    case Choice::greedy:
      return 1;
    case Choice::top_k:
      return static_cast<size_t>(config.top_k);
    case Choice::nucleus:
      return kNucleus;
    case Choice::all:
      break;
  }
  return 0;
}

// The index of the weight in whose share of `total` the number lies, by more than the margin on both sides; -1 if that
// is not certain. The first weight needs no margin below it, and the last none above it: it gets what rounding leaves.
int64_t place_of(double number, std::span<const TokenValue> weights, double total, double margin) {
  double before = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double after = before + weights[i].value / total;
    const bool last = i + 1 == weights.size();
    if (last || number < after - margin) return i == 0 || number > before + margin ? static_cast<int64_t>(i) : -1;
    if (number <= after + margin) return -1;
    before = after;
  }
  return -1;
}

}  // namespace

bool RowDraw::suits(const SamplingConfig& config) {
  const Choice choice = choice_of(config);
  if (choice == Choice::top_k) return config.top_k <= kMostLikeliest;
  return choice != Choice::all || config.repetition_penalty == 1;
}

SamplingJob* RowDraw::ask(const LogitsRow& row, const SamplingConfig& config, const Inputs& inputs) {
  config_ = &config;
  const Choice choice = choice_of(config);
  job_ = {.logits = row.logits, .row = row.row, .size = row.size};
  job_.excluded = inputs.excluded;
  job_.more_excluded = inputs.more_excluded;
  const auto outside = [&](int32_t token) { return token < 0 || token >= row.size; };
  if (config.repetition_penalty != 1 && std::ranges::any_of(inputs.past, outside)) return nullptr;
  set_aside(inputs.past);
  if (choice != Choice::greedy) job_.temperature = config.temperature;
  if (choice == Choice::all) job_.least = config.min_p;
  job_.wants_sum = choice == Choice::nucleus || choice == Choice::all;
  likeliest_.resize(likeliest_for(config));
  job_.likeliest = likeliest_;
  drawn_.resize(inputs.numbers.size());
  numbers_ = inputs.numbers;
  if (choice == Choice::all) {
    job_.numbers = numbers_;
    job_.drawn = drawn_;
  }
  return &job_;
}

// Tokens that get a penalty, which the host gives them in double precision.
void RowDraw::set_aside(std::span<const int32_t> past) {
  aside_.clear();
  if (config_->repetition_penalty != 1) {
    std::vector<bool> known(static_cast<size_t>(job_.size));
    for (const auto excluded : {job_.excluded, job_.more_excluded})
      for (const int32_t token : excluded)
        if (token >= 0 && token < job_.size) known[static_cast<size_t>(token)] = true;
    for (const int32_t token : past) {
      if (known[static_cast<size_t>(token)]) continue;
      known[static_cast<size_t>(token)] = true;
      aside_.push_back(token);
    }
  }
  logits_aside_.resize(aside_.size());
  job_.set_aside = aside_;
  job_.logits_aside = logits_aside_;
}

std::vector<TokenValue> RowDraw::known_logits() const {
  std::vector<TokenValue> logits;
  for (int64_t i = 0; i < job_.found; ++i) {
    const auto& [token, logit] = likeliest_[static_cast<size_t>(i)];
    logits.push_back({token, static_cast<double>(logit)});
  }
  for (size_t i = 0; i < aside_.size(); ++i)
    if (const double logit = penalized(static_cast<double>(logits_aside_[i]), config_->repetition_penalty);
        logit > -std::numeric_limits<double>::infinity())
      logits.push_back({aside_[i], logit});
  std::sort(logits.begin(), logits.end(), better);
  return logits;
}

// Each of `size` additions, on the host and on the device, rounds by 2^-53 of the sum at most, and each weight is a few
// such steps off; the constant is for that.
double RowDraw::margin() const {
  return (static_cast<double>(job_.size) + 1024) * 0x1p-50;
}

bool RowDraw::draw(std::span<int32_t> tokens) const {
  if (!job_.valid) return false;  // token_distribution() says which logit is wrong
  switch (choice_of(*config_)) {
    case Choice::greedy:
    case Choice::top_k:
      return draw_from_likeliest(tokens);
    case Choice::nucleus:
      return draw_from_nucleus(tokens);
    case Choice::all:
      break;
  }
  return draw_from_all(tokens);
}

bool RowDraw::draw_from_likeliest(std::span<int32_t> tokens) const {
  std::vector<TokenValue> logits = known_logits();
  if (logits.empty()) return false;
  if (config_->temperature == 0) {
    std::ranges::fill(tokens, logits.front().token);
    return true;
  }
  // token_distribution() leaves the tokens in the order of their ids where top_k takes none away.
  const int64_t possible = job_.possible - job_.found + std::ssize(logits);
  if (config_->top_k < possible) {
    logits.resize(static_cast<size_t>(config_->top_k));
  } else {
    std::ranges::sort(logits, {}, &TokenValue::token);
  }
  const TokenDistribution distribution = distribution_of(std::move(logits), *config_);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = attune::draw(distribution, numbers_[i]);
  return true;
}

// The nucleus is certain where the sum passes top_p clearly, no two weights in it are so near each other that the host
// may order them the other way round, and all tokens that the device kept are clearly less likely.
bool RowDraw::draw_from_nucleus(std::span<int32_t> tokens) const {
  std::vector<TokenValue> weights = known_logits();
  if (weights.empty()) return false;
  const double largest = weights.front().value, temperature = config_->temperature;
  const auto weight_of = [&](double logit) { return std::exp((logit - largest) / temperature); };
  double total = job_.possible > 0 ? job_.sum * weight_of(job_.largest) : 0;
  for (size_t i = 0; i < aside_.size(); ++i)
    total += weight_of(penalized(static_cast<double>(logits_aside_[i]), config_->repetition_penalty));
  const bool complete = job_.possible == job_.found;
  const double unknown =  // no other token has a larger weight
      complete ? 0 : weight_of(static_cast<double>(likeliest_[static_cast<size_t>(job_.found) - 1].logit));
  for (TokenValue& w : weights) w.value = weight_of(w.value);
  std::sort(weights.begin(), weights.end(), better);  // equal weights of different logits come by their ids
  double sum = 0;
  size_t kept = 0;
  while (sum < config_->top_p) {
    if (kept == weights.size()) return false;
    const double weight = weights[kept].value;
    if (!complete && (weight < unknown || near(weight, unknown))) return false;
    if (kept > 0 && weight != weights[kept - 1].value && near(weight, weights[kept - 1].value)) return false;
    sum += weight / total;
    if (std::abs(sum - config_->top_p) <= margin()) return false;
    ++kept;
  }
  if (kept < weights.size() && weights[kept].value != weights[kept - 1].value &&
      near(weights[kept].value, weights[kept - 1].value))
    return false;
  weights.resize(kept);
  for (const TokenValue& w : weights)  // the likeliest one always stays
    if (w.value < 1 && near(w.value, config_->min_p)) return false;
  std::erase_if(weights, [&](const TokenValue& w) { return w.value < config_->min_p; });
  double share = 0;
  for (const TokenValue& w : weights) share += w.value;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const int64_t place = place_of(numbers_[i], weights, share, margin());
    if (place < 0) return false;
    tokens[i] = weights[static_cast<size_t>(place)].token;
  }
  return true;
}

bool RowDraw::draw_from_all(std::span<int32_t> tokens) const {
  if (job_.possible == 0 || job_.near_least) return false;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto& [token, before, after] = drawn_[i];
    if (token < 0 || !(numbers_[i] > before / job_.sum + margin()) || !(numbers_[i] < after / job_.sum - margin()))
      return false;
    tokens[i] = token;
  }
  return true;
}

}  // namespace attune
