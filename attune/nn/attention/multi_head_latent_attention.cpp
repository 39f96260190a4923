#include "attune/nn/attention/multi_head_latent_attention.h"

#include <algorithm>
#include <cmath>

#include "attune/base/fail.h"
#include "attune/nn/attention/latent_cost.h"
#include "attune/nn/attention/query_groups.h"
#include "attune/ops/attention/concat_heads.h"
#include "attune/ops/linear/per_head_matmul.h"
#include "attune/ops/linear/precision.h"

namespace attune {
namespace {

std::unique_ptr<Linear> optional_linear(bool wanted, int64_t in, int64_t out, bool bias) {
  return wanted ? std::make_unique<Linear>(in, out, bias) : nullptr;
}

std::unique_ptr<LayerNorm> optional_norm(bool wanted, int64_t width) {
  return wanted ? std::make_unique<LayerNorm>(width, LayerNormOptions{.form = NormForm::rms, .epsilon = 1e-6})
                : nullptr;
}

int64_t checked_head(const MultiHeadLatentAttentionConfig& c) {
  if (c.heads < 1 || (c.head_dim == 0 && c.d_model % c.heads != 0))
    fail<ConfigError>("d_model = {} is not divisible by heads = {}", c.d_model, c.heads);
  if (c.positions.rotary.has_value() != (c.rotary_dim > 0))
    fail<ConfigError>("rotary_dim = {}: latent attention needs it above 0 for rotary positions, and 0 without",
                      c.rotary_dim);
  if (c.positions.relative_clip > 0) fail<ConfigError>("latent attention has no relative positions");
  return c.head_dim > 0 ? c.head_dim : c.d_model / c.heads;
}

int64_t value_head(const MultiHeadLatentAttentionConfig& c) {
  return c.value_dim > 0 ? c.value_dim : checked_head(c);
}

// Absorbed decoding reads the decompressions as plain tensors, head by head.
std::vector<Projection> decompressions(const MultiHeadLatentAttentionConfig& c) {
  std::vector<Projection> projections =
      new_adjacent_projections(c.latent_dim, {c.heads * checked_head(c), c.heads * value_head(c)}, false);
  for (Projection& projection : projections) projection.weight.use = ParameterUse::product_and_elements;
  return projections;
}

// The adapters of the rows of a group; empty where no row has one.
std::vector<int32_t> adapters_of(const QueryGroup& group) {
  const AdapterRows* const rows = execution().adapter_rows;
  if (rows == nullptr) return {};
  const std::span<const int32_t> own =
      rows->adapters().subspan(static_cast<size_t>(group.begin), static_cast<size_t>(group.size()));
  return {own.begin(), own.end()};
}

}  // namespace

MultiHeadLatentAttention::MultiHeadLatentAttention(const MultiHeadLatentAttentionConfig& c)
    : MultiHeadLatentAttention(c, decompressions(c)) {}

MultiHeadLatentAttention::MultiHeadLatentAttention(const MultiHeadLatentAttentionConfig& c,
                                                   const std::vector<Projection>& decompress)
    : config_(c),
      d_head_(checked_head(c)),
      d_value_(value_head(c)),
      w_q_compress_(optional_linear(c.query_latent_dim > 0, c.d_model, c.query_latent_dim, c.bias)),
      query_norm_(optional_norm(c.latent_norm && c.query_latent_dim > 0, c.query_latent_dim)),
      latent_norm_(optional_norm(c.latent_norm, c.latent_dim)),
      w_q_(c.query_latent_dim > 0 ? c.query_latent_dim : c.d_model, c.heads * d_head_, false),
      w_kv_compress_(c.d_model, c.latent_dim, c.bias),
      w_k_decompress_(decompress.at(0)),
      w_v_decompress_(decompress.at(1)),
      w_o_(c.heads * d_value_, c.d_model, c.bias),
      w_q_rotary_(optional_linear(c.rotary_dim > 0, c.query_latent_dim > 0 ? c.query_latent_dim : c.d_model,
                                  c.heads * c.rotary_dim, false)),
      w_k_rotary_(optional_linear(c.rotary_dim > 0, c.d_model, c.rotary_dim, c.bias)),
      dropout_(c.dropout) {}

double MultiHeadLatentAttention::scale() const {
  return config_.scale > 0 ? config_.scale : 1.0 / std::sqrt(static_cast<double>(d_head_ + config_.rotary_dim));
}

Tensor MultiHeadLatentAttention::query_input(const Tensor& x) const {
  if (!w_q_compress_) return x;
  const Tensor compressed = (*w_q_compress_)(x);
  return query_norm_ ? (*query_norm_)(compressed) : compressed;
}

Tensor MultiHeadLatentAttention::rotary_query(const Tensor& query_input, const Indices& positions) const {
  return rotary((*w_q_rotary_)(query_input).reshape({-1, config_.heads, config_.rotary_dim}), positions,
                *config_.positions.rotary);
}

Indices MultiHeadLatentAttention::positions_for(const Sequences& sequences) const {
  return w_k_rotary_ ? sequences.positions() : Indices();
}

MultiHeadLatentAttention::Memory MultiHeadLatentAttention::memory_of(const Tensor& x, const Indices& positions) const {
  const Tensor compressed = w_kv_compress_(x);
  Memory memory{.latent = latent_norm_ ? (*latent_norm_)(compressed) : compressed, .rotary_key = {}};
  if (w_k_rotary_)
    memory.rotary_key =
        rotary((*w_k_rotary_)(x).reshape({-1, 1, config_.rotary_dim}), positions, *config_.positions.rotary);
  return memory;
}

AttentionOutput MultiHeadLatentAttention::attend(const Tensor& query, const Indices& positions, const Memory& memory,
                                                 const AttentionMask& mask) const {
  const Tensor q_in = query_input(query);
  const Tensor q = w_q_(q_in);
  if (w_q_rotary_) {
    const Tensor with_rotary = concat_heads(split_heads(q), rotary_query(q_in, positions));
    const Tensor k = concat_heads(split_heads(w_k_decompress_(memory.latent)), memory.rotary_key);
    const Tensor v = w_v_decompress_(memory.latent).reshape({-1, config_.heads, d_value_});
    return attend(head_columns(with_rotary), head_columns(k), head_columns(v), mask);
  }
  const Tensor rows = project_fused(memory.latent, {&w_k_decompress_.projection(), &w_v_decompress_.projection()});
  const HeadColumns k{.x = rows, .heads = config_.heads, .d = d_head_};
  const HeadColumns v{.x = rows, .column = config_.heads * d_head_, .heads = config_.heads, .d = d_value_};
  return attend({.x = q, .heads = config_.heads, .d = d_head_}, k, v, mask);
}

AttentionOutput MultiHeadLatentAttention::attend(const HeadColumns& q, const HeadColumns& k, const HeadColumns& v,
                                                 const AttentionMask& mask) const {
  const auto [heads, weights] = attention(q, k, v,
                                          {.query_sequences = mask.queries,
                                           .key_sequences = mask.keys,
                                           .causal = mask.causal,
                                           .mask = mask.allowed,
                                           .pattern = config_.positions.pattern,
                                           .alibi = config_.positions.alibi,
                                           .distance_bias = config_.positions.distance_bias(),
                                           .dropout = dropout_.mask(),
                                           .scale = scale()},
                                          mask.with_weights);
  return {w_o_.bf16_output(heads.reshape({-1, config_.heads * d_value_})), weights, guided_loss(q, k, mask, scale())};
}

AttentionOutput MultiHeadLatentAttention::forward(const Tensor& query, const Tensor& memory,
                                                  const AttentionMask& mask) const {
  return attend(query, positions_for(mask.queries), memory_of(memory, positions_for(mask.keys)), mask);
}

AttentionCache MultiHeadLatentAttention::make_cache() const {
  return {PagedRows(cache_width(), w_kv_compress_.projection().weight.dtype()), PagedRows()};
}

void MultiHeadLatentAttention::append(const Memory& memory, std::span<const int32_t> slots,
                                      AttentionCache& cache) const {
  if (!w_k_rotary_) return cache.keys.write(memory.latent, slots);
  const Tensor row = concat_heads(memory.latent.reshape({-1, 1, config_.latent_dim}), memory.rotary_key);
  cache.keys.write(row.reshape({-1, cache_width()}), slots);
}

void MultiHeadLatentAttention::append(const Tensor& memory, const Indices& positions, std::span<const int32_t> slots,
                                      AttentionCache& cache) const {
  append(memory_of(memory, positions), slots, cache);
}

Tensor MultiHeadLatentAttention::prompt(const Tensor& x, const AttentionMask& mask, std::span<const int32_t> slots,
                                        AttentionCache& cache) const {
  const Indices positions = positions_for(mask.queries);
  const Memory memory = memory_of(x, positions);
  append(memory, slots, cache);
  return attend(x, positions, memory, mask).states;
}

// A group has only rows of one sequence or sentence, so the choice for a row does not depend on the rest of the batch.
bool MultiHeadLatentAttention::expands(const CachedQueries& q, int64_t begin, int64_t end) const {
  const QueryGroup group{begin, end};
  const AttentionPositions& positions = config_.positions;
  const bool plain = std::holds_alternative<FullAttention>(positions.pattern) && !positions.alibi && !positions.bias;
  const bool causal = is_causal(*q.table, group);
  if (!plain || q.with_weights || !(causal || sees_the_same(*q.table, group))) return false;
  if (causal && group.size() <= kQueriesByRow) return false;  // as each of them would be read alone
  return !absorbs({.heads = config_.heads,
                   .d_head = d_head_,
                   .d_value = d_value_,
                   .latent_dim = config_.latent_dim,
                   .rotary_dim = config_.rotary_dim,
                   .queries = group.size(),
                   .slots = static_cast<int64_t>(slots_of(*q.table, group).size())});
}

AttentionOutput MultiHeadLatentAttention::attend(const Tensor& query, const CachedQueries& q,
                                                 const AttentionCache& cache) const {
  const std::vector<QueryGroup> groups = query_groups(*q.table);
  std::vector<bool> expanded;
  for (const QueryGroup& g : groups) expanded.push_back(expands(q, g.begin, g.end));
  if (std::find(expanded.begin(), expanded.end(), true) == expanded.end()) return attend_absorbed(query, q, cache);
  // The query may be bfloat16, and so may what the expanded form returns: the groups meet in the type of sums.
  const Tensor out =
      Tensor::empty({query.size(0), config_.d_model}, {w_o_.projection().weight.dtype(), query.device()});
  for (size_t i = 0, next = 0; i < groups.size(); i = next) {
    next = i + 1;
    while (!expanded[i] && next < groups.size() && !expanded[next]) ++next;  // absorbed rows share their products
    const QueryGroup g{groups[i].begin, groups[next - 1].end};
    const SlotTable table = queries_of(*q.table, g.begin, g.end);
    const CachedQueries part{.positions = q.positions.empty() ? Indices() : q.positions.slice(g.begin, g.end),
                             .table = &table};
    const Tensor rows = query.rows(g.begin, g.end);
    const AdapterRowsScope adapters(adapters_of(g));
    const Tensor states = expanded[i] ? attend_expanded(rows, part, cache) : attend_absorbed(rows, part, cache).states;
    out.rows(g.begin, g.end).copy_from(for_sums(states));
  }
  return {.states = out, .weights = {}};  // if weights are wanted, all groups are absorbed
}

// Computes keys and values as in training, from latents that are gathered from the cache.
Tensor MultiHeadLatentAttention::attend_expanded(const Tensor& query, const CachedQueries& q,
                                                 const AttentionCache& cache) const {
  const std::span<const int32_t> slots = slots_of(*q.table, {0, query.size(0)});
  const int64_t latent = config_.latent_dim;
  Memory memory{.latent = cache.keys.gather(slots, 0, latent), .rotary_key = {}};
  if (w_k_rotary_)
    memory.rotary_key = cache.keys.gather(slots, latent, cache_width()).reshape({-1, 1, config_.rotary_dim});
  return attend(query, q.positions, memory,
                {.queries = Sequences::from_lengths({static_cast<int32_t>(query.size(0))}),
                 .keys = Sequences::from_lengths({static_cast<int32_t>(slots.size())}),
                 .causal = is_causal(*q.table, {0, query.size(0)})})
      .states;
}

AttentionOutput MultiHeadLatentAttention::attend_absorbed(const Tensor& query, const CachedQueries& q,
                                                          const AttentionCache& cache) const {
  const Tensor q_in = query_input(query);
  // All heads read the latents both as keys and as values: attention with one key head of width latent_dim.
  Tensor absorbed_query = per_head_matmul(split_heads(w_q_(q_in)), w_k_decompress_.projection().weight.tensor);
  if (w_q_rotary_) absorbed_query = concat_heads(absorbed_query, rotary_query(q_in, q.positions));
  const auto [latents, weights] = cached_attention(absorbed_query, cache.keys, cache.keys, *q.table,
                                                   {.kv_heads = 1,
                                                    .d_v = config_.latent_dim,
                                                    .scale = scale(),
                                                    .pattern = config_.positions.pattern,
                                                    .alibi = config_.positions.alibi,
                                                    .distance_bias = config_.positions.distance_bias()},
                                                   q.with_weights);
  const Tensor heads = per_head_matmul_transposed(latents, w_v_decompress_.projection().weight.tensor);
  return {.states = w_o_(heads.reshape({-1, config_.heads * d_value_})), .weights = weights};
}

void MultiHeadLatentAttention::visit(Visitor& v) {
  if (w_q_compress_) v("w_q_compress", *w_q_compress_);
  if (query_norm_) v("query_norm", *query_norm_);
  v("w_q", w_q_);
  v("w_kv_compress", w_kv_compress_);
  if (latent_norm_) v("latent_norm", *latent_norm_);
  v("w_k_decompress", w_k_decompress_);
  v("w_v_decompress", w_v_decompress_);
  if (w_q_rotary_) {
    v("w_q_rotary", *w_q_rotary_);
    v("w_k_rotary", *w_k_rotary_);
  }
  v("w_o", w_o_);
  v("dropout", dropout_);
}

}  // namespace attune
