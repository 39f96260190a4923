#include "attune/text/huggingface/settings_files.h"

#include "attune/base/file.h"

namespace attune::huggingface {

namespace fs = std::filesystem;

std::string settings_prefix(const fs::path& file) {
  constexpr std::string_view kName = "tokenizer.json";
  const std::string name = file.filename().string();
  return name.ends_with(kName) ? name.substr(0, name.size() - kName.size()) : "";
}

void write_settings_file(const fs::path& folder, const std::string& name, std::string_view bytes) {
  const fs::path file = folder / name;
  if (name.find('/') != std::string::npos) make_directories(file.parent_path());  // `folder` itself is there
  write_file(file, bytes);
}

}  // namespace attune::huggingface
