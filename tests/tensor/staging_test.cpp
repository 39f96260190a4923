#include "attune/tensor/staging.h"

#include <gtest/gtest.h>

#include <vector>

#include "attune/tensor/host_view.h"
#include "tests/support/devices.h"

namespace attune {
namespace {

TEST(Staging, BringsValuesToTheHostAndBack) {
  for (const Device& device : devices_under_test()) {
    const Tensor x = Tensor::from({3}, std::vector<double>{1, 2, 3}, device);
    const auto staging = make_staging(x);
    const Tensor& host = staging->host();
    EXPECT_EQ(host.shape(), x.shape());
    EXPECT_EQ(host.dtype(), DType::f64);
    staging->fetch(x, host);
    staging->wait();
    EXPECT_EQ(host_values<double>(host), (std::vector<double>{1, 2, 3}));
    host.assign<double>(std::vector<double>{4, 5, 6});
    staging->send(host, x);
    EXPECT_EQ(host_values<double>(x), (std::vector<double>{4, 5, 6}));
  }
}

TEST(Staging, BringsPartsAndNothing) {
  for (const Device& device : devices_under_test()) {
    const Tensor x = Tensor::from({4}, std::vector<float>{1, 2, 3, 4}, device);
    const auto staging = make_staging(x);
    const Tensor& host = staging->host();
    host.fill(9);
    staging->fetch(x.rows(1, 3), host.rows(1, 3));
    staging->wait();
    EXPECT_EQ(host_values<float>(host), (std::vector<float>{9, 2, 3, 9}));
    host.fill(7);
    staging->send(host.rows(3, 4), x.rows(3, 4));
    EXPECT_EQ(host_values<float>(x), (std::vector<float>{1, 2, 3, 7}));
    staging->fetch(x.rows(4, 4), host.rows(4, 4));
    staging->wait();
    staging->send(host.rows(0, 0), x.rows(0, 0));
    EXPECT_EQ(host_values<float>(host), std::vector<float>(4, 7));
    EXPECT_EQ(host_values<float>(x), (std::vector<float>{1, 2, 3, 7}));
  }
}

// Nobody waits for the copies back.
TEST(Staging, IsUsedAgainAtOnce) {
  for (const Device& device : devices_under_test()) {
    std::vector<Tensor> tensors;
    const auto staging = make_staging(Tensor::empty({5}, {.device = device}));
    for (int i = 0; i < 10; ++i) {
      const Tensor x = Tensor::full({5}, i, {.device = device});
      staging->fetch(x, staging->host());
      staging->wait();
      staging->host().fill(host_values<float>(staging->host())[4] + 100);
      staging->send(staging->host(), x);
      tensors.push_back(x);
    }
    for (size_t i = 0; i < tensors.size(); ++i)
      EXPECT_EQ(host_values<float>(tensors[i]), std::vector<float>(5, static_cast<float>(i) + 100));
  }
}

}  // namespace
}  // namespace attune
