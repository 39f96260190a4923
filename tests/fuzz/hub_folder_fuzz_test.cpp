// A folder of the hub of which somebody has changed a file: it is used, or refused with attune::Error, in memory that
// its size explains. ATTUNE_HF_MODELS names other folders, ATTUNE_FUZZ_ROUNDS the number of changes of each,
// ATTUNE_FUZZ_SEED other changes.

#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstring>
#include <iterator>
#include <map>
#include <new>

#include "attune/base/file.h"
#include "attune/hub/open_folder.h"
#include "attune/inference/classifier.h"
#include "attune/inference/embedder.h"
#include "attune/inference/text_generator.h"
#include "attune/inference/translator.h"
#include "attune/text/chat_template.h"
#include "tests/hub/hub_model.h"
#include "tests/support/mutate.h"
#include "tests/support/temporary_folder.h"

namespace {

std::atomic<int64_t> heap_bytes = 0, heap_peak = 0;

void count(int64_t bytes) {
  const int64_t now = heap_bytes += bytes;
  for (int64_t peak = heap_peak; now > peak && !heap_peak.compare_exchange_weak(peak, now);) {
  }
}

}  // namespace

// All other forms call these, but for the sanitizers' own of arrays.
void* operator new(size_t size) {
  void* const memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  count(static_cast<int64_t>(::malloc_usable_size(memory)));
  return memory;
}

// The library's calls the one above; the address sanitizer's would not, and then finds delete beside it.
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void operator delete(void* memory) noexcept {
  count(-static_cast<int64_t>(::malloc_usable_size(memory)));
  std::free(memory);
}

void operator delete(void* memory, size_t) noexcept {
  operator delete(memory);
}

namespace attune {
namespace {

using Files = std::map<std::string, std::string>;  // bytes by name

const std::vector<std::string> kPieces = {
    "null",    "-1",      "0",        "1e999",   "[]",     "{}",           "\"",   ",",  ":",
    "\\u0000", "\"F16\"", "\"BF16\"", "\"I64\"", "[2,16]", "\xEF\xBB\xBF", "\xFF", "{{", "{% for x in y %}"};

const char* const kValues = R"([null, true, false, -1, 0, 1, 2, 3, 7, 16, 63, 64, 65, 4096, 65536, 1000000, 2147483647,
    4294967296, 9223372036854775807, 0.5, 0.999, 1e-300, 1e300, "", "a", "\u0000", "gelu", "quick_gelu", "yarn", "longrope",
    "dynamic", "bfloat16", "first", "Sequence", "ByteLevel", "../x", [], {}, [0], [1, 2], [[1, 2], [3]], ["a", "b"],
    ["sliding_attention", "full_attention"], {"rope_type": "yarn", "factor": 4.0, "rope_theta": 1.5},
    {"rope_type": "linear", "factor": 1e-9}, {"0": "a", "1": "b"}, {"a": {"b": {}}}])";

// One value is another one, or is gone.
std::string changed_json(const std::string& text, Random& random) {
  static const Json values = Json::parse(kValues);
  Json json = Json::parse(text, nullptr, false);
  Json* value = &json;
  while (value->is_structured() && !value->empty() && random.below(6) > 0) {
    const auto child = std::next(value->begin(), static_cast<std::ptrdiff_t>(random.below(value->size())));
    if (random.below(12) == 0) {
      value->erase(child);
      return show(json);
    }
    value = &*child;
  }
  if (value->is_number_integer() && random.below(3) == 0) {
    *value = value->get<int64_t>() + static_cast<int64_t>(random.below(5)) - 2;
  } else {
    *value = values[random.below(values.size())];
  }
  return show(json);
}

std::string changed_text(const std::string& text, Random& random) {
  return Json::accept(text) && random.below(4) > 0 ? changed_json(text, random) : mutate(text, kPieces, random);
}

// A header that says its own length, then data.
std::string changed_safetensors(const std::string& file, Random& random) {
  uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof(length));
  std::string header = file.substr(8, length), data = file.substr(8 + length);
  if (random.below(3) == 0) {
    for (uint64_t i = random.below(200); i > 0; --i)
      data[random.below(data.size())] = static_cast<char>(random.below(4) == 0 ? 0xFF : random.below(256));
  } else {
    header = changed_text(header, random);
  }
  length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + header + data;
}

