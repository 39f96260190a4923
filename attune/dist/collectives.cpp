#include "attune/dist/collectives.h"

#include <algorithm>
#include <bit>
#include <memory>

#include "attune/base/fail.h"
#include "attune/base/parallel.h"
#include "attune/tensor/buffer.h"
#include "attune/tensor/memory.h"

namespace attune {
namespace {

// The parts [first, last) of x when it is divided among the ranks.
Numbers parts(const Transport& transport, const Numbers& x, int first, int last) {
  return x.part(part_begin(x.count, first, transport.size()), part_begin(x.count, last, transport.size()));
}

// The memory as a tensor, which does not own it.
Tensor tensor_in(std::span<std::byte> memory, const Numbers& like) {
  return Tensor::in_buffer({like.count}, like.dtype, std::make_shared<Buffer>(memory.data(), memory.size(), nullptr),
                           0);
}

// to += from. On one thread, since the others compute meanwhile.
void accumulate(const Numbers& to, std::span<std::byte> from) {
  if (to.dtype != DType::f32 && to.dtype != DType::f64)
    fail<CommunicationError>("reduce_scatter: needs float32 or float64, found {}", name_of(to.dtype));
  const ThreadScope one(1);
  add(Cpu{}, tensor_in(to.bytes(), to), tensor_in(from, to));
}

std::span<std::byte> room(std::vector<std::byte>& scratch, const Numbers& x) {
  if (scratch.size() < x.bytes().size()) scratch.resize(x.bytes().size());
  return std::span(scratch).first(x.bytes().size());
}

// Recursive halving: in each step the partner is half as far away as before, and keeps the other half of what is left.
void halve(Transport& transport, const Numbers& x, std::vector<std::byte>& scratch) {
  const int rank = transport.rank();
  for (int distance = transport.size() / 2; distance > 0; distance /= 2) {
    const int first = rank & ~(2 * distance - 1), middle = first + distance, last = middle + distance;
    const bool lower = rank < middle;
    const Numbers mine = lower ? parts(transport, x, first, middle) : parts(transport, x, middle, last);
    const Numbers others = lower ? parts(transport, x, middle, last) : parts(transport, x, first, middle);
    const std::span<std::byte> received = room(scratch, mine);
    transport.exchange(rank ^ distance, others.bytes(), rank ^ distance, received);
    accumulate(mine, received);
  }
}

void double_back(Transport& transport, const Numbers& x) {
  const int rank = transport.rank();
  for (int distance = 1; distance < transport.size(); distance *= 2) {
    const int mine = rank & ~(distance - 1), others = mine ^ distance;
    transport.exchange(rank ^ distance, parts(transport, x, mine, mine + distance).bytes(), rank ^ distance,
                       parts(transport, x, others, others + distance).bytes());
  }
}

}  // namespace

void reduce_scatter(Transport& transport, Numbers x, std::vector<std::byte>& scratch) {
  const int rank = transport.rank(), size = transport.size();
  if (std::has_single_bit(static_cast<unsigned>(size))) return halve(transport, x, scratch);
  // A ring: part p starts at rank p + 1, and each rank on its way to rank p adds its own numbers.
  const auto part = [&](int p) { return parts(transport, x, p % size, p % size + 1); };
  for (int step = 1; step < size; ++step) {
    const Numbers sent = part(rank - step + size), kept = part(rank - step - 1 + 2 * size);
    const std::span<std::byte> received = room(scratch, kept);
    transport.exchange((rank + 1) % size, sent.bytes(), (rank - 1 + size) % size, received);
    accumulate(kept, received);
  }
}

void all_gather(Transport& transport, Numbers x) {
  const int rank = transport.rank(), size = transport.size();
  if (std::has_single_bit(static_cast<unsigned>(size))) return double_back(transport, x);
  const auto part = [&](int p) { return parts(transport, x, p % size, p % size + 1); };
  for (int step = 0; step < size - 1; ++step)
    transport.exchange((rank + 1) % size, part(rank - step + size).bytes(), (rank - 1 + size) % size,
                       part(rank - step - 1 + size).bytes());
}

void all_gather_bytes(Transport& transport, std::span<const std::byte> mine, std::span<std::byte> all) {
  const auto rank = static_cast<size_t>(transport.rank()), size = static_cast<size_t>(transport.size());
  const size_t width = mine.size();
  if (all.size() != width * size)
    fail<CommunicationError>("all_gather: {} ranks with {} bytes each need {}, found {}", size, width, width * size,
                             all.size());
  // `turned` has the pieces of the ranks rank, rank + 1, ... in this order: what has come is always its beginning.
  std::vector<std::byte> turned(all.size());
  std::ranges::copy(mine, turned.begin());
  for (size_t known = 1; known < size; known *= 2) {
    const size_t more = std::min(known, size - known) * width;
    transport.exchange(static_cast<int>((rank + size - known) % size), std::span(turned).first(more),
                       static_cast<int>((rank + known) % size), std::span(turned).subspan(known * width, more));
  }
  for (size_t i = 0; i < size; ++i)
    std::copy_n(turned.begin() + static_cast<ptrdiff_t>(i * width), width,
                all.begin() + static_cast<ptrdiff_t>((rank + i) % size * width));
}

void broadcast(Transport& transport, std::span<std::byte> x, int root) {
  const int size = transport.size(), place = (transport.rank() - root + size) % size;  // in the tree; 0: the root
  const auto rank_of = [&](int p) { return (p + root) % size; };
  int distance = 1;
  for (; distance < size; distance *= 2) {
    if ((place & distance) == 0) continue;
    transport.exchange(Transport::kNobody, {}, rank_of(place - distance), x);
    break;
  }
  for (distance /= 2; distance > 0; distance /= 2)
    if (place + distance < size) transport.exchange(rank_of(place + distance), x, Transport::kNobody, {});
}

std::vector<std::vector<std::byte>> gather(Transport& transport, std::span<const std::byte> mine, int root) {
  if (transport.rank() != root) {
    const uint64_t bytes = mine.size();
    transport.exchange(root, std::as_bytes(std::span(&bytes, 1)), Transport::kNobody, {});
    transport.exchange(root, mine, Transport::kNobody, {});
    return {};
  }
  std::vector<std::vector<std::byte>> all(static_cast<size_t>(transport.size()));
  for (int rank = 0; rank < transport.size(); ++rank) {
    std::vector<std::byte>& theirs = all[static_cast<size_t>(rank)];
    if (rank == root) {
      theirs.assign(mine.begin(), mine.end());
      continue;
    }
    uint64_t bytes = 0;
    transport.exchange(Transport::kNobody, {}, rank, std::as_writable_bytes(std::span(&bytes, 1)));
    theirs.resize(bytes);
    transport.exchange(Transport::kNobody, {}, rank, theirs);
  }
  return all;
}

}  // namespace attune
