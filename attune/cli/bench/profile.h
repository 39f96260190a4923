#pragma once
// The output of `attune bench train` about the operations of a step: --profile and --trace.

#include <string>
#include <vector>

#include "attune/base/fields.h"
#include "attune/base/json.h"
#include "attune/base/profile.h"

namespace attune::cli {

/// The scope of a whole step; its time outside of operations is shown as "other".
constexpr const char* kStepScope = "step";

/// One object for each operation, the longest first, "other" last: operation, calls and ms per step, share of the
/// step, and for those with matrix products gflops_per_s and share_of_peak. The shares add up to 1.
Json profile_json(const std::vector<ProfileEntry>& entries, int64_t steps, double peak_gflops);

/// The same as a table.
std::string profile_table(const Json& profile);

/// The calls as complete events of the Trace Event Format, which chrome://tracing and Perfetto open. Times begin at the
/// first one.
Json trace_json(const std::vector<ProfileEvent>& events);

}  // namespace attune::cli
