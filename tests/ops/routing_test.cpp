#include "attune/ops/routing.h"

#include <gtest/gtest.h>

#include <limits>

#include "attune/tensor/host_view.h"
#include "tests/support/devices.h"
#include "tests/support/errors.h"
#include "tests/support/gradient_check.h"

namespace attune {
namespace {

using Choices = std::vector<int32_t>;

Tensor scores_of(const std::vector<double>& values, int64_t experts) {
  return Tensor::from({static_cast<int64_t>(values.size()) / experts, experts}, values);
}

TEST(Routing, TheBestExpertsComeFirstAndOfEqualsTheFirst) {
  const Routing r = route(scores_of({0.1, 0.4, 0.2, 0.3, /**/ 0.25, 0.25, 0.25, 0.25}, 4), {},
                          {.experts_per_token = 2, .normalised = false, .scale = 2});
  EXPECT_EQ(host_values<int32_t>(r.chosen), (Choices{1, 3, 0, 1}));
  EXPECT_EQ(host_values<double>(r.weights), (std::vector<double>{0.8, 0.6, 0.5, 0.5}));
}

TEST(Routing, NormalisedWeightsAddUpToTheScale) {
  const Routing r = route(scores_of({0.1, 0.4, 0.2, 0.3}, 4), {}, {.experts_per_token = 2, .scale = 2.5});
  EXPECT_NEAR(host_values<double>(r.weights)[0], 2.5 * 0.4 / 0.7, 1e-12);
  EXPECT_NEAR(host_values<double>(r.weights)[1], 2.5 * 0.3 / 0.7, 1e-12);
}

TEST(Routing, TheBiasIsForTheChoiceAlone) {
  const Tensor bias = Tensor::from({4}, std::vector<double>{1, 0, 0, -1});
  const Routing r = route(scores_of({0.1, 0.4, 0.2, 0.3}, 4), bias, {.experts_per_token = 2, .normalised = false});
  EXPECT_EQ(host_values<int32_t>(r.chosen), (Choices{0, 1}));
  EXPECT_EQ(host_values<double>(r.weights), (std::vector<double>{0.1, 0.4}));
}

// Group 0 has the best expert, group 1 the best two.
TEST(Routing, GroupsAreChosenByTheirBestOrTheirTwoBest) {
  const Tensor scores = scores_of({0.9, 0.1, 0.1, 0.6, 0.5, 0.0}, 6);
  RoutingForm form{.experts_per_token = 2, .groups = 2, .top_groups = 1, .group_score = GroupScore::maximum};
  EXPECT_EQ(host_values<int32_t>(route(scores, {}, form).chosen), (Choices{0, 1}));
  form.group_score = GroupScore::sum_of_two;
  EXPECT_EQ(host_values<int32_t>(route(scores, {}, form).chosen), (Choices{3, 4}));
}

// With scores below 0, as a bias makes them, a mask of zeros would choose experts of other groups.
TEST(Routing, ExpertsOfOtherGroupsAreNeverChosen) {
  const Tensor bias = Tensor::full({4}, -1, {.dtype = DType::f64});
  const RoutingForm form{.experts_per_token = 2, .groups = 2, .top_groups = 1, .group_score = GroupScore::sum_of_two};
  EXPECT_EQ(host_values<int32_t>(route(scores_of({0.1, 0.2, 0.3, 0.4}, 4), bias, form).chosen), (Choices{3, 2}));
}

TEST(Routing, AScoreThatIsNotANumberIsChosenLast) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Routing r = route(scores_of({nan, 0.1, nan, 0.2}, 4), {}, {.experts_per_token = 3, .normalised = false});
  EXPECT_EQ(host_values<int32_t>(r.chosen), (Choices{3, 1, 0}));
}

std::vector<RoutingForm> forms() {
  std::vector<RoutingForm> all;
  for (const bool normalised : {true, false})
    for (const int64_t groups : {1, 3})
      for (const GroupScore score : {GroupScore::maximum, GroupScore::sum_of_two})
        all.push_back({.experts_per_token = 3,
                       .groups = groups,
                       .top_groups = groups == 1 ? 1 : 2,
                       .group_score = score,
                       .normalised = normalised,
                       .scale = 1.7});
  return all;
}

TEST(Routing, GradientMatchesFiniteDifferences) {
  const Tensor scores = normal({5, 12}, {.seed = 3, .mean = 4}), bias = normal({12}, {.seed = 4});
  for (const RoutingForm& form : forms())
    EXPECT_LT(gradient_error([&](auto& t) { return route(t, bias, form).weights; }, scores), 1e-7);
}

TEST(Routing, IsTheSameOnEveryDevice) {
  const Tensor scores = normal({300, 12}, {.dtype = DType::f32, .seed = 5, .mean = 4});
  const Tensor bias = normal({12}, {.dtype = DType::f32, .seed = 6});
  for (const RoutingForm& form : forms()) {
    const auto f = [&](const std::vector<Tensor>& t) { return route(t[0], bias.to(t[0].device()), form).weights; };
    EXPECT_LT(device_error(f, {scores}), 1e-5);
    for (const Device& device : devices_under_test())
      EXPECT_EQ(host_values<int32_t>(route(scores.to(device), bias.to(device), form).chosen),
                host_values<int32_t>(route(scores, bias, form).chosen));
  }
}

TEST(Routing, RefusesWhatDoesNotFitTheNumberOfExperts) {
  const Tensor scores = normal({2, 6});
  const auto refusal = [&](const RoutingForm& form) {
    return message_of<ConfigError>([&] { route(scores, {}, form); });
  };
  EXPECT_EQ(refusal({.experts_per_token = 7}), "experts_per_token = 7: needs a number from 1 to 6");
  EXPECT_EQ(refusal({.groups = 4}), "groups = 4: 6 experts cannot be divided into as many equal groups");
  EXPECT_EQ(refusal({.groups = 2, .top_groups = 3}), "top_groups = 3: needs a number from 1 to 2");
  EXPECT_EQ(refusal({.experts_per_token = 3, .groups = 3}),
            "experts_per_token = 3: top_groups = 1 groups of 2 have fewer experts");
  EXPECT_EQ(refusal({.groups = 6, .group_score = GroupScore::sum_of_two}),
            "group_score = \"sum_of_two\": a group has one expert, groups = 6 of 6 experts");
  EXPECT_EQ(refusal({.scale = 0}), "weight_scale = 0: needs a number above 0");
  EXPECT_THROW(route(scores, normal({5}), {}), ShapeError);
}

}  // namespace
}  // namespace attune
