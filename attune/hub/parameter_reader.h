#pragma once
// Reads the values of a model's parameters out of the files of a family.

#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "attune/hub/name_table.h"
#include "attune/io/model_folder.h"

namespace attune {

class ParameterReader {
 public:
  /// `found` are the parameters of `module`. `weights` decides whether bfloat16 stays, whether matrices are rounded to
  /// it, and whether parameters of one product stay adjacent in memory, which panels do not need. Module and tensors
  /// have to outlive this.
  ParameterReader(Module& module, std::vector<FoundParameter> found, const HubTensors& tensors, LoadedWeights weights);

  /// Gives the module the values: rows that are stored as they are become pages of the file, see map_parameters(); all
  /// others are copied. Matrices are rounded one after the other, so that all of them are never in memory in float32.
  /// The module's parameters need no values before, see NoInitialization. Where panels are made, matrices of products
  /// that may have to be copied are left without values: read() gives them one at a time, so that copies and panels are
  /// never all in memory together.
  void fill();

  /// The values of a parameter that fill() left without; any other parameter itself.
  Tensor read(const Tensor& parameter);

 private:
  struct Wanted {
    FoundParameter found;
    Bfloat16 storage;
    bool rounded;  // to bfloat16
    bool later;    // fill() leaves it without values
  };
  // Stored rows that one or several parameters are parts of.
  struct Rows {
    int64_t waiting = 0;  // parameters that were not yet read
    Tensor values = {};   // what was read for the first of them
  };
  Rows& rows_for(const Wanted& p);
  Tensor stored_rows(const Wanted& p) const;
  Tensor shared_rows(const Wanted& p);
  Tensor values_of(const Wanted& p);

  Module& module_;
  const HubTensors& tensors_;
  LoadedWeights weights_;
  std::vector<Wanted> wanted_;
  std::map<std::tuple<std::vector<std::string>, bool, Bfloat16>, Rows> rows_;  // by names, whether transposed, type
  std::unordered_map<const void*, const Wanted*> later_;                       // by the parameter's address
};

}  // namespace attune
