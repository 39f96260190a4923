// The library of the emulation: members of a group are threads of one process. Sums are formed in the order of the
// members. An operation runs when the host waits for it; until then what it is to write is NaN.

#include <unistd.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "attune/base/fail.h"
#include "attune/kernels/cuda/runtime/collectives.h"
#include "attune/kernels/cuda/runtime/streams_emulated.h"
#include "attune/tensor/device.h"

namespace attune::cuda {
namespace {

using Kind = Collective::Kind;
using Bytes = std::vector<std::byte>;

// One operation, as far as its members have come.
struct Meeting {
  Collective asked;
  std::vector<Bytes> inputs;  // by member
  int come = 0, gone = 0;
};

// A group, seen by all its members.
struct Room {
  std::mutex mutex;
  std::condition_variable joined;
  int size = 0, members = 0;
  int left = -1;                        // the first member that has left
  std::map<int64_t, Meeting> meetings;  // by number
};

std::shared_ptr<Room> room_of(const CudaGroupId& id) {
  static std::mutex mutex;
  static auto* const rooms = new std::map<CudaGroupId, std::weak_ptr<Room>>;  // outlives every thread
  const std::lock_guard lock(mutex);
  std::shared_ptr<Room> room = (*rooms)[id].lock();
  if (!room) (*rooms)[id] = room = std::make_shared<Room>();
  return room;
}

// Waits for the other members.
std::shared_ptr<Room> enter_room(const CudaGroupId& id, int size) {
  constexpr std::chrono::seconds kLongest(60);
  std::shared_ptr<Room> room = room_of(id);
  std::unique_lock lock(room->mutex);
  room->size = size;
  ++room->members;
  room->joined.notify_all();
  if (!room->joined.wait_for(lock, kLongest, [&] { return room->members >= size; }))
    fail<CommunicationError>("joining the GPUs of the other ranks: {} of {} have come", room->members, size);
  return room;
}

size_t bytes_of(int64_t count, DType type) {
  return static_cast<size_t>(count) * size_of(type);
}

template <class T>
Bytes sum_of(const std::vector<Bytes>& inputs, size_t begin, size_t bytes) {
  Bytes sum(inputs.front().begin() + static_cast<ptrdiff_t>(begin),
            inputs.front().begin() + static_cast<ptrdiff_t>(begin + bytes));
  for (size_t member = 1; member < inputs.size(); ++member)
    for (size_t at = 0; at < bytes; at += sizeof(T)) {
      T a, b;
      std::memcpy(&a, sum.data() + at, sizeof(T));
      std::memcpy(&b, inputs[member].data() + begin + at, sizeof(T));
      a += b;
      std::memcpy(sum.data() + at, &a, sizeof(T));
    }
  return sum;
}

// What a member receives, once all members have come to the meeting.
Bytes result_for(const Meeting& m, int rank) {
  const Collective& c = m.asked;
  if (c.kind == Kind::broadcast) return m.inputs[static_cast<size_t>(c.root)];
  if (c.kind == Kind::all_gather) {
    Bytes all;
    for (const Bytes& input : m.inputs) all.insert(all.end(), input.begin(), input.end());
    return all;
  }
  const size_t bytes = bytes_of(c.count, c.type);
  const size_t begin = c.kind == Kind::reduce_scatter ? static_cast<size_t>(rank) * bytes : 0;
  if (c.type == DType::f64) return sum_of<double>(m.inputs, begin, bytes);
  return sum_of<float>(m.inputs, begin, bytes);
}

class EmulatedMember final : public Member {
 public:
  EmulatedMember(std::shared_ptr<Room> room, Cuda device, int rank)
      : room_(std::move(room)), device_(device), rank_(rank) {}
  ~EmulatedMember() override { abort(); }
  EmulatedMember(const EmulatedMember&) = delete;
  EmulatedMember& operator=(const EmulatedMember&) = delete;

  void start(const Collective& c, const SideStream& side) override {
    check(c.kind);
    EmulatedStream& stream = emulated(side);
    if (stream.followed != work_of(device_))
      fail<CommunicationError>("{}: its stream does not wait for what the device was given before", name_of(c.kind));
    const size_t parts = static_cast<size_t>(room_->size);
    const size_t reads = bytes_of(c.count, c.type) * (c.kind == Kind::reduce_scatter ? parts : 1);
    const size_t writes = bytes_of(c.count, c.type) * (c.kind == Kind::all_gather ? parts : 1);
    const PlainAccess access;
    const auto* const from = static_cast<const std::byte*>(c.from);
    come(c, Bytes(from, from + reads));
    std::memset(c.to, 0xff, writes);
    stream.work.emplace_back(
        [room = room_, rank = rank_, number = number_++, to = c.to] { return leave(*room, rank, number, to); });
  }

  void check(Kind kind) override {
    const std::lock_guard lock(room_->mutex);
    if (room_->left >= 0)
      fail<CommunicationError>("{}: the GPU of rank {} has left the group", name_of(kind), room_->left);
  }

  void abort() noexcept override {
    const std::lock_guard lock(room_->mutex);
    if (room_->left < 0) room_->left = rank_;
  }

 private:
  void come(const Collective& c, Bytes input) {
    const std::lock_guard lock(room_->mutex);
    const auto [at, is_first] =
        room_->meetings.try_emplace(number_, Meeting{c, std::vector<Bytes>(static_cast<size_t>(room_->size))});
    Meeting& meeting = at->second;
    const Collective& first = meeting.asked;
    if (first.kind != c.kind || first.count != c.count || first.type != c.type || first.root != c.root)
      fail<CommunicationError>("{}: {} numbers at rank {}, while another rank is at {} of {}", name_of(c.kind), c.count,
                               rank_, name_of(first.kind), first.count);
    meeting.inputs[static_cast<size_t>(rank_)] = std::move(input);
    ++meeting.come;
  }

  // Returns false if not all members have come.
  static bool leave(Room& room, int rank, int64_t number, void* to) {
    const std::lock_guard lock(room.mutex);
    const auto at = room.meetings.find(number);
    Meeting& meeting = at->second;
    if (meeting.come < room.size) return false;
    const Bytes result = result_for(meeting, rank);
    const PlainAccess access;
    if (!result.empty()) std::memcpy(to, result.data(), result.size());
    if (++meeting.gone == room.size) room.meetings.erase(at);
    return true;
  }

  std::shared_ptr<Room> room_;
  Cuda device_;
  int rank_;
  int64_t number_ = 0;  // of the operation that comes next
};

}  // namespace

CudaLibrary collectives_library() {
  return {.name = fmt::format("NCCL, emulated in process {}", ::getpid())};
}

CudaGroupId make_group_id() {
  static std::mutex mutex;
  static int64_t made = 0;
  const std::lock_guard lock(mutex);
  const std::array<int64_t, 2> numbers = {::getpid(), ++made};
  CudaGroupId id{};
  std::memcpy(id.data(), numbers.data(), sizeof(numbers));
  return id;
}

std::unique_ptr<Member> join(Cuda device, const CudaGroupId& id, int rank, int size) {
  return std::make_unique<EmulatedMember>(enter_room(id, size), device, rank);
}

}  // namespace attune::cuda
