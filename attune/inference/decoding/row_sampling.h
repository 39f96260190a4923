#pragma once

#include "attune/kernels/row_sampling.h"

namespace attune {

/// Answers all jobs, whose rows are on one device, see kernels/row_sampling.h. Throws ShapeError for logits that are no
/// float32 rows, a row that does not exist, a token set aside or more of the likeliest tokens than there may be, too
/// little room, and numbers without the sum.
void sample_rows(std::span<SamplingJob* const> jobs);

}  // namespace attune
