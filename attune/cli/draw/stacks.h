#pragma once
// Stacks of layers as boxes and arrows, read from the bottom up as in figure 1 of Vaswani et al. 2017.

#include <string>
#include <vector>

#include "attune/cli/draw/svg.h"

namespace attune::cli {

struct StackPart {
  enum class Kind {
    text,         // what goes in or comes out
    box,          // a part that the data passes through
    branch,       // a residual path begins here ...
    add,          // ... and is added here to what lies between
    frame_begin,  // a part that is there several times; its name says how often
    frame_end,
  };
  Kind kind;
  std::string name = {};
  std::string detail = {};       // of a box: a second line, smaller
  std::string fill = {};         // of a box
  bool reads_neighbour = false;  // of a box: an arrow from the end of the stack on the left leads here
};

/// From the input to the output. Branches and adds, as well as frames, come in pairs.
using Stack = std::vector<StackPart>;

struct StackPicture {
  std::string title;
  std::vector<std::string> notes = {};  // lines below the title
  std::vector<Stack> stacks;            // one, or two side by side
};

std::string draw_stacks(const StackPicture& picture);

}  // namespace attune::cli
