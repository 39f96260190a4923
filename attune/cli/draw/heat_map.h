#pragma once
// Attention weights as a page to look at.

#include <string>
#include <utility>
#include <vector>

#include "attune/tensor/tensor.h"

namespace attune::cli {

/// One kind of attention: in each layer and head, the weights of every query (row) over the keys (column).
struct AttentionMaps {
  std::string name;                  // "Cross-attention"
  std::string query_name, key_name;  // of the axes: "target", "source"
  std::vector<std::string> queries, keys;
  std::string note;             // how to read it
  bool causal = false;          // a query sees no later key
  std::vector<Tensor> weights;  // of each layer: float32 [1, heads, queries, keys], values in [0, 1]
};

struct AttentionPage {
  std::string title;
  std::vector<std::pair<std::string, std::string>> texts;  // what each is ("Source"), and the text
  std::vector<AttentionMaps> maps;
};

/// One HTML file without references to anything outside it: a heat map for each head, with the tokens on both axes, a
/// choice of layer and kind, and the values under the pointer. Texts are escaped. Weights are rounded to 1 / 4095.
/// Throws ShapeError when weights and tokens do not fit.
std::string attention_page(const AttentionPage& page);

}  // namespace attune::cli
