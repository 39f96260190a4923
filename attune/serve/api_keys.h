#pragma once
// Who may ask.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace attune::serve {

/// Whom a request is from.
struct Client {
  std::string name = {};  // of the key; "" where keys are off
  int64_t requests = 0;   // the most at once; 0: no limit
  bool admin = true;      // whether it may reload models
};

/// Keys from a TOML file with a table for each client:
///   [alice]
///   key = "a secret of at least 16 characters"      # or sha256 = "its digest as 64 hexadecimal digits"
///   requests = 64                                   # at once; 0: no limit
///   admin = false
/// Only the digests of keys stay in memory.
class ApiKeys {
 public:
  /// Keys are off: everybody is a Client without a name.
  ApiKeys() = default;
  /// Throws FileError, and ConfigError naming the key that is wrong.
  explicit ApiKeys(const std::filesystem::path& file);

  bool on() const { return !keys_.empty(); }
  /// Whether find() gives a client. Both take a time that says nothing about the keys.
  bool know(std::string_view key) const { return !on() || find_key(key) != nullptr; }
  /// Returns the client with this key. Throws HttpError (401) if keys are on and none is like it.
  Client find(std::string_view key) const;

 private:
  struct Key {
    Client client;
    std::string digest;
  };
  const Key* find_key(std::string_view key) const;

  std::vector<Key> keys_;
};

}  // namespace attune::serve
