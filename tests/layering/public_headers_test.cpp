// The public headers: attune/attune.h and what it includes, directly or not. See docs/library.md.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "tests/support/paths.h"

using attune::source_dir;

namespace {

const std::filesystem::path kRoot = source_dir();

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::set<std::string> public_headers() {
  std::set<std::string> seen;
  std::vector<std::string> open = {"attune/attune.h"};
  while (!open.empty()) {
    const std::string header = open.back();
    open.pop_back();
    if (!seen.insert(header).second) continue;
    const std::string start = "#include \"";
    for (const std::string& line : lines_of(kRoot / header))
      if (line.starts_with(start))
        open.push_back(line.substr(start.size(), line.find('"', start.size()) - start.size()));
  }
  return seen;
}

// A header of the standard library has a name without a folder and without an ending.
TEST(PublicHeaders, IncludeTheStandardLibraryAlone) {
  const std::set<std::string> headers = public_headers();
  EXPECT_GT(headers.size(), 50u);
  for (const std::string& header : headers) {
    for (const std::string& line : lines_of(kRoot / header)) {
      if (!line.starts_with("#include <")) continue;
      EXPECT_EQ(line.find_first_of("./"), std::string::npos) << header << ": " << line;
    }
  }
}

TEST(PublicHeaders, DeclareNoKernels) {
  for (const std::string& header : public_headers()) {
    if (!header.starts_with("attune/kernels/")) continue;
    for (const std::string& line : lines_of(kRoot / header))  // each kernel has an overload for the CPU
      EXPECT_EQ(line.find("(Cpu,"), std::string::npos) << header << ": " << line;
  }
}

// What a shared library exports is what such a namespace declares; everything else is hidden.
TEST(PublicHeaders, AndNoOthersDeclareVisibleNames) {
  const std::set<std::string> headers = public_headers();
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kRoot / "attune")) {
    if (entry.path().extension() != ".h") continue;
    const std::string header = std::filesystem::relative(entry.path(), kRoot).string();
    for (const std::string& line : lines_of(entry.path())) {
      if (headers.contains(header))
        EXPECT_NE(line, "namespace attune {")
            << header << " is public: namespace [[gnu::visibility(\"default\")]] attune";
      else
        EXPECT_EQ(line.find("gnu::visibility"), std::string::npos) << header << " is not public, it hides its names";
    }
  }
}

}  // namespace
