#pragma once
// Where the parameters of a model are found in the files of a family.

#include <optional>
#include <string>
#include <vector>

#include "attune/hub/hub_tensors.h"
#include "attune/nn/module.h"

namespace attune {

/// The steps, in this order, that make a parameter of stored tensors.
struct Transform {
  bool transposed = false;  // a matrix is stored as [in, out]
  bool part = false;        // only some of the stored rows are the parameter's: those from `first` on, and ...
  int64_t first = 0;
  int64_t run = 0, period = 0;  // ... with period > 0: `run` rows there, and again every `period` rows
  double add = 0;               // to every element of a ".weight"
  bool one_row = false;         // a vector is stored as [1, n]
};

/// A module of ours or one parameter of it (".weight" and ".bias" end the name of a parameter), and the modules or
/// tensors of the family whose rows, one after the other, are its rows. "*" is the number of a layer, a second one that
/// of an expert. A row may be for one layer alone, with its number.
struct NameRow {
  std::string ours;
  std::vector<std::string> theirs;
  Transform transform = {};
};
using NameTable = std::vector<NameRow>;

/// Where a table says that a parameter is.
struct Place {
  std::vector<std::string> theirs;
  Transform transform;
};

/// Nothing where the table has no row for the parameter. A row for the parameter itself takes precedence over rows for
/// its module; of several rows for the module the last one counts.
std::optional<Place> place_of(const std::string& parameter, const NameTable& table);

/// One parameter found in the files.
struct FoundParameter {
  NamedParameter parameter;
  std::vector<std::string> stored;  // names in the file
  Transform transform;
};

/// Finds every parameter of the module; rows for parts that the module does not have are not used. Reads no values.
/// Throws FileError naming the tensor that is missing or has another shape, and one that is there but that neither the
/// model nor `ignored` knows. An ignored name may have "*" for any text.
std::vector<FoundParameter> find_parameters(Module& module, const NameTable& table, const HubTensors& tensors,
                                            const std::vector<std::string>& ignored);

/// The shape of the rows that a stored tensor of this shape gives for a parameter: without leading dimensions of one,
/// and transposed where the transform says so.
std::vector<int64_t> rows_shape(const FoundParameter& p, const Shape& stored);

}  // namespace attune
