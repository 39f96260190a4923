// A folder includes only what stands below it: see docs/architecture.md.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "tests/support/paths.h"

using attune::source_dir;

namespace {

using Folders = std::set<std::string>;

// Each folder with those that it may include directly; everything that those may include is allowed too.
const std::map<std::string, Folders>& direct() {
  static const std::map<std::string, Folders> arrows = {
      {"base", {}},
      {"tensor", {"base"}},
      {"kernels", {"tensor"}},
      {"autograd", {"tensor"}},
      {"cache", {"kernels"}},
      {"ops", {"kernels", "cache", "autograd"}},
      {"nn", {"ops"}},
      {"models", {"nn"}},
      {"optim", {"nn"}},
      {"dist", {"tensor"}},
      {"text", {"base"}},
      {"io", {"models", "text"}},
      {"data", {"text"}},
      {"metrics", {"text"}},
      {"demo", {"base"}},
      {"hub", {"io"}},
      {"inference", {"hub"}},
      {"train", {"inference", "optim", "dist", "data", "metrics"}},
      {"c.h", {}},
      {"c", {"c.h", "inference"}},
      {"serve", {"inference"}},
      {"cli", {"train", "serve", "demo"}},
  };
  return arrows;
}

Folders allowed(const std::string& folder) {
  Folders all = {folder};
  for (const std::string& below : direct().at(folder)) all.merge(allowed(below));
  return all;
}

TEST(Layering, NoArrowRunsBack) {
  const std::filesystem::path root = source_dir();
  size_t includes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "attune")) {
    if (entry.path().extension() != ".h" && entry.path().extension() != ".cpp") continue;
    const std::string folder = std::filesystem::relative(entry.path(), root / "attune").begin()->string();
    if (folder == "attune.h") continue;  // includes what is public, see public_headers_test.cpp
    ASSERT_TRUE(direct().contains(folder)) << folder << " has no place in the layering";
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      const std::string start = "#include \"attune/";
      if (!line.starts_with(start)) continue;
      const std::string included = line.substr(start.size(), line.find_first_of("/\"", start.size()) - start.size());
      EXPECT_TRUE(allowed(folder).contains(included)) << entry.path() << " includes " << line;
      ++includes;
    }
  }
  EXPECT_GT(includes, 100u);
}

TEST(Layering, DecodingKnowsNoTexts) {
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() / "attune/inference/decoding")) {
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      EXPECT_TRUE(!line.starts_with("#include \"attune/inference/") ||
                  line.starts_with("#include \"attune/inference/decoding/"))
          << entry.path() << " includes " << line;
    }
  }
}

// The files that take bytes for numbers or text although they stand above the kernels.
const std::set<std::string>& readers_of_bytes() {
  static const std::set<std::string> files = {
      // Bytes of files, which are text or become the numbers of a tensor on the host.
      "io/byte_reader.h",
      "io/mapped_tensors.cpp",
      "io/pytorch_file.cpp",
      "io/safetensors.cpp",
      "io/stored_values.cpp",
      // Bytes that ranks send to each other.
      "dist/communicator.h",
      "train/data_parallel.cpp",
      "train/tasks/translation_validation.cpp",
  };
  return files;
}

// Memory of tensors, loops that threads share and vector instructions belong to kernels. Tensors are defined in tensor/
// and threads in base/; data/ knows no tensors, and its threads share text. The bytes of text/ are text.
TEST(Layering, PointersAndThreadsLiveInKernels) {
  const std::regex touched(R"(\bdata<|\bvalues<[^>]*>\(\)|\braw\(\)|\bparallel_for\(|<hwy/)");
  const auto reads_bytes = [](const std::string& code) {
    const size_t cast = code.find("reinterpret_cast<");
    return code.find("host_bytes()") != std::string::npos ||
           (cast != std::string::npos && code.find("*>", cast) != std::string::npos);
  };
  const std::filesystem::path root = source_dir() / "attune";
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().extension() != ".h" && entry.path().extension() != ".cpp") continue;
    const std::filesystem::path path = std::filesystem::relative(entry.path(), root);
    const std::string folder = path.begin()->string();
    if (std::set<std::string>{"kernels", "tensor", "base", "data"}.contains(folder)) continue;
    std::ifstream file(entry.path());
    int64_t number = 0;
    for (std::string line; std::getline(file, line);) {
      ++number;
      const std::string code = line.substr(0, line.find("//"));
      EXPECT_FALSE(std::regex_search(code, touched)) << path << ":" << number << ": " << line;
      if (folder == "text" || !reads_bytes(code)) continue;
      EXPECT_TRUE(readers_of_bytes().contains(path.string())) << path << ":" << number << ": " << line;
      found.insert(path.string());
    }
  }
  EXPECT_EQ(found, readers_of_bytes()) << "a file that no longer reads bytes leaves the list";
}

// Of two inline functions with one name and parameters, a program that has both files takes one: files of several
// folders may be linked together.
TEST(Layering, InlineFunctionsOfTestsHaveOneDefinition) {
  const std::regex scope(R"(\nnamespace ([\w:]+) \{)"), function(R"(\ninline [^;{=(]*\b(\w+\([^)]*\)))");
  const std::regex value(R"( = [^,)]*)"), space(R"(\s+)");
  std::map<std::string, std::filesystem::path> defined;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source_dir() / "tests")) {
    if (entry.path().extension() != ".h") continue;
    std::ifstream file(entry.path());
    const std::string text(std::istreambuf_iterator<char>(file), {});
    std::smatch found;
    const std::string within = std::regex_search(text, found, scope) ? found[1].str() : "";
    for (std::sregex_iterator it(text.begin(), text.end(), function), end; it != end; ++it) {
      const std::string parameters = std::regex_replace(std::regex_replace((*it)[1].str(), value, ""), space, " ");
      const auto [other, is_new] = defined.try_emplace(within + "::" + parameters, entry.path());
      EXPECT_TRUE(is_new) << parameters << " is in " << entry.path() << " and in " << other->second;
    }
  }
  EXPECT_GT(defined.size(), 50u);
}

TEST(Layering, PublicHeadersHaveNoConditions) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source_dir() / "attune")) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".h" || name.ends_with("_inl.h"))
      continue;                   // Highway includes those once for each target
    if (name == "c.h") continue;  // C++ needs extern "C"
    const bool is_of_cuda = entry.path().string().find("/kernels/cuda/") != std::string::npos;
    if (is_of_cuda) continue;  // compiled by nvcc, or for the host
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);)
      EXPECT_FALSE(line.starts_with("#if")) << entry.path() << ": " << line;
  }
}

}  // namespace
