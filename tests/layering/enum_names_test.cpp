// Every enum with names in files names all its values: neither the compiler nor a reader notices one that is missing.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <string_view>

#include "attune/inference/decoding/finish_reason.h"
#include "attune/inference/embedder.h"
#include "attune/models/config.h"
#include "attune/models/generation_config.h"
#include "attune/ops/linear/panel_weight.h"
#include "attune/ops/linear/precision_choice.h"
#include "attune/optim/config.h"
#include "attune/text/text_style.h"
#include "attune/text/text_unit.h"
#include "attune/train/config.h"
#include "attune/train/prepared_folder.h"
#include "tests/support/paths.h"

// As a list of types and as a text.
#define ATTUNE_NAMED_ENUMS                                                                                          \
  Activation, Architecture, AttentionBias, BasePrecision, EarlyStopping, EmbeddingInitialization, ExpertScores,     \
      FeedForwardActivation, FinishReason, GroupScore, Initialization, LabelledFormat, LabelScores, LayerAttention, \
      LengthNormalization, NormForm, NormPlacement, OptimizerKind, Pooling, PrecisionChoice, PreparedKind,          \
      ProductPrecision, Punctuation, RotaryPairing, RotaryRamp, RotaryScaling, ScheduleKind, SinusoidOrder,         \
      TextPooling, TextUnit, TokenizerKind, ValidationMetric, WeightFormat
#define ATTUNE_TEXT_OF(...) #__VA_ARGS__
#define ATTUNE_TEXT(list) ATTUNE_TEXT_OF(list)

namespace attune {
namespace {

// A compiler writes a value of an enum by its name, one without a name as a number in a cast: "E::name", "(E)7".
template <auto value>
constexpr bool is_enumerator() {
  const std::string_view here = __PRETTY_FUNCTION__;  // "... [with auto value = attune::E::name]"
  const size_t equals = here.rfind("value = ") + std::string_view("value = ").size();
  return here[equals] != '(';
}

// The number of values 0, 1, 2, ... that have names.
template <class E, int first = 0>
constexpr size_t enumerators() {
  if constexpr (!is_enumerator<static_cast<E>(first)>()) {
    return first;
  } else {
    return enumerators<E, first + 1>();
  }
}

enum class Colour { red, green, blue };
static_assert(enumerators<Colour>() == 3);

template <class... E>
void expect_all_named() {
  const auto check = []<class One>(One) {
    EXPECT_EQ(std::size(EnumNames<One>::values), enumerators<One>())
        << "the first is " << EnumNames<One>::values[0].second;
    std::set<One> values;
    std::set<std::string> names;
    for (const auto& [value, name] : EnumNames<One>::values) {
      EXPECT_TRUE(values.insert(value).second) << name << " stands for a value that has a name";
      EXPECT_TRUE(names.insert(name).second) << name << " stands there twice";
    }
  };
  (check(E{}), ...);
}

TEST(EnumNames, NameEveryValueOnce) {
  expect_all_named<ATTUNE_NAMED_ENUMS>();
}

TEST(EnumNames, EveryEnumIsTested) {
  const std::string listed = ATTUNE_TEXT((ATTUNE_NAMED_ENUMS));
  const std::regex names("struct EnumNames<(\\w+)>");
  int found = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source_dir() / "attune")) {
    if (entry.path().extension() != ".h") continue;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      std::smatch match;
      if (!std::regex_search(line, match, names)) continue;
      ++found;
      EXPECT_TRUE(std::regex_search(listed, std::regex("\\b" + match[1].str() + "\\b")))
          << match[1] << " is not tested";
    }
  }
  EXPECT_GT(found, 20);
}

}  // namespace
}  // namespace attune
