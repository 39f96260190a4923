// What the documentation points at is there, and its pictures are what its commands draw.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <sstream>

#include "attune/base/file.h"
#include "tests/support/paths.h"
#include "tests/support/run_command.h"
#include "tests/support/small_model.h"

namespace attune {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = source_dir();

std::vector<fs::path> pages() {
  std::vector<fs::path> found = {kRoot / "README.md"};
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "docs"))
    if (entry.path().extension() == ".md") found.push_back(entry.path());
  return found;
}

/// Whether a name stands in a text as a whole word.
bool has_word(const std::string& text, const std::string& word) {
  const auto part_of_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !part_of_word(text[at - 1])) && (end == text.size() || !part_of_word(text[end]))) return true;
  }
  return false;
}

template <class F>
void for_each_match(const std::string& text, const std::string& expression, F&& f) {
  const std::regex regex(expression);
  for (auto it = std::sregex_iterator(text.begin(), text.end(), regex); it != std::sregex_iterator(); ++it) f(*it);
}

TEST(Docs, EveryLinkToAFileLeadsToOne) {
  size_t links = 0;
  for (const fs::path& page : pages()) {
    for_each_match(read_file(page), R"(\]\(([^)#\s]+)(#[^)\s]*)?\))", [&](const std::smatch& match) {
      const std::string target = match[1];
      if (target.find("://") != std::string::npos) return;
      EXPECT_TRUE(fs::exists(page.parent_path() / target)) << page << " links to " << target;
      ++links;
    });
  }
  EXPECT_GT(links, 50u);
}

TEST(Docs, EveryNameBesideAFileOccursInIt) {
  size_t names = 0;
  for (const fs::path& page : pages()) {
    for_each_match(read_file(page), R"(`([^`\n]+)`\s+\(\[[^\]]*\]\(([^)#\s]+)\)\))", [&](const std::smatch& match) {
      const std::string name = match[1], target = match[2];
      const fs::path file = page.parent_path() / target;
      ASSERT_TRUE(fs::exists(file)) << target;
      EXPECT_TRUE(has_word(read_file(file), name)) << page << ": `" << name << "` is not in " << target;
      ++names;
    });
  }
  EXPECT_GT(names, 50u);
}

/// The places of a page, as "#the-places-of-a-page": its headings, outside of code blocks.
std::vector<std::string> places(const fs::path& page) {
  std::vector<std::string> found;
  bool code = false;
  for (const std::string& line : split_lines(read_file(page))) {
    if (line.starts_with("```")) code = !code;
    if (code || !line.starts_with("#")) continue;
    std::string place = "#";
    for (const char c : line.substr(line.find(' ') + 1))
      if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == ' ' || c == '-' || c == '_')
        place += c == ' ' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    found.push_back(place);
  }
  return found;
}

TEST(Docs, EveryPlaceInAPageIsThere) {
  size_t links = 0;
  for (const fs::path& page : pages()) {
    for_each_match(read_file(page), R"(\]\(([^):#\s]*\.md)?(#[^)\s]+)\))", [&](const std::smatch& match) {
      const fs::path target = match[1].length() == 0 ? page : page.parent_path() / match[1].str();
      ASSERT_TRUE(fs::exists(target)) << page << " links to " << target;
      EXPECT_THAT(places(target), ::testing::Contains(match[2].str())) << page << " links to " << target;
      ++links;
    });
  }
  EXPECT_GT(links, 100u);
}

// A command of the tour draws into the current directory, so that whoever follows it overwrites nothing.
TEST(Docs, PicturesAreWhatTheirCommandsDraw) {
  size_t pictures = 0;
  for (const std::string& line : split_lines(read_file(kRoot / "docs" / "tour.md"))) {
    const std::string out = " --out ";
    const size_t at = line.find(out);
    if (!line.starts_with("attune draw ") || at == std::string::npos) continue;  // weights need a trained model
    const fs::path picture = line.substr(at + out.size());
    EXPECT_EQ(picture, picture.filename()) << line;
    std::istringstream words(line.substr(7, at - 7));
    std::vector<std::string> arguments;
    for (std::string word; words >> word;) arguments.push_back(word);
    const CommandResult result = run_attune(arguments);
    EXPECT_EQ(result.errors, "") << line;
    EXPECT_TRUE(result.output == read_file(kRoot / "docs" / "pictures" / picture))
        << "docs/pictures has another picture than: " << line;
    ++pictures;
  }
  EXPECT_GT(pictures, 10u);
  std::string shown;
  for (const fs::path& page : pages()) shown += read_file(page);
  for (const auto& entry : fs::directory_iterator(kRoot / "docs" / "pictures"))
    EXPECT_TRUE(shown.find(entry.path().filename().string()) != std::string::npos) << entry.path() << " is not shown";
}

TEST(Docs, TheReferencePageIsCurrent) {
  const CommandResult page = run_attune({"train", "--reference-page"});
  EXPECT_EQ(page.errors, "");
  EXPECT_TRUE(page.output == read_file(kRoot / "docs" / "configuration.md"))
      << "run: attune train --reference-page > docs/configuration.md";
}

}  // namespace
}  // namespace attune
