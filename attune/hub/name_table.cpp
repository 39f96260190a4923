#include "attune/hub/name_table.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "attune/base/fail.h"
#include "attune/io/json_file.h"

namespace attune {
namespace {

// "decoder.layers.12.experts.3.linear_1" as "decoder.layers.*.experts.*.linear_1" with "12" and "3".
struct NumberedName {
  std::string pattern;
  std::vector<std::string> numbers;
};

NumberedName numbered(const std::string& name) {
  NumberedName result;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    const std::string part = name.substr(begin, end - begin);
    const bool is_number =
        begin > 0 && !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
    if (is_number) result.numbers.push_back(part);
    result.pattern += (begin > 0 ? "." : "") + (is_number ? std::string("*") : part);
    begin = end + 1;
  }
  return result;
}

// The pattern with a number for each "*", in their order.
std::string with_numbers(const std::string& pattern, const std::vector<std::string>& numbers) {
  std::string name;
  size_t next = 0;
  for (const char c : pattern) {
    if (c == '*' && next < numbers.size()) {
      name += numbers[next++];
    } else {
      name += c;
    }
  }
  return name;
}

}  // namespace

bool has_form(std::string_view text, std::string_view pattern) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  for (size_t at = star; at <= text.size(); ++at)
    if (has_form(text.substr(at), pattern.substr(star + 1))) return true;
  return false;
}

std::optional<Place> place_of(const std::string& parameter, const NameTable& table) {
  const auto [pattern, numbers] = numbered(parameter);
  const auto module_of = [](const std::string& name) { return name.substr(0, name.rfind('.')); };
  const std::string module = module_of(parameter), module_pattern = module_of(pattern);
  const std::string last = parameter.substr(parameter.rfind('.'));  // ".weight"
  const NameRow* of_module = nullptr;
  for (const NameRow& row : table) {
    Place place{.theirs = {}, .transform = row.transform};
    if (row.ours == pattern || row.ours == parameter) {
      for (const std::string& name : row.theirs) place.theirs.push_back(with_numbers(name, numbers));
      return place;
    }
    if (row.ours == module || row.ours == module_pattern) of_module = &row;
  }
  if (of_module == nullptr) return std::nullopt;
  Place place{.theirs = {}, .transform = of_module->transform};
  for (const std::string& name : of_module->theirs) place.theirs.push_back(with_numbers(name, numbers) + last);
  if (last != ".weight") place.transform.add = 0;
  return place;
}

namespace {

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
    const std::vector<int64_t> sizes = rows_shape(p, tensors.shape(name));
    if (static_cast<int>(sizes.size()) != wanted.rank()) return false;
    for (int dim = 1; dim < wanted.rank(); ++dim)
      if (sizes[static_cast<size_t>(dim)] != wanted[dim]) return false;
    rows += sizes.at(0);
  }
  return has_rows(rows, wanted[0], p.transform);
}

}  // namespace

std::vector<int64_t> rows_shape(const FoundParameter& p, const Shape& stored) {
  std::vector<int64_t> sizes(stored.begin(), stored.end());
  while (static_cast<int>(sizes.size()) > p.parameter.tensor->rank() && sizes.front() == 1) sizes.erase(sizes.begin());
  if (p.transform.transposed && sizes.size() == 2) std::swap(sizes[0], sizes[1]);
  return sizes;
}

std::vector<FoundParameter> find_parameters(Module& module, const NameTable& table, const HubTensors& tensors,
                                            const std::vector<std::string>& ignored) {
  std::vector<FoundParameter> found;
  std::set<std::string> used;
  for (const NamedParameter& parameter : named_parameters(module)) {
    const std::optional<Place> place = place_of(parameter.name, table);
    if (!place) fail<FileError>("the family's table has no row for {}", parameter.name);
    FoundParameter p{.parameter = parameter, .stored = {}, .transform = place->transform};
    for (const std::string& name : place->theirs) {
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
        std::ranges::none_of(ignored, [&](const std::string& pattern) { return has_form(name, pattern); }))
      fail<FileError>("{}: tensor {} is unknown to the model of config.json", tensors.file(name), in_quotes(name));
  return found;
}

}  // namespace attune