std::string changed(const std::string& name, const std::string& file, Random& random) {
  if (random.below(12) == 0) return file.substr(0, random.below(file.size() + 1));
  if (name.ends_with(".safetensors") && random.below(8) > 0) return changed_safetensors(file, random);
  return changed_text(file, random);
}

Files read_files(const std::filesystem::path& folder) {
  Files files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file() && !name.starts_with("expected.")) files[name] = read_file(entry.path());
  }
  return files;
}

// Runs a model as its command does, for a few tokens.
void use(const OpenedFolder& folder) {
  const std::string text = "The old dog sleeps.";
  switch (folder.config().model.architecture) {
    case Architecture::encoder_decoder: {
      const Translator translator(folder.load_model(LoadedWeights::panels));
      GenerationConfig generation = translator.generation();
      generation.max_length = std::min<int64_t>(generation.max_length, 6);
      generation.min_length = std::min(generation.min_length, generation.max_length);
      translator.translate(std::vector{text}, {.generation = generation});
      return;
    }
    case Architecture::decoder_lm: {
      const TextGenerator generator(folder.load_language_model(LoadedWeights::panels));
      SamplingConfig sampling = generator.sampling();
      sampling.max_tokens = std::min<int64_t>(sampling.max_tokens, 6);
      generator.generate(std::vector{text}, {.sampling = sampling});
      if (const auto chat = ChatTemplate::load(folder.path())) chat->render({{.role = "user", .content = text}});
      return;
    }
    case Architecture::encoder_classifier:
      Classifier(folder.load_classifier(LoadedWeights::panels)).classify(text);
      return;
    default:
      Embedder::load(folder).embed(text);
  }
}

// What a folder may take while it is opened, beside what it takes unchanged.
constexpr int64_t kTimesItsSize = 24, kAtLeast = int64_t{4} << 20;

class HubFolderFuzz : public testing::TestWithParam<std::string> {
 protected:
  HubFolderFuzz() {
    for (const auto& [name, bytes] : files_) write_file(folder_ / name, bytes);
  }

  bool is_used() const {
    int64_t size = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      size += static_cast<int64_t>(entry.file_size());
    const int64_t heap_before = heap_bytes, tensors_before = allocator_statistics().bytes_in_use;
    heap_peak = heap_before;
    reset_peak_bytes();
    bool used = true;
    try {
      use(OpenedFolder(folder_.path()));
    } catch (const Error& error) {
      used = false;
      EXPECT_NE(std::string(error.what()), "");
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
    EXPECT_LT(heap_peak - heap_before, kTimesItsSize * size + kAtLeast);
    EXPECT_LT(allocator_statistics().peak_bytes_in_use - tensors_before, kTimesItsSize * size + kAtLeast);
    return used;
  }

  const Files files_ = read_files(hub_models() / GetParam());
  const TemporaryFolder folder_{memory_folder()};
};

INSTANTIATE_TEST_SUITE_P(Folder, HubFolderFuzz, testing::ValuesIn(hub_model_names()), hub_test_name);

int64_t number_of(const char* variable, int64_t fallback) {
  const char* const given = std::getenv(variable);
  return given == nullptr ? fallback : std::strtoll(given, nullptr, 10);
}

TEST_P(HubFolderFuzz, AChangedFileIsUsedOrRefused) {
  if (!is_used()) GTEST_SKIP() << "refused as it is";
  const std::vector<std::string> others = hub_model_names();
  const auto seed = static_cast<uint64_t>(number_of("ATTUNE_FUZZ_SEED", 1));
  int64_t used = 0;
  for (int64_t round = 0; round < number_of("ATTUNE_FUZZ_ROUNDS", 200); ++round) {
    Random random(seed, static_cast<uint64_t>(round));
    const auto& [name, bytes] = *std::next(files_.begin(), static_cast<std::ptrdiff_t>(random.below(files_.size())));
    SCOPED_TRACE("round " + std::to_string(round) + ": " + name);
    const std::filesystem::path other = hub_models() / others[random.below(others.size())] / name;
    std::error_code ignored;
    if (random.below(30) == 0) {
      std::filesystem::remove(folder_ / name, ignored);
    } else if (random.below(30) == 0 && std::filesystem::exists(other, ignored)) {
      write_file(folder_ / name, read_file(other));
    } else {
      write_file(folder_ / name, changed(name, bytes, random));
    }
    used += is_used() ? 1 : 0;
    write_file(folder_ / name, bytes);
  }
  EXPECT_GT(used, 0);
}

}  // namespace
}  // namespace attune
