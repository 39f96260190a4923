#pragma once
// Makes the tensors of a family's files of a model's parameters: the other direction of ParameterReader, by the same
// table of names.

#include <string>
#include <vector>

#include "attune/hub/name_table.h"
#include "attune/nn/module.h"

namespace attune {

/// How many stored rows a parameter of `own` rows needs, and which of them is its row `row`.
int64_t stored_row_count(int64_t own, const Transform& t);
int64_t stored_row(int64_t row, const Transform& t);

/// A tensor as it will be in a file. Its values are made when they are asked for.
struct WrittenTensor {
  std::string name;
  Shape shape;
  size_t group = 0;            // of ParameterWriter, whose rows it is a part of
  int64_t begin = 0, end = 0;  // these rows
};

class ParameterWriter {
 public:
  /// Rows of a table that the module has no parameter for give no tensors. Stored rows that no parameter is made of, as
  /// the positions of padding, are zeros. Throws ConfigError naming a parameter that the table has no row for. The
  /// module has to outlive this.
  ParameterWriter(Module& module, const NameTable& table);

  const std::vector<WrittenTensor>& tensors() const { return tensors_; }
  /// The values of one of tensors(), in float32: the parameter's own memory where it is stored as it is.
  Tensor values_of(const WrittenTensor& tensor) const;

 private:
  struct Part {
    Tensor values;
    Transform transform;
  };
  // Parameters that are made of the same stored tensors: parts of their rows, one tensor below the other.
  struct Group {
    std::vector<std::string> names;
    std::vector<Part> parts;
    Shape rows() const;  // [rows, ...] before they are transposed
    bool transposed() const;
    bool is_one_parameter() const;
  };
  Tensor rows_of(const Group& group) const;

  std::vector<Group> groups_;
  std::vector<WrittenTensor> tensors_;
};

}  // namespace attune
