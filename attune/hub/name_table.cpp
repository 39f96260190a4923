#include "attune/hub/name_table.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

#include "attune/base/fail.h"
#include "attune/io/json_file.h"
#include "attune/tensor/host_view.h"

namespace attune {
namespace {

// Whether `text` has the form of `pattern`, in which "*" is any text.
bool matches(std::string_view pattern, std::string_view text) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  for (size_t at = star; at <= text.size(); ++at)
    if (matches(pattern.substr(star + 1), text.substr(at))) return true;
  return false;
}

// "decoder.layers.12.norm" as "decoder.layers.*.norm" and "12"; a name without a number as itself and "".
struct NumberedName {
  std::string pattern, number;
};

NumberedName numbered(const std::string& name) {
  for (size_t begin = name.find('.'); begin != std::string::npos; begin = name.find('.', begin + 1)) {
    const size_t end = name.find('.', begin + 1);
    const std::string part = name.substr(begin + 1, end == std::string::npos ? end : end - begin - 1);
    if (!part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; }))
      return {name.substr(0, begin + 1) + "*" + (end == std::string::npos ? "" : name.substr(end)), part};
  }
  return {name, ""};
}

std::string with_number(const std::string& pattern, const std::string& number) {
  const size_t star = pattern.find('*');
  return star == std::string::npos ? pattern : pattern.substr(0, star) + number + pattern.substr(star + 1);
}

// Where the table says that a parameter is.
struct Place {
  std::vector<std::string> theirs;
  Transform transform;
};

Place place_of(const std::string& parameter, const NameTable& table) {
  const auto [pattern, number] = numbered(parameter);
  const size_t point = pattern.rfind('.');
  const std::string module = pattern.substr(0, point), last = pattern.substr(point);  // ".weight"
  const NameRow* of_module = nullptr;
  for (const NameRow& row : table) {
    Place place{.theirs = {}, .transform = row.transform};
    if (row.ours == pattern) {
      for (const std::string& name : row.theirs) place.theirs.push_back(with_number(name, number));
      return place;
    }
    if (row.ours == module) of_module = &row;
  }
  if (of_module == nullptr) fail<FileError>("the family's table has no row for {}", parameter);
  Place place{.theirs = {}, .transform = of_module->transform};
  for (const std::string& name : of_module->theirs) place.theirs.push_back(with_number(name, number) + last);
  if (last != ".weight") place.transform.add = 0;
  return place;
}

// The shape that one stored tensor gives for a parameter of this rank: without leading dimensions of one.
std::vector<int64_t> shape_after(const Shape& stored, const Transform& t, int rank) {
  std::vector<int64_t> sizes(stored.begin(), stored.end());
  while (static_cast<int>(sizes.size()) > rank && sizes.front() == 1) sizes.erase(sizes.begin());
  if (t.transposed && sizes.size() == 2) std::swap(sizes[0], sizes[1]);
  return sizes;
}

// Whether `rows` stored rows give a parameter of `wanted` rows.
bool has_rows(int64_t rows, int64_t wanted, const Transform& t) {
  if (!t.part) return rows == wanted;
  if (t.period == 0) return t.first + wanted <= rows;
  return t.run > 0 && wanted % t.run == 0 && rows == wanted / t.run * t.period && t.first + t.run <= t.period;
}

bool has_shape(const FoundParameter& p, const HubTensors& tensors) {
  const Shape& wanted = p.parameter.tensor->shape();
  int64_t rows = 0;
  for (const std::string& name : p.stored) {
    const std::vector<int64_t> sizes = shape_after(tensors.shape(name), p.transform, wanted.rank());
    if (static_cast<int>(sizes.size()) != wanted.rank()) return false;
    for (int dim = 1; dim < wanted.rank(); ++dim)
      if (sizes[static_cast<size_t>(dim)] != wanted[dim]) return false;
    rows += sizes.at(0);
  }
  return has_rows(rows, wanted[0], p.transform);
}

bool is_stored_so(const FoundParameter& p, const HubTensors& tensors) {
  const Transform& t = p.transform;
  const bool transposed = t.transposed && p.parameter.tensor->rank() == 2;
  return p.stored.size() == 1 && !transposed && !t.part && t.add == 0 &&
         tensors.shape(p.stored.front()) == p.parameter.tensor->shape();
}

// The rows of one stored tensor of T, transposed where the transform says so.
template <class T>
std::vector<T> rows_of(const Tensor& stored, const Transform& t) {
  const HostView view(stored);
  const std::span<const T> values = view.as<T>();
  if (!t.transposed || stored.rank() != 2) return {values.begin(), values.end()};
  const auto rows = static_cast<size_t>(stored.size(0)), columns = static_cast<size_t>(stored.size(1));
  std::vector<T> turned(values.size());
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < columns; ++c) turned[c * rows + r] = values[r * columns + c];
  return turned;
}

// Fills `target` with rows that are `columns` numbers long.
template <class T>
void take_rows(const std::vector<T>& rows, const Transform& t, const Tensor& target) {
  const auto wanted = static_cast<size_t>(target.size(0));
  const size_t columns = wanted == 0 ? 0 : static_cast<size_t>(target.numel()) / wanted;
  const size_t run = t.period == 0 ? wanted : static_cast<size_t>(t.run);
  std::vector<T> taken;
  taken.reserve(wanted * columns);
  for (size_t begin = static_cast<size_t>(t.first); taken.size() < wanted * columns;
       begin += static_cast<size_t>(t.period))
    taken.insert(taken.end(), rows.begin() + static_cast<std::ptrdiff_t>(begin * columns),
                 rows.begin() + static_cast<std::ptrdiff_t>((begin + run) * columns));
  if (t.add != 0)
    for (T& value : taken) value = static_cast<T>(static_cast<float>(value) + static_cast<float>(t.add));
  target.assign(std::span<const T>(taken));
}

