// attune completion: the scripts offer what the commands have.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attune/base/file.h"
#include "tests/support/run_command.h"
#include "tests/support/small_model.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

class BashCompletion : public ::testing::Test {
 protected:
  BashCompletion() { write_file(folder_ / "script", run_attune({"completion", "bash"}).output); }

  // What bash offers for the last of the words.
  std::vector<std::string> offers(const std::string& words) const {
    const std::string script = "source " + (folder_ / "script").string() + "; COMP_WORDS=(attune " + words +
                               "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _attune; printf '%s\\n' \"${COMPREPLY[@]}\"";
    const CommandResult result = run_command({"bash", "-uc", script});
    EXPECT_EQ(result.status, 0) << result.errors;
    std::vector<std::string> lines = split_lines(result.output);
    std::erase(lines, "");
    return lines;
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(BashCompletion, OffersCommandsAndOptions) {
  EXPECT_THAT(offers("tra"), ElementsAre("train", "translate"));
  EXPECT_THAT(offers("translate --beam"), Contains("--beam-size"));
  EXPECT_THAT(offers("bench ''"), IsSupersetOf({"train", "decode", "machine"}));
  EXPECT_THAT(offers("bench decode --hel"), ElementsAre("--help"));
  EXPECT_THAT(offers("quantize model --o"), ElementsAre("--out"));
}

TEST_F(BashCompletion, LeavesTheRestToFiles) {
  EXPECT_THAT(offers("translate runs"), IsEmpty());
}

TEST(Completion, OfOtherShells) {
  const CommandResult zsh = run_attune({"completion", "zsh"});
  EXPECT_EQ(zsh.status, 0);
  EXPECT_THAT(zsh.output, HasSubstr("#compdef attune\n"));
  EXPECT_THAT(zsh.output, HasSubstr("'quantize:"));
  const CommandResult fish = run_attune({"completion", "fish"});
  EXPECT_THAT(fish.output, HasSubstr("complete -c attune -n \"__attune_at '/quantize'\" -l out -d '"));

  const CommandResult unknown = run_attune({"completion", "tcsh"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.errors, HasSubstr("tcsh"));
}

}  // namespace
}  // namespace attune
