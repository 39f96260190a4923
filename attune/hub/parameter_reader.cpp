#include "attune/hub/parameter_reader.h"

#include <algorithm>
#include <utility>

#include "attune/hub/transposed_values.h"
#include "attune/nn/adjacent_runs.h"
#include "attune/nn/parameter_uses.h"
#include "attune/ops/linear/precision.h"
#include "attune/tensor/host_view.h"

namespace attune {
namespace {

// For parameters that are one product (queries, keys and values): the tensors, adjacent, that take their values, by
// name. `narrow`: in bfloat16 where is_product_matrix().
std::map<std::string, Tensor> adjacent_places(Module& module, bool narrow) {
  const ParameterUses uses(module);
  std::vector<NamedParameter> rounded, others;
  for (const auto& run : adjacent_runs(named_parameters(module))) {
    if (run.size() == 1) continue;
    for (const NamedParameter& p : run) (narrow && uses.is_product_matrix(*p.tensor) ? rounded : others).push_back(p);
  }
  auto places =
      made_of_runs(rounded, [](const Tensor& run) { return Tensor::empty(run.shape(), {.dtype = DType::bf16}); });
  for (const NamedParameter& p : others) places.emplace(p.name, p.tensor->detach());
  return places;
}

bool is_transposed(const FoundParameter& p) {
  return p.transform.transposed && p.parameter.tensor->rank() == 2;
}

// Whether a parameter is adjacent rows of one stored tensor, as they are.
bool is_stored_so(const FoundParameter& p) {
  return p.stored.size() == 1 && !is_transposed(p) && p.transform.period == 0 && p.transform.add == 0;
}

// target = `run` rows of every `period` from row `first` on, plus `add`. A period of 0 has all rows from `first` on.
template <class T>
void gather_rows(const Tensor& rows, const Transform& t, const Tensor& target) {
  const HostView view(rows);
  const std::span<const T> values = view.as<T>();
  const auto wanted = static_cast<size_t>(target.numel());
  const size_t columns = wanted == 0 ? 0 : wanted / static_cast<size_t>(target.size(0));
  const size_t run = t.period == 0 ? wanted : static_cast<size_t>(t.run) * columns;
  std::vector<T> gathered;
  gathered.reserve(wanted);
  for (size_t begin = static_cast<size_t>(t.first) * columns; gathered.size() < wanted;
       begin += static_cast<size_t>(t.period) * columns) {
    const std::span<const T> part = values.subspan(begin, run);
    gathered.insert(gathered.end(), part.begin(), part.end());
  }
  if (t.add != 0)
    for (T& value : gathered) value = static_cast<T>(static_cast<float>(value) + static_cast<float>(t.add));
  target.assign(std::span<const T>(gathered));
}

// Calls f with float or bfloat16.
template <class F>
void with_type_of(const Tensor& x, F&& f) {
  if (x.dtype() == DType::bf16) return f(bfloat16{});
  f(float{});
}

}  // namespace

ParameterReader::ParameterReader(Module& module, std::vector<FoundParameter> found, const HubTensors& tensors,
                                 LoadedWeights weights)
    : module_(module), tensors_(tensors), weights_(weights) {
  const ParameterUses uses(module);
  for (FoundParameter& p : found) {
    const Tensor& own = *p.parameter.tensor;
    const bool stays_bfloat16 =
        weights != LoadedWeights::mapped && p.transform.add == 0 && uses.is_matrix(own) &&
        std::ranges::all_of(p.stored, [&](const std::string& name) { return tensors.is_bfloat16(name); });
    const bool is_product = uses.is_product_matrix(own);
    const bool rounded = weights == LoadedWeights::bfloat16_tensors && is_product && !stays_bfloat16;
    const bool later =
        are_panels(weights) && is_product && !(stays_bfloat16 && is_stored_so(p));  // pages of the file need no copy
    wanted_.push_back({std::move(p), stays_bfloat16 ? Bfloat16::kept : Bfloat16::widened, rounded, later});
    ++rows_for(wanted_.back()).waiting;
  }
}

ParameterReader::Rows& ParameterReader::rows_for(const Wanted& p) {
  return rows_[{p.found.stored, is_transposed(p.found), p.storage}];
}

// The rows of a parameter's stored tensors, one tensor below the other: pages of the file where that has them so.
Tensor ParameterReader::stored_rows(const Wanted& wanted) const {
  const FoundParameter& p = wanted.found;
  const Bfloat16 storage = wanted.storage;
  if (p.stored.size() == 1 && !is_transposed(p)) {
    const Tensor stored = tensors_.read(p.stored.front(), storage);
    return stored.reshape(rows_shape(p, stored.shape()));
  }
  std::vector<std::vector<int64_t>> shapes;
  for (const std::string& name : p.stored) shapes.push_back(rows_shape(p, tensors_.shape(name)));
  std::vector<int64_t> all = shapes.front();
  for (size_t i = 1; i < shapes.size(); ++i) all[0] += shapes[i][0];
  const DType dtype = storage == Bfloat16::kept ? DType::bf16 : DType::f32;
  const Tensor rows = Tensor::empty(Shape{std::span<const int64_t>(all)}, {.dtype = dtype});
  int64_t begin = 0;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Tensor stored = tensors_.read(p.stored[i], storage);
    const Tensor part = rows.rows(begin, begin + shapes[i][0]);
    if (is_transposed(p)) {
      with_type_of(stored, [&]<class T>(T) { part.assign(std::span<const T>(transposed_values<T>(stored))); });
    } else {
      part.copy_from(stored.reshape(shapes[i]));
    }
    tensors_.release_pages(stored);
    begin += shapes[i][0];
  }
  return rows;
}

