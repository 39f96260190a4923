#pragma once
// A queue in which clients take turns.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace attune::serve {

/// Items in groups, and groups by key. Keys take turns, and so do the groups of a key: a group of a thousand items does
/// not keep a group of one waiting. Items of one group come in their order. Not for several threads at once.
template <class Item>
class FairQueue {
 public:
  struct Group {
    std::deque<Item> items;
    int64_t running = 0;  // taken by next() and not yet done; whoever takes an item counts it down
  };
  using Taken = std::pair<Item, std::shared_ptr<Group>>;

  /// Changes nothing if it throws std::bad_alloc.
  void add(const std::string& key, const std::shared_ptr<Group>& group) {
    if (group->items.empty()) return;
    const auto known = std::ranges::find_if(keys_, [&](const auto& entry) { return entry.first == key; });
    if (known != keys_.end())
      known->second.push_back(group);
    else
      keys_.emplace_back(key, std::list{group});
    items_ += static_cast<int64_t>(group->items.size());
  }

  /// Takes the next item for whose group may_run() is true, and counts it as running. Nothing if there is none.
  template <class MayRun>
  std::optional<Taken> next(MayRun&& may_run) {
    for (auto key = keys_.begin(); key != keys_.end(); ++key) {
      auto& groups = key->second;
      for (auto group = groups.begin(); group != groups.end(); ++group) {
        if (!may_run(**group)) continue;
        Taken taken(std::move((*group)->items.front()), *group);
        taken.second->items.pop_front();
        ++taken.second->running;
        --items_;
        groups.splice(groups.end(), groups, group);
        if (taken.second->items.empty()) groups.pop_back();
        keys_.splice(keys_.end(), keys_, key);
        if (groups.empty()) keys_.pop_back();
        return taken;
      }
    }
    return {};
  }
  std::optional<Taken> next() {
    return next([](const Group&) { return true; });
  }

  int64_t size() const { return items_; }
  bool empty() const { return items_ == 0; }

 private:
  std::list<std::pair<std::string, std::list<std::shared_ptr<Group>>>> keys_;
  int64_t items_ = 0;
};

}  // namespace attune::serve
