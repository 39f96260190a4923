#pragma once
// How operations run, apart from the weights and inputs that they run on.

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace attune {

class Profile;
struct Bfloat16Copies;  // of parameters, see ops/precision.h

/// The type that matrix products of float32 parameters take.
enum class ProductPrecision { float32, bfloat16 };

/// The masks of dropout are a pure function of this and of each Dropout's place in its model.
struct DropoutStep {
  uint64_t seed = 1;
  uint64_t step = 0;  // number of the forward pass, unique in a run
};

/// What applies to the operations that a thread calls. Modules and tensors hold nothing of it, so that using a model
/// never writes to it.
struct Execution {
  int threads = 0;                                         // of a parallel region; 0: default_thread_count()
  bool recording = true;                                   // of operations for backward()
  std::optional<DropoutStep> dropout = {};                 // none: dropout is off
  ProductPrecision precision = ProductPrecision::float32;  // of matrix products
  std::shared_ptr<Bfloat16Copies> bfloat16_copies = {};    // parameters converted once; null: at each use
  bool initialize_parameters = true;                       // of modules that are built; false: memory is not touched
  Profile* profile = nullptr;                              // measures operations; null: none does
};

/// The calling thread's. A thread begins with the defaults; the threads of a parallel_for() take that of its caller,
/// with one thread each and without the profile.
const Execution& execution();

/// Applies a changed copy of execution() to the calling thread until the end of the block:
///   const ExecutionScope scope([](Execution& e) { e.recording = false; });
/// Scopes of one thread end in the reverse order of their beginning.
class ExecutionScope {
 public:
  template <class Change>
  explicit ExecutionScope(Change&& change) : execution_(execution()) {
    std::forward<Change>(change)(execution_);
    begin();
  }
  ~ExecutionScope();
  ExecutionScope(const ExecutionScope&) = delete;
  ExecutionScope& operator=(const ExecutionScope&) = delete;

 private:
  void begin();

  Execution execution_;
  const Execution* outer_ = nullptr;
};

}  // namespace attune
