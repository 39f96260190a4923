#include "attune/serve/api_keys.h"

#include <algorithm>

#include "attune/base/json_fields.h"
#include "attune/base/sha256.h"
#include "attune/io/toml_config.h"
#include "attune/serve/http/http_error.h"

namespace attune::serve {
namespace {

struct KeyTable {
  std::string key, sha256;
  int64_t requests = 0;
  bool admin = false;
};

template <class FieldVisitor>
void visit_fields(KeyTable& c, FieldVisitor& v) {
  v("key", c.key);
  v("sha256", c.sha256);
  v("requests", c.requests);
  v("admin", c.admin);
}

bool is_digest(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// Compares all characters, so that the time says nothing about where they differ.
bool equal(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    difference |= static_cast<unsigned>(static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]));
  return difference == 0;
}

}  // namespace

ApiKeys::ApiKeys(const std::filesystem::path& file) {
  constexpr size_t kLeastKey = 16;
  const Json json = read_toml(file);
  for (const auto& [name, value] : json.items()) {
    const std::string where = file.string() + ": " + name;
    KeyTable table;
    read_fields(value, table, where);
    if (table.key.empty() == table.sha256.empty()) fail<ConfigError>("{}: needs key or sha256, one of them", where);
    if (!table.key.empty() && table.key.size() < kLeastKey)
      fail<ConfigError>("{}.key: has {} characters, needs {}", where, table.key.size(), kLeastKey);
    if (!table.sha256.empty() && !is_digest(table.sha256))
      fail<ConfigError>("{}.sha256: needs 64 hexadecimal digits, in lower case", where);
    if (table.requests < 0) fail<ConfigError>("{}.requests = {}: needs a number from 0", where, table.requests);
    const std::string digest = table.sha256.empty() ? sha256(table.key) : table.sha256;
    if (const auto same = std::ranges::find(keys_, digest, &Key::digest); same != keys_.end())
      fail<ConfigError>("{}: has the same key as {}", where, same->client.name);
    keys_.push_back({.client = {.name = name, .requests = table.requests, .admin = table.admin}, .digest = digest});
  }
  if (keys_.empty()) fail<ConfigError>("{}: has no keys", file.string());
}

const ApiKeys::Key* ApiKeys::find_key(std::string_view key) const {
  const std::string digest = sha256(key);
  const Key* found = nullptr;
  for (const Key& known : keys_)
    if (equal(known.digest, digest)) found = &known;
  return found;
}

Client ApiKeys::find(std::string_view key) const {
  if (!on()) return {};
  const Key* found = find_key(key);
  if (found == nullptr)
    throw HttpError(401, key.empty() ? "an API key is needed: Authorization: Bearer KEY" : "the API key is not known",
                    "", "invalid_api_key");
  return found->client;
}

}  // namespace attune::serve