// Fills `target`, of T, with what is stored for a parameter.
template <class T>
void copy_stored(const FoundParameter& p, const HubTensors& tensors, const Tensor& target) {
  std::vector<T> rows;
  for (const std::string& name : p.stored) {
    const Tensor stored = tensors.read(name, dtype_of<T> == DType::bf16 ? Bfloat16::kept : Bfloat16::widened);
    const std::vector<T> more = rows_of<T>(stored, p.transform);
    rows.insert(rows.end(), more.begin(), more.end());
    tensors.release_pages(stored);
  }
  take_rows(rows, p.transform, target);
}

// Whether a parameter is some adjacent rows of one stored tensor.
bool is_stretch(const FoundParameter& p, const HubTensors& tensors) {
  const Transform& t = p.transform;
  return p.stored.size() == 1 && !t.transposed && t.part && t.period == 0 && t.add == 0 &&
         tensors.shape(p.stored.front()).rank() == p.parameter.tensor->rank();
}

// The addresses of parameters that are read in other ways than by products and lookups.
class ElementParameters final : public Visitor {
 public:
  explicit ElementParameters(Module& module) { module.visit(*this); }
  bool contains(const Tensor& parameter) const { return addresses_.contains(parameter.address()); }

 protected:
  void on_parameter(const std::string&, Parameter& p) override {
    if (p.use != ParameterUse::product && p.use != ParameterUse::lookup) addresses_.insert(p.tensor.address());
  }

 private:
  std::set<const void*> addresses_;
};

// Parameters of one memory block: queries, keys and values are one product, so they have to stay adjacent.
std::set<const void*> addresses_of_runs(const std::vector<FoundParameter>& found) {
  std::map<const void*, const FoundParameter*> by_end;
  std::set<const void*> inside;
  for (const FoundParameter& p : found) {
    const auto* begin = static_cast<const std::byte*>(p.parameter.tensor->address());
    const auto before = by_end.find(begin);
    if (before != by_end.end() &&
        Tensor::joined(std::array{*before->second->parameter.tensor, *p.parameter.tensor}).defined()) {
      inside.insert(before->second->parameter.tensor->address());
      inside.insert(begin);
    }
    by_end[begin + p.parameter.tensor->bytes()] = &p;
  }
  return inside;
}

}  // namespace

std::vector<FoundParameter> find_parameters(Module& module, const NameTable& table, const HubTensors& tensors,
                                            const std::vector<std::string>& ignored) {
  std::vector<FoundParameter> found;
  std::set<std::string> used;
  for (const NamedParameter& parameter : named_parameters(module)) {
    const Place place = place_of(parameter.name, table);
    FoundParameter p{.parameter = parameter, .stored = {}, .transform = place.transform};
    for (const std::string& name : place.theirs) {
      p.stored.push_back(tensors.stored_name(name));
      if (p.stored.back().empty())
        fail<FileError>("{}: has no tensor {}, config.json asks for it", tensors.folder(), in_quotes(name));
      used.insert(p.stored.back());
    }
    if (!has_shape(p, tensors))
      fail<FileError>("{}: tensor {} has shape {}, config.json asks for {} {}", tensors.file(p.stored.front()),
                      in_quotes(p.stored.front()), tensors.shape(p.stored.front()).text(), parameter.name,
                      parameter.tensor->shape().text());
    found.push_back(std::move(p));
  }
  for (const std::string& name : tensors.stored_names())
    if (!used.contains(name) &&
        std::ranges::none_of(ignored, [&](const std::string& pattern) { return matches(pattern, name); }))
      fail<FileError>("{}: tensor {} is unknown to the model of config.json", tensors.file(name), in_quotes(name));
  return found;
}

void fill_parameters(Module& module, const std::vector<FoundParameter>& found, const HubTensors& tensors,
                     LoadedWeights weights) {
  const bool mapped = weights == LoadedWeights::mapped;
  const std::set<const void*> adjacent = mapped ? addresses_of_runs(found) : std::set<const void*>{};
  const ElementParameters elements(module);
  std::map<std::string, Tensor> replacing;
  for (const FoundParameter& p : found) {
    const Tensor& target = *p.parameter.tensor;
    const bool stays_bfloat16 =
        !mapped && p.transform.add == 0 && !elements.contains(target) &&
        std::ranges::all_of(p.stored, [&](const std::string& name) { return tensors.is_bfloat16(name); });
    const Bfloat16 storage = stays_bfloat16 ? Bfloat16::kept : Bfloat16::widened;
    if (is_stored_so(p, tensors) && !adjacent.contains(target.address())) {
      replacing.emplace(p.parameter.name, tensors.read(p.stored.front(), storage));
    } else if (stays_bfloat16 && is_stretch(p, tensors)) {
      const int64_t first = p.transform.first;
      replacing.emplace(p.parameter.name, tensors.read(p.stored.front(), storage).rows(first, first + target.size(0)));
    } else if (stays_bfloat16) {
      const Tensor made = Tensor::empty(target.shape(), {.dtype = DType::bf16});
      copy_stored<bfloat16>(p, tensors, made);
      replacing.emplace(p.parameter.name, made);
    } else {
      copy_stored<float>(p, tensors, target);
    }
  }
  replace_parameters(module, [&](const NamedParameter& p) {
    const auto place = replacing.find(p.name);
    return place == replacing.end() ? Tensor{} : place->second;
  });
}

}  // namespace attune
