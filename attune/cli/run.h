#pragma once

namespace attune::cli {

/// The program `attune` with its arguments, the first of which is its name: sets what belongs to a process (standard
/// streams, signals), runs the command and returns the exit status. `main` calls it, and the Python package.
int run(int argc, char** argv);

}  // namespace attune::cli
