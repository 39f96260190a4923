#pragma once
// How operations run, apart from the weights and inputs that they run on.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace [[gnu::visibility("default")]] attune {

class Profile;
struct Bfloat16Copies;  // of parameters, see ops/linear/precision.h
class AdapterRows;      // see nn/adapters/adapter_rows.h

/// The type of the inputs of matrix products with parameters in float32 or bfloat16.
enum class ProductPrecision { float32, bfloat16 };

/// Dropout masks are a pure function of this and of each Dropout module's number in its model.
struct DropoutStep {
  uint64_t seed = 1;
  uint64_t step = 0;  // number of the forward pass, unique within a run
  uint32_t use = 0;   // which use of a layer in the pass: above 0 only where layers share parameters, see LayerUse
};

/// The settings of the operations that a thread calls. Modules and tensors store none of them, so running a model
/// never writes to the model.
struct Execution {
  int threads = 0;                                         // in a parallel region; 0: the process's own number
  bool recording = true;                                   // operations are recorded for backward()
  bool will_repeat = false;                                // this pass is repeated later, recorded, see checkpoint()
  std::optional<DropoutStep> dropout = {};                 // none: dropout is off
  ProductPrecision precision = ProductPrecision::float32;  // of matrix products
  std::shared_ptr<Bfloat16Copies> bfloat16_copies = {};    // parameters, converted once; null: converted at each use
  bool initialize_parameters = true;                       // of new modules; false: their memory is not touched
  const AdapterRows* adapter_rows = nullptr;               // the adapter that each row of the inputs uses; null: none
  Profile* profile = nullptr;                              // measures operations; null: no measurement
  std::function<bool()> unwanted = {};                     // true once nobody waits for the result; empty: never
};

/// The settings of the calling thread. A new thread has the defaults. The threads of a parallel_for() have those of
/// its caller, but threads = 1, and neither profile nor unwanted.
const Execution& execution();

/// Throws Interrupted (base/interrupt.h) if execution().unwanted says that nobody waits for the result. A model calls
/// it between its layers.
void stop_if_unwanted();

/// Applies a changed copy of execution() to the calling thread until the end of the block:
///   const ExecutionScope scope([](Execution& e) { e.recording = false; });
/// The scopes of a thread must end in the reverse order of their construction.
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
