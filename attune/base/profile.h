#pragma once
// Measures the time that each operation takes.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attune/base/execution.h"

namespace attune {

/// The measurements of one operation, without those of the operations called within it: the times of all operations
/// add up to the time of the outermost one.
struct ProfileEntry {
  std::string name;
  int64_t calls = 0;
  double seconds = 0;
  int64_t work = 0;  // counted by Profile::Counter
};

/// One call of an operation, including the operations called within it.
struct ProfileEvent {
  std::string name;
  double begin = 0;  // seconds since the profile began
  double seconds = 0;
  int64_t work = 0;
};

class ProfileScope;

/// While this object lives, it is the profile of this thread's execution() and records the ProfileScopes; of two
/// nested profiles the inner one records. It must outlive the scopes that are opened meanwhile.
class Profile {
 public:
  using Counter = std::function<int64_t()>;  // returns the work done so far, for example floating-point operations

  explicit Profile(Counter counter = nullptr);
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  /// The operations of all scopes that have ended, the longest time first.
  std::vector<ProfileEntry> entries() const;
  /// After keep_events(), take_events() returns the calls since then, or since the last take_events(), in the order in
  /// which they ended.
  void keep_events() { keeps_events_ = true; }
  std::vector<ProfileEvent> take_events() { return std::exchange(events_, {}); }

 private:
  friend class ProfileScope;

  Counter counter_;
  std::chrono::steady_clock::time_point begin_;
  std::map<std::string, ProfileEntry, std::less<>> entries_;
  std::vector<ProfileEvent> events_;
  bool keeps_events_ = false;
  ProfileScope* innermost_ = nullptr;
  ExecutionScope scope_;
};

/// Measures one operation, from here to the end of the block. Costs one load if no Profile is active.
class ProfileScope {
 public:
  /// Both parts of the name are joined: "linear", " backward".
  explicit ProfileScope(std::string_view name, std::string_view suffix = "") : profile_(execution().profile) {
    if (profile_ != nullptr) [[unlikely]]
      begin(name, suffix);
  }
  ~ProfileScope() {
    if (profile_ != nullptr) [[unlikely]]
      end();
  }
  ProfileScope(const ProfileScope&) = delete;
  ProfileScope& operator=(const ProfileScope&) = delete;

 private:
  void begin(std::string_view name, std::string_view suffix);
  void end() noexcept;

  Profile* profile_;  // null: nothing is recorded
  ProfileScope* outer_ = nullptr;
  ProfileEntry* entry_ = nullptr;
  std::chrono::steady_clock::time_point begin_;
  int64_t work_at_begin_ = 0;
  double seconds_within_ = 0;  // of the scopes that ended within this one
  int64_t work_within_ = 0;
};

}  // namespace attune