// Fused queries, keys and values, for example, are read once for all three.
Tensor ParameterReader::shared_rows(const Wanted& p) {
  Rows& rows = rows_for(p);
  if (!rows.values.defined()) rows.values = stored_rows(p);
  return --rows.waiting == 0 ? std::exchange(rows.values, {}) : rows.values;
}

Tensor ParameterReader::values_of(const Wanted& p) {
  const Shape& shape = p.found.parameter.tensor->shape();
  const Transform& t = p.found.transform;
  const Tensor rows = shared_rows(p);
  if (t.period == 0 && t.add == 0) return rows.rows(t.first, t.first + shape[0]);
  const Tensor values = Tensor::empty(shape, {.dtype = rows.dtype()});
  with_type_of(rows, [&]<class T>(T) { gather_rows<T>(rows, t, values); });
  tensors_.release_pages(rows);
  return values;
}

void ParameterReader::fill() {
  const bool narrow = weights_ == LoadedWeights::bfloat16_tensors;
  std::map<std::string, Tensor> replacing;
  if (narrow || weights_ == LoadedWeights::mapped) replacing = adjacent_places(module_, narrow);
  for (const Wanted& p : wanted_) {
    const Tensor& own = *p.found.parameter.tensor;
    if (const auto place = replacing.find(p.found.parameter.name); place != replacing.end()) {
      const Tensor values = values_of(p), &to = place->second;
      to.copy_from(to.dtype() == DType::bf16 ? to_bfloat16(values) : to_float32(values));
      tensors_.release_pages(values);
    } else if (p.later) {
      const bool widened = p.storage == Bfloat16::widened;
      const Tensor without_values = widened ? own : Tensor::empty(own.shape(), {.dtype = DType::bf16});
      later_[without_values.address()] = &p;
      replacing.emplace(p.found.parameter.name, without_values);
    } else if (p.rounded) {
      const Tensor values = values_of(p);
      replacing.emplace(p.found.parameter.name, to_bfloat16(values));
      tensors_.release_pages(values);
    } else {
      replacing.emplace(p.found.parameter.name, values_of(p));
    }
  }
  replace_parameters(module_, [&](const NamedParameter& p) {
    const auto place = replacing.find(p.name);
    return place == replacing.end() ? Tensor{} : place->second;
  });
}

Tensor ParameterReader::read(const Tensor& parameter) {
  const auto found = later_.find(parameter.address());
  return found == later_.end() ? parameter : values_of(*found->second);
}

}  // namespace attune
