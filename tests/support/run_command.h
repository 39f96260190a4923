#pragma once
// Programs as their users see them: arguments and standard input in; output, errors and exit status out.

#include <chrono>
#include <string>
#include <vector>

namespace attune {

struct CommandOptions {
  std::string input;                  // on standard input
  std::chrono::seconds timeout{120};  // then the program is killed
  bool close_output = false;          // nobody reads standard output: writing to it fails
};

struct CommandResult {
  std::string output, errors;
  int status = -1;  // exit status; -1 when the program was ended by a signal
  int signal = 0;   // that ended the program
  bool timed_out = false;
};

/// Runs arguments[0], looked for in PATH, and waits for its end. Throws Error when it cannot be started.
CommandResult run_command(const std::vector<std::string>& arguments, const CommandOptions& options = {});

#ifdef ATTUNE_BINARY
/// Runs the `attune` of this build.
inline CommandResult run_attune(std::vector<std::string> arguments, const CommandOptions& options = {}) {
  arguments.insert(arguments.begin(), ATTUNE_BINARY);
  return run_command(arguments, options);
}
#endif

}  // namespace attune
