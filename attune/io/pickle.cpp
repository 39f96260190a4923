#include "attune/io/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <unordered_map>
#include <utility>

#include "attune/base/cut_text.h"
#include "attune/io/byte_reader.h"
#include "attune/io/json_file.h"

namespace attune {
namespace {

constexpr size_t kMaxValues = size_t{1} << 20;  // a tensor takes about 20
constexpr size_t kMaxMarks = 64;
constexpr uint32_t kForgotten = UINT32_MAX;  // no index of a value

struct Known {
  std::string_view name;  // module and name
  PickleName value;
};

constexpr Known kKnown[] = {
    {"collections OrderedDict", {PickleGlobal::ordered_dict}},
    {"torch._utils _rebuild_tensor_v2", {PickleGlobal::rebuild_tensor}},
    {"torch._utils _rebuild_parameter", {PickleGlobal::rebuild_parameter}},
    {"torch FloatStorage", {PickleGlobal::storage_type, StoredType::f32}},
    {"torch DoubleStorage", {PickleGlobal::storage_type, StoredType::f64}},
    {"torch HalfStorage", {PickleGlobal::storage_type, StoredType::f16}},
    {"torch BFloat16Storage", {PickleGlobal::storage_type, StoredType::bf16}},
    {"torch LongStorage", {PickleGlobal::storage_type, StoredType::i64}},
    {"torch IntStorage", {PickleGlobal::storage_type, StoredType::i32}},
    {"torch ByteStorage", {PickleGlobal::storage_type, StoredType::u8}},
    {"torch BoolStorage", {PickleGlobal::storage_type, StoredType::boolean}},
};

class Machine {
 public:
  Machine(std::span<const std::byte> bytes, const std::string& where) : reader_(bytes, where), where_(where) {}

  PickleProgram run() {
    while (step(reader_.number<uint8_t>())) {
    }
    program_.result = pop();
    program_.bytes = reader_.position();
    return std::move(program_);
  }

 private:
  // One opcode; false at the end.
  bool step(uint8_t opcode) {
    switch (opcode) {
      case 0x80:
        reader_.skip(1);
        break;  // PROTO
      case 0x95:
        reader_.skip(8);
        break;  // FRAME
      case 'N':
        push(PickleNone{});
        break;
      case 0x88:
        push(true);
        break;
      case 0x89:
        push(false);
        break;
      case 'J':
        push(int64_t{reader_.number<int32_t>()});
        break;
      case 'K':
        push(int64_t{reader_.number<uint8_t>()});
        break;
      case 'M':
        push(int64_t{reader_.number<uint16_t>()});
        break;
      case 0x8a:
        push_long();
        break;
      case 'G':
        push_float();
        break;
      case 'X':
        push(reader_.text(reader_.number<uint32_t>()));
        break;
      case 0x8c:
        push(reader_.text(reader_.number<uint8_t>()));
        break;
      case '(':
        mark();
        break;
      case ')':
        push(PickleSequence{});
        break;
      case 0x85:
        push_tuple(1);
        break;
      case 0x86:
        push_tuple(2);
        break;
      case 0x87:
        push_tuple(3);
        break;
      case 't':
        push_tuple(above_mark());
        break;
      case ']':
        push(PickleSequence{});
        break;
      case 'a':
        append(1);
        break;
      case 'e':
        append(above_mark());
        break;
      case '}':
        push(PickleDict{});
        break;
      case 's':
        set_items(2);
        break;
      case 'u':
        set_items(above_mark());
        break;
      case 'q':
        memo(reader_.number<uint8_t>());
        break;
      case 'r':
        memo(reader_.number<uint32_t>());
        break;
      case 0x94:
        memo(remembered_);
        break;
      case 'h':
        recall(reader_.number<uint8_t>());
        break;
      case 'j':
        recall(reader_.number<uint32_t>());
        break;
      case 'c':
        push_global();
        break;
      case 0x93:
        push_global_from_stack();
        break;
      case 'Q':
        push_storage();
        break;
      case 'R':
        call();
        break;
      case 'b':
        build();
        break;
      case '.':
        return false;
      default:
        refuse("opcode 0x{:02x} is none that tensors need", opcode);
    }
    return true;
  }

  template <class... Args>
  [[noreturn]] void damaged(fmt::format_string<Args...> format, Args&&... args) const {
    fail<FileError>("{}: pickle is damaged at byte {}: {}", where_, reader_.position(),
                    fmt::format(format, std::forward<Args>(args)...));
  }
  // For a file that may be sound but is not understood here.
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail<FileError>("{}: pickle, byte {}: {}; to convert the file: {}", where_, reader_.position(),
                    fmt::format(format, std::forward<Args>(args)...), kConvertCommand);
  }

  void push(PickleValue value) {
    if (program_.values.size() >= kMaxValues) refuse("has more than {} values", kMaxValues);
    program_.values.push_back(std::move(value));
    push_index(static_cast<uint32_t>(program_.values.size() - 1));
  }
  void push_index(uint32_t index) {
    if (stack_.size() >= kMaxValues) refuse("puts more than {} values on its stack", kMaxValues);
    stack_.push_back(index);
  }

