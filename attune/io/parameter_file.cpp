#include "attune/io/parameter_file.h"

#include <string_view>

namespace attune {

SafetensorsReader open_parameters(const std::filesystem::path& path) {
  constexpr std::string_view kOld = ".gain", kNew = ".weight";
  SafetensorsReader reader(path);
  for (const std::string& name : reader.names()) {
    if (!name.ends_with(kOld)) continue;
    const std::string today = name.substr(0, name.size() - kOld.size()).append(kNew);
    if (!reader.contains(today)) reader.rename(name, today);
  }
  return reader;
}

}  // namespace attune
