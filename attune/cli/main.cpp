// attune: trains and runs Transformers.

#include "attune/cli/run.h"

// NOLINTNEXTLINE(bugprone-exception-escape): only if there is no memory for the message of an error
int main(int argc, char** argv) {
  return attune::cli::run(argc, argv);
}