  size_t bottom() const { return marks_.empty() ? 0 : marks_.back(); }
  void need(size_t count) const {
    if (stack_.size() - bottom() < count) damaged("needs {} values, has {}", count, stack_.size() - bottom());
  }
  uint32_t pop() {
    need(1);
    const uint32_t index = stack_.back();
    stack_.pop_back();
    return index;
  }
  std::vector<uint32_t> pop_all(size_t count) {
    need(count);
    std::vector<uint32_t> items(stack_.end() - static_cast<ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return items;
  }
  template <class T>
  T& as(uint32_t index, const char* what) {
    T* value = std::get_if<T>(&program_.values[index]);
    if (value == nullptr) refuse("found something else than {}", what);
    return *value;
  }

  // The items of a short tuple: a copy, because pushing moves values.
  std::vector<uint32_t> few(uint32_t index, const char* what) {
    constexpr size_t kMost = 8;
    const auto& items = as<PickleSequence>(index, what).items;
    if (items.size() > kMost) refuse("{} has more than {} items", what, kMost);
    return items;
  }

  void mark() {
    if (marks_.size() >= kMaxMarks) refuse("is nested more than {} levels deep", kMaxMarks);
    marks_.push_back(stack_.size());
  }
  // The mark goes, what is above it stays.
  size_t above_mark() {
    if (marks_.empty()) damaged("there is no mark");
    const size_t count = stack_.size() - marks_.back();
    marks_.pop_back();
    return count;
  }

  void push_long() {
    const size_t count = reader_.number<uint8_t>();
    const std::string_view bytes = reader_.text(count);
    if (count > 8) refuse("has a number of {} bytes", count);
    uint64_t value = count > 0 && (bytes.back() & 0x80) != 0 ? ~uint64_t{0} : 0;
    for (size_t i = count; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
    push(static_cast<int64_t>(value));
  }
  void push_float() {  // the only number that is stored with its highest byte first
    uint64_t bits = 0;
    for (const std::byte b : reader_.take(8)) bits = bits << 8 | static_cast<uint64_t>(b);
    push(std::bit_cast<double>(bits));
  }
  void push_tuple(size_t count) { push(PickleSequence{pop_all(count)}); }
  void append(size_t count) {
    const std::vector<uint32_t> items = pop_all(count);
    need(1);
    auto& list = as<PickleSequence>(stack_.back(), "a list").items;
    list.insert(list.end(), items.begin(), items.end());
  }
  void set_items(size_t count) {
    if (count % 2 != 0) damaged("a key has no value");
    const std::vector<uint32_t> items = pop_all(count);
    need(1);
    auto& dict = as<PickleDict>(stack_.back(), "a dict").items;
    dict.insert(dict.end(), items.begin(), items.end());
  }

  void memo(uint32_t key) {
    need(1);
    // Values are numbered as they come, so that a number is below that of the bytes before it.
    if (key >= std::min<uint64_t>(kMaxValues, reader_.position())) damaged("value {} is put into the memo", key);
    if (key >= memo_.size()) memo_.resize(size_t{key} + 1, kForgotten);
    if (memo_[key] == kForgotten) ++remembered_;
    memo_[key] = stack_.back();
  }
  void recall(uint32_t key) {
    if (key >= memo_.size() || memo_[key] == kForgotten) damaged("value {} was not put into the memo", key);
    push_index(memo_[key]);
  }

  std::string_view line() {
    const uint64_t begin = reader_.position();
    constexpr uint64_t kMaxLine = 256;
    uint64_t count = 0;
    while (reader_.number<char>() != '\n')
      if (++count > kMaxLine) damaged("a name has more than {} bytes", kMaxLine);
    reader_.seek(begin);
    const std::string_view text = reader_.text(count);
    reader_.skip(1);
    return text;
  }
  void push_global() {
    const std::string_view module = line();
    push_name(module, line());
  }
  void push_global_from_stack() {
    const std::string_view name = as<std::string_view>(pop(), "a name");
    push_name(as<std::string_view>(pop(), "the name of a module"), name);
  }
  void push_name(std::string_view module, std::string_view name) {
    const std::string whole = std::string(module).append(" ").append(name);
    for (const Known& known : kKnown)
      if (known.name == whole) return push(known.value);
    refuse("asks for {}, which is none of the names that tensors need", in_quotes(cut_text(whole, 200)));
  }

  // ('storage', torch.FloatStorage, key, location, elements), and a view of it in files before PyTorch 1.6
  void push_storage() {
    const std::vector<uint32_t> items = few(pop(), "a tuple that names a storage");
    if (items.size() < 5 || items.size() > 6 || as<std::string_view>(items[0], "\"storage\"") != "storage")
      refuse("a reference does not name a storage");
    if (items.size() == 6) as<PickleNone>(items[5], "None as the view of a storage");
    const PickleName type = as<PickleName>(items[1], "the type of a storage");
    if (type.global != PickleGlobal::storage_type) refuse("the type of a storage is something else");
    const PickledStorage storage{.type = type.type,
                                 .key = as<std::string_view>(items[2], "the key of a storage"),
                                 .elements = as<int64_t>(items[4], "the size of a storage")};
    if (storage.elements < 0) damaged("a storage has {} elements", storage.elements);
    const auto [known, is_new] = storages_.try_emplace(storage.key, program_.storages.size());
    if (is_new) program_.storages.push_back(storage);
    const PickledStorage& first = program_.storages[known->second];
    if (first.type != storage.type || first.elements != storage.elements)
      refuse("storage {} has two types or sizes", in_quotes(storage.key));
    push(PickleStorageRef{known->second});
  }

  void call() {
    const std::vector<uint32_t> arguments = few(pop(), "arguments in a tuple");
    switch (as<PickleName>(pop(), "a name to be called").global) {
      case PickleGlobal::ordered_dict:
        if (!arguments.empty()) refuse("an OrderedDict has arguments");
        return push(PickleDict{});
      case PickleGlobal::rebuild_parameter:
        if (arguments.empty()) damaged("_rebuild_parameter has no arguments");
        as<PickleTensorRef>(arguments[0], "the tensor of a parameter");
        return push_index(arguments[0]);
      case PickleGlobal::rebuild_tensor:
        return push_tensor(arguments);
      case PickleGlobal::storage_type:
        refuse("a storage is called");
    }
  }

  // (storage, offset, shape, strides, requires_grad, hooks); a seventh says that values are conjugated or negated
  void push_tensor(const std::vector<uint32_t>& arguments) {
    if (arguments.size() != 6) refuse("_rebuild_tensor_v2 has {} arguments, needs 6", arguments.size());
    PickledTensor tensor;
    tensor.storage = as<PickleStorageRef>(arguments[0], "the storage of a tensor").index;
    tensor.strides = numbers(arguments[3]);
    tensor.offset = as<int64_t>(arguments[1], "the offset of a tensor");
    const std::vector<int64_t> sizes = numbers(arguments[2]);
    try {
      tensor.shape = Shape(std::span<const int64_t>(sizes));
    } catch (const ShapeError& error) {
      refuse("{}", error.what());
    }
    check_view(tensor);
    program_.tensors.push_back(std::move(tensor));
    push(PickleTensorRef{program_.tensors.size() - 1});
  }
  std::vector<int64_t> numbers(uint32_t index) {
    std::vector<int64_t> values;
    for (const uint32_t item : few(index, "a tuple of sizes")) values.push_back(as<int64_t>(item, "a size"));
    return values;
  }

  void check_view(const PickledTensor& tensor) const {
    const int64_t elements = program_.storages[tensor.storage].elements;
    if (tensor.strides.size() != static_cast<size_t>(tensor.shape.rank()))
      damaged("a tensor of {} dimensions has {} strides", tensor.shape.rank(), tensor.strides.size());
    if (tensor.offset < 0 || tensor.offset > elements)
      damaged("a tensor begins at {}, its storage has {} elements", tensor.offset, elements);
    if (tensor.shape.numel() > elements)  // also where strides are 0: what is copied is no larger than the file
      refuse("a tensor of shape {} is on a storage of {} elements", tensor.shape.text(), elements);
    if (tensor.shape.numel() == 0) return;
    int64_t left = elements - 1 - tensor.offset;  // from the first element to the end of the storage
    for (int d = 0; d < tensor.shape.rank(); ++d) {
      const int64_t steps = tensor.shape[d] - 1, stride = tensor.strides[static_cast<size_t>(d)];
      if (stride < 0 || (steps > 0 && stride > left / steps))
        damaged("a tensor of shape {} with stride {} in dimension {} leaves its storage of {} elements",
                tensor.shape.text(), stride, d, elements);
      left -= steps * stride;
    }
    if (left < 0) damaged("a tensor begins at {}, its storage has {} elements", tensor.offset, elements);
  }

  // Sets attributes: a state_dict has "_metadata", the versions of its modules, which nothing here depends on.
  void build() {
    pop();
    need(1);
    as<PickleDict>(stack_.back(), "a dict with attributes");
  }

  ByteReader reader_;
  const std::string& where_;
  PickleProgram program_;
  std::vector<uint32_t> stack_;
  std::vector<size_t> marks_;   // sizes of the stack
  std::vector<uint32_t> memo_;  // by number; no hash table, whose buckets a file could fill unevenly
  uint32_t remembered_ = 0;     // how many of them are there
  std::unordered_map<std::string_view, size_t> storages_;
};

}  // namespace

PickleProgram read_pickle(std::span<const std::byte> bytes, const std::string& where) {
  return Machine(bytes, where).run();
}

}  // namespace attune
