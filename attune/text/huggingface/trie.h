#pragma once
// A trie of byte strings as a double array (Aoe 1989): one comparison and one addition for each byte of a text.

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace attune::huggingface {

class Trie {
 public:
  static constexpr int32_t kNone = -1;
  static constexpr uint32_t kRoot = 0;

  Trie() { build({}); }

  /// Keys and their values (0 or more). A key that is there twice has the last value; the empty key has none.
  explicit Trie(std::vector<std::pair<std::string_view, int32_t>> keys) { build(std::move(keys)); }

  /// Goes from a node to the one that `byte` leads to. Returns false, and leaves the node, when there is none.
  bool step(uint32_t& node, char byte) const {
    const uint32_t next = nodes_[node].base + static_cast<uint8_t>(byte);
    if (next >= nodes_.size() || nodes_[next].parent != node) return false;
    node = next;
    return true;
  }

  /// The value of the key that ends at this node, kNone when none does.
  int32_t value(uint32_t node) const { return nodes_[node].value; }

  /// The node of a prefix. Returns false when no key begins with it.
  bool walk(uint32_t& node, std::string_view prefix) const {
    for (const char byte : prefix)
      if (!step(node, byte)) return false;
    return true;
  }

 private:
  static constexpr uint32_t kFree = UINT32_MAX;
  struct Node {
    uint32_t base = 0, parent = kFree;
    int32_t value = kNone;
  };
  void build(std::vector<std::pair<std::string_view, int32_t>> keys);
  uint32_t place(const std::vector<uint8_t>& labels);
  void ensure(size_t size);

  std::vector<Node> nodes_;
  uint32_t first_free_ = 1;
};

}  // namespace attune::huggingface
