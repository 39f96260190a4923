#include "attune/serve/fair_tasks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <vector>

namespace attune::serve {
namespace {

using ::testing::ElementsAre;

TEST(FairTasks, KeysTakeTurns) {
  FairTasks tasks;
  std::promise<void> all_there, done;
  std::vector<std::string> order;
  tasks.add("first", [wait = all_there.get_future().share()] { wait.wait(); });
  for (const char* task : {"a1", "a2", "a3"}) tasks.add("a", [&order, task] { order.emplace_back(task); });
  tasks.add("b", [&order] { order.emplace_back("b1"); });
  tasks.add("c", [&order] { order.emplace_back("c1"); });
  tasks.add("a", [&done] { done.set_value(); });
  all_there.set_value();
  ASSERT_EQ(done.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
  EXPECT_THAT(order, ElementsAre("a1", "b1", "c1", "a2", "a3"));
}

TEST(FairTasks, WhatWaitsAtTheEndIsDropped) {
  const auto held = std::make_shared<int>(0);
  std::promise<void> begun, stop;
  FairTasks tasks;
  tasks.add("a", [&begun, wait = stop.get_future().share()] {
    begun.set_value();
    wait.wait();
  });
  begun.get_future().wait();
  bool ran = false;
  tasks.add("a", [held, &ran] { ran = true; });
  EXPECT_EQ(held.use_count(), 2);
  std::thread stopping([&] { tasks.stop(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  stop.set_value();
  stopping.join();
  EXPECT_FALSE(ran);
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace attune::serve
