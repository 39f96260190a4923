#include "attune/hub/parameter_writer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "attune/base/fail.h"
#include "attune/hub/transposed_values.h"
#include "attune/tensor/host_view.h"

namespace attune {
namespace {

// The values as they are stored: ParameterReader adds what is taken away here.
Tensor without_addend(const Tensor& values, double add) {
  if (add == 0) return values;
  const HostView view(values);
  std::vector<float> stored;
  for (const float value : view.as<float>()) stored.push_back(value - static_cast<float>(add));
  return Tensor::from(values.shape(), std::span<const float>(stored));
}

// Copies the rows of a parameter to where they are stored.
void put_rows(const Tensor& values, const Transform& t, const Tensor& rows) {
  const int64_t count = values.size(0), run = t.period == 0 ? count : t.run;
  for (int64_t from = 0; from < count; from += run) {
    const int64_t to = stored_row(from, t);
    rows.rows(to, to + run).copy_from(values.rows(from, from + run));
  }
}

}  // namespace

int64_t stored_row_count(int64_t own, const Transform& t) {
  if (!t.part) return own;
  return t.period == 0 ? t.first + own : own / t.run * t.period;
}

int64_t stored_row(int64_t row, const Transform& t) {
  return t.first + (t.period == 0 ? row : row / t.run * t.period + row % t.run);
}

ParameterWriter::ParameterWriter(Module& module, const NameTable& table) {
  std::map<std::vector<std::string>, size_t> group_of;
  for (const NamedParameter& p : named_parameters(module)) {
    std::optional<Place> place = place_of(p.name, table);
    if (!place) fail<ConfigError>("{}: the family has no such parameter", p.name);
    const auto [found, is_new] = group_of.emplace(place->theirs, groups_.size());
    if (is_new) groups_.push_back({.names = std::move(place->theirs), .parts = {}});
    groups_[found->second].parts.push_back({*p.tensor, place->transform});
  }
  for (size_t i = 0; i < groups_.size(); ++i) {
    const Group& group = groups_[i];
    const Shape all = group.rows();
    const auto names = static_cast<int64_t>(group.names.size());
    std::vector<int64_t> sizes(all.begin(), all.end());
    sizes[0] /= names;
    if (group.transposed()) std::swap(sizes[0], sizes[1]);
    if (group.parts.front().transform.one_row) sizes.insert(sizes.begin(), 1);
    for (int64_t n = 0; n < names; ++n)
      tensors_.push_back({.name = group.names[static_cast<size_t>(n)],
                          .shape = Shape{std::span<const int64_t>(sizes)},
                          .group = i,
                          .begin = all[0] / names * n,
                          .end = all[0] / names * (n + 1)});
  }
}

Shape ParameterWriter::Group::rows() const {
  int64_t rows = 0;
  for (const Part& part : parts) rows = std::max(rows, stored_row_count(part.values.size(0), part.transform));
  const Shape& own = parts.front().values.shape();
  std::vector<int64_t> sizes(own.begin(), own.end());
  sizes[0] = rows;
  return Shape{std::span<const int64_t>(sizes)};
}

bool ParameterWriter::Group::transposed() const {
  return parts.front().transform.transposed && parts.front().values.rank() == 2;
}

bool ParameterWriter::Group::is_one_parameter() const {
  return parts.size() == 1 && rows()[0] == parts.front().values.size(0);
}

Tensor ParameterWriter::rows_of(const Group& group) const {
  if (group.is_one_parameter()) return without_addend(group.parts.front().values, group.parts.front().transform.add);
  const Tensor rows = Tensor::zeros(group.rows());
  for (const Part& part : group.parts) put_rows(without_addend(part.values, part.transform.add), part.transform, rows);
  return rows;
}

Tensor ParameterWriter::values_of(const WrittenTensor& tensor) const {
  const Group& group = groups_[tensor.group];
  const Tensor rows = rows_of(group).rows(tensor.begin, tensor.end);
  if (group.transposed()) return Tensor::from(tensor.shape, transposed_values<float>(rows));
  return rows.reshape(std::vector<int64_t>(tensor.shape.begin(), tensor.shape.end()));
}

}  // namespace attune
