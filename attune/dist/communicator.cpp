#include "attune/dist/communicator.h"

#include <algorithm>

namespace attune {

int64_t part_begin(int64_t count, int64_t rank, int64_t ranks) {
  return count / ranks * rank + std::min(rank, count % ranks);  // the first ranks have one more
}

Numbers part_of(const Numbers& x, int64_t rank, int64_t ranks) {
  return x.part(part_begin(x.count, rank, ranks), part_begin(x.count, rank + 1, ranks));
}

std::string Communicator::broadcast(const std::string& text, int root) {
  uint64_t size = text.size();
  broadcast(std::as_writable_bytes(std::span(&size, 1)), root);
  std::string received = text;
  received.resize(size);
  broadcast(std::as_writable_bytes(std::span(received)), root);
  return received;
}

void Communicator::barrier() {
  all_gather_values(char{0});
}

Pending LocalCommunicator::start_all_gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all) {
  std::ranges::copy(mine, all.begin());
  return {};
}

std::vector<std::vector<std::byte>> LocalCommunicator::gather(std::span<const std::byte> mine, int) {
  return {{mine.begin(), mine.end()}};
}

}  // namespace attune
