#include "attune/io/gguf.h"

#include <array>
#include <fstream>
#include <string_view>

#include "attune/base/fail.h"

namespace attune {

void refuse_gguf(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return;  // a pipe would wait
  std::array<char, 4> magic{};
  std::ifstream(path, std::ios::binary).read(magic.data(), magic.size());
  if (std::string_view(magic.data(), magic.size()) == "GGUF")
    fail<FileError>(
        "{}: is a GGUF file of llama.cpp, which Attune does not read; it needs the folder that such files are made "
        "from, with config.json, *.safetensors and the tokenizer, as models on the Hugging Face hub have it",
        path.string());
}

}  // namespace attune
