#include "attune/serve/fair_queue.h"

#include <gtest/gtest.h>

#include <string>

namespace attune::serve {
namespace {

using Queue = FairQueue<std::string>;

std::shared_ptr<Queue::Group> group(std::deque<std::string> items) {
  return std::make_shared<Queue::Group>(Queue::Group{std::move(items)});
}

std::string all(Queue& queue) {
  std::string order;
  while (auto taken = queue.next()) order += taken->first + " ";
  return order;
}

TEST(FairQueue, GroupsAndKeysTakeTurns) {
  Queue queue;
  queue.add("a", group({"a1", "a2", "a3"}));
  queue.add("a", group({"A1", "A2"}));
  queue.add("b", group({"b1"}));
  EXPECT_EQ(queue.size(), 6);
  EXPECT_EQ(all(queue), "a1 b1 A1 a2 A2 a3 ");
  EXPECT_TRUE(queue.empty());
}

TEST(FairQueue, AGroupWithoutAPlaceIsPassedOver) {
  Queue queue;
  const auto large = group({"a1", "a2", "a3"});
  queue.add("a", large);
  queue.add("a", group({"B1"}));
  const auto has_place = [](const Queue::Group& g) { return g.running < 1; };
  EXPECT_EQ(queue.next(has_place)->first, "a1");
  EXPECT_EQ(queue.next(has_place)->first, "B1");
  EXPECT_FALSE(queue.next(has_place));
  --large->running;
  EXPECT_EQ(queue.next(has_place)->first, "a2");
  EXPECT_EQ(queue.size(), 1);
}

TEST(FairQueue, AnEmptyGroupIsNone) {
  Queue queue;
  queue.add("a", group({}));
  EXPECT_FALSE(queue.next());
}

}  // namespace
}  // namespace attune::serve
