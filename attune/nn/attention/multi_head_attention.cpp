#include "attune/nn/attention/multi_head_attention.h"

#include <cmath>

#include "attune/base/fail.h"
#include "attune/nn/attention/query_groups.h"
#include "attune/nn/new_parameter.h"
#include "attune/ops/linear/precision.h"

namespace attune {
namespace {

int64_t head_width(const MultiHeadAttentionConfig& config) {
  return config.head_dim > 0 ? config.head_dim : config.d_model / config.heads;
}

int64_t key_heads(const MultiHeadAttentionConfig& config) {
  if (config.heads < 1 || (config.head_dim == 0 && config.d_model % config.heads != 0))
    fail<ConfigError>("d_model = {} is not divisible by heads = {}", config.d_model, config.heads);
  const int64_t kv_heads = config.kv_heads > 0 ? config.kv_heads : config.heads;
  if (config.kv_heads < 0 || config.heads % kv_heads != 0)
    fail<ConfigError>("heads = {} are not divisible by kv_heads = {}", config.heads, config.kv_heads);
  return kv_heads;
}

// Makes the three weights adjacent in memory, so that one product computes all three.
std::vector<Projection> query_key_value(const MultiHeadAttentionConfig& config) {
  const int64_t kv_heads = key_heads(config), width = head_width(config);
  const int64_t of_keys = kv_heads * width, of_queries = config.heads * width;
  return new_adjacent_projections(config.d_model, {of_queries, of_keys, of_keys}, config.query_key_value_bias);
}

std::unique_ptr<LayerNorm> make_head_norm(const MultiHeadAttentionConfig& config) {
  return config.head_norm ? std::make_unique<LayerNorm>(head_width(config), config.norm) : nullptr;
}

// Whether attention may get queries, keys and values in bfloat16. The loss of a guided head reads float32.
bool reads_bfloat16(const Tensor& x, const AttentionMask& mask) {
  return attention_reads_bfloat16(x.device()) && mask.guide == nullptr;
}

Parameter relative_table(int64_t clip, int64_t d_head) {
  return {.tensor = clip > 0 ? new_parameter({2 * clip + 1, d_head}) : Tensor{}};
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(const MultiHeadAttentionConfig& config)
    : MultiHeadAttention(config, query_key_value(config)) {}

MultiHeadAttention::MultiHeadAttention(const MultiHeadAttentionConfig& config,
                                       const std::vector<Projection>& query_key_value)
    : heads_(config.heads),
      kv_heads_(key_heads(config)),
      d_head_(head_width(config)),
      scale_(config.scale > 0 ? config.scale : 1.0 / std::sqrt(static_cast<double>(d_head_))),
      soft_cap_(config.soft_cap),
      positions_(config.positions),
      w_q_(query_key_value.at(0)),
      w_k_(query_key_value.at(1)),
      w_v_(query_key_value.at(2)),
      w_o_(config.heads * d_head_, config.d_model, config.output_bias),
      query_norm_(make_head_norm(config)),
      key_norm_(make_head_norm(config)),
      relative_keys_(relative_table(config.positions.relative_clip, d_head_)),
      relative_values_(relative_table(config.positions.relative_clip, d_head_)),
      dropout_(config.dropout) {}

Indices MultiHeadAttention::positions_for(const Sequences& sequences) const {
  return positions_.rotary ? sequences.positions() : Indices();
}

Tensor MultiHeadAttention::turned(const Tensor& rows, const LayerNorm* norm, const Indices& positions) const {
  Tensor heads = rows.reshape({-1, rows.size(-1) / d_head_, d_head_});
  if (norm != nullptr) heads = (*norm)(heads);
  return positions_.rotary ? rotary(heads, positions, *positions_.rotary) : heads;
}

Tensor MultiHeadAttention::queries(const Tensor& x, const Indices& positions) const {
  return turned(w_q_(x), query_norm_.get(), positions);
}

MultiHeadAttention::KeysAndValues MultiHeadAttention::keys_and_values(const Tensor& memory,
                                                                      const Indices& positions) const {
  const auto [k, v, none] = project_each(memory, {&w_k_.projection(), &w_v_.projection()});
  return {.keys = turned(k, key_norm_.get(), positions), .values = v.reshape({-1, kv_heads_, d_head_})};
}

MultiHeadAttention::QueriesKeysAndValues MultiHeadAttention::queries_keys_and_values(const Tensor& x,
                                                                                     const Indices& positions) const {
  const auto [q, k, v] = project_each(x, {&w_q_.projection(), &w_k_.projection(), &w_v_.projection()});
  return {.queries = turned(q, query_norm_.get(), positions),
          .memory = {.keys = turned(k, key_norm_.get(), positions), .values = v.reshape({-1, kv_heads_, d_head_})}};
}

AttentionOptions MultiHeadAttention::attention_options(const AttentionMask& mask) const {
  return {.query_sequences = mask.queries,
          .key_sequences = mask.keys,
          .causal = mask.causal,
          .mask = mask.allowed,
          .pattern = positions_.pattern,
          .alibi = positions_.alibi,
          .relative_keys = relative_keys_.tensor,
          .relative_values = relative_values_.tensor,
          .distance_bias = positions_.distance_bias(),
          .dropout = dropout_.mask(),
          .scale = scale_,
          .soft_cap = soft_cap_};
}

AttentionOutput MultiHeadAttention::attend(const HeadColumns& q, const HeadColumns& k, const HeadColumns& v,
                                           const AttentionMask& mask) const {
  const auto [heads, weights] = attention(q, k, v, attention_options(mask), mask.with_weights);
  return {w_o_.bf16_output(heads.reshape({-1, heads_ * d_head_})), weights, guided_loss(q, k, mask, scale_, soft_cap_)};
}

AttentionOutput MultiHeadAttention::attend(const Tensor& q, const KeysAndValues& memory,
                                           const AttentionMask& mask) const {
  return attend(head_columns(q), head_columns(memory.keys), head_columns(memory.values), mask);
}

// One product computes queries, keys and values; one pass rotates queries and keys. Norms of heads go between the two,
// on tensors of their own.
AttentionOutput MultiHeadAttention::self_attention(const Tensor& x, const AttentionMask& mask) const {
  if (query_norm_) {
    const auto [queries, memory] = queries_keys_and_values(x, positions_for(mask.queries));
    return attend(queries, memory, mask);
  }
  const int64_t all_heads = heads_ + 2 * kv_heads_;
  Tensor rows = project_fused(x, {&w_q_.projection(), &w_k_.projection(), &w_v_.projection()},
                              reads_bfloat16(x, mask) && !positions_.rotary);
  if (positions_.rotary)
    rows =
        rotary(rows.reshape({-1, all_heads, d_head_}), mask.queries.positions(), *positions_.rotary, heads_ + kv_heads_)
            .reshape({-1, all_heads * d_head_});
  const HeadColumns q{.x = rows, .heads = heads_, .d = d_head_};
  const HeadColumns k{.x = rows, .column = heads_ * d_head_, .heads = kv_heads_, .d = d_head_};
  const HeadColumns v{.x = rows, .column = (heads_ + kv_heads_) * d_head_, .heads = kv_heads_, .d = d_head_};
  return attend(q, k, v, mask);
}

AttentionOutput MultiHeadAttention::forward(const Tensor& query, const Tensor& memory,
                                            const AttentionMask& mask) const {
  if (query.address() == memory.address() && query.node() == memory.node()) return self_attention(query, mask);
  if (positions_.rotary || query_norm_)
    return attend(queries(query, positions_for(mask.queries)), keys_and_values(memory, positions_for(mask.keys)), mask);
  const bool bf16 = reads_bfloat16(query, mask);
  Tensor q = bf16 ? w_q_.bf16_output(query) : w_q_(query);
  Tensor rows = project_fused(memory, {&w_k_.projection(), &w_v_.projection()}, bf16);
  if (q.dtype() != rows.dtype()) {  // an adapter adds to one of them
    q = for_sums(q);
    rows = for_sums(rows);
  }
  const HeadColumns k{.x = rows, .heads = kv_heads_, .d = d_head_};
  const HeadColumns v{.x = rows, .column = kv_heads_ * d_head_, .heads = kv_heads_, .d = d_head_};
  return attend({.x = q, .heads = heads_, .d = d_head_}, k, v, mask);
}

AttentionCache MultiHeadAttention::make_cache() const {
  const DType dtype = w_k_.projection().weight.dtype();
  return {PagedRows(kv_heads_ * d_head_, dtype), PagedRows(kv_heads_ * d_head_, dtype)};
}

void MultiHeadAttention::append(const KeysAndValues& memory, std::span<const int32_t> slots,
                                AttentionCache& cache) const {
  cache.values.write(memory.values.reshape({-1, kv_heads_ * d_head_}), slots);
  cache.keys.write(memory.keys.reshape({-1, kv_heads_ * d_head_}), slots);
}

void MultiHeadAttention::append(const Tensor& memory, const Indices& positions, std::span<const int32_t> slots,
                                AttentionCache& cache) const {
  append(keys_and_values(memory, positions), slots, cache);
}

Tensor MultiHeadAttention::prompt(const Tensor& x, const AttentionMask& mask, std::span<const int32_t> slots,
                                  AttentionCache& cache) const {
  const Indices positions = positions_for(mask.queries);
  const auto [q, memory] = queries_keys_and_values(x, positions);
  append(memory, slots, cache);
  return attend(q, memory, mask).states;
}

Tensor MultiHeadAttention::step(const Tensor& x, const CachedQueries& q, std::span<const int32_t> slots,
                                AttentionCache& cache) const {
  const auto [query, memory] = queries_keys_and_values(x, q.positions);
  append(memory, slots, cache);
  return attend_cached(query, q, cache).states;
}

AttentionOutput MultiHeadAttention::attend(const Tensor& query, const CachedQueries& q,
                                           const AttentionCache& cache) const {
  return attend_cached(queries(query, q.positions), q, cache);
}

AttentionOutput MultiHeadAttention::attend_cached(const Tensor& query, const CachedQueries& q,
                                                  const AttentionCache& cache) const {
  const auto [heads, weights] = cached_heads(query, q, cache);
  return {.states = w_o_(heads.reshape({-1, heads_ * d_head_})), .weights = weights};
}

// How a row is computed depends on its own sequence alone.
AttentionResult MultiHeadAttention::cached_heads(const Tensor& query, const CachedQueries& q,
                                                 const AttentionCache& cache) const {
  const SlotTable& table = *q.table;
  const std::vector<QueryGroup> prompts = q.with_weights ? std::vector<QueryGroup>{} : prompt_groups(table);
  if (prompts.empty()) return heads_by_row(query, table, cache, q.with_weights);
  const Tensor out = Tensor::empty(query.shape(), {query.dtype(), query.device()});
  const auto between = [&](int64_t begin, int64_t end) {
    if (begin == end) return;
    const SlotTable rows = queries_of(table, begin, end);
    out.rows(begin, end).copy_from(heads_by_row(query.rows(begin, end), rows, cache, false).heads);
  };
  int64_t done = 0;
  for (const QueryGroup& prompt : prompts) {
    between(done, prompt.begin);
    out.rows(prompt.begin, prompt.end)
        .copy_from(heads_of_prompt(query.rows(prompt.begin, prompt.end), slots_of(table, prompt), cache));
    done = prompt.end;
  }
  between(done, query.size(0));
  return {.heads = out, .weights = {}};
}

AttentionResult MultiHeadAttention::heads_by_row(const Tensor& query, const SlotTable& table,
                                                 const AttentionCache& cache, bool with_weights) const {
  return cached_attention(query, cache.keys, cache.values, table,
                          {.kv_heads = kv_heads_,
                           .scale = scale_,
                           .pattern = positions_.pattern,
                           .alibi = positions_.alibi,
                           .relative_keys = relative_keys_.tensor,
                           .relative_values = relative_values_.tensor,
                           .distance_bias = positions_.distance_bias(),
                           .soft_cap = soft_cap_},
                          with_weights);
}

// A copy of the keys and values costs little beside the products of many queries with all of them.
Tensor MultiHeadAttention::heads_of_prompt(const Tensor& query, std::span<const int32_t> slots,
                                           const AttentionCache& cache) const {
  const int64_t width = kv_heads_ * d_head_;
  const HeadColumns k{.x = cache.keys.gather(slots, 0, width), .heads = kv_heads_, .d = d_head_};
  const HeadColumns v{.x = cache.values.gather(slots, 0, width), .heads = kv_heads_, .d = d_head_};
  return attention(head_columns(query), k, v,
                   attention_options({.queries = Sequences::from_lengths({static_cast<int32_t>(query.size(0))}),
                                      .keys = Sequences::from_lengths({static_cast<int32_t>(slots.size())}),
                                      .causal = true}));
}

void MultiHeadAttention::visit(Visitor& v) {
  v("w_q", w_q_);
  v("w_k", w_k_);
  v("w_v", w_v_);
  v("w_o", w_o_);
  if (query_norm_) {
    v("query_norm", *query_norm_);
    v("key_norm", *key_norm_);
  }
  if (relative_keys_.defined()) {
    v("relative_keys", relative_keys_);
    v("relative_values", relative_values_);
  }
  v("dropout", dropout_);
}

}  // namespace attune
