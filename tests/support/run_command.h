#pragma once
// Programs as their users see them: arguments and standard input in; output, errors and exit status out.

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/paths.h"

namespace attune {

struct CommandOptions {
  std::string input;                  // on standard input
  std::chrono::seconds timeout{120};  // then the program is killed
  bool close_output = false;          // nobody reads standard output: writing to it fails
  bool hold_back = false;  // output and errors take a page at a time: a program cannot run far ahead of its reader
};

struct CommandResult {
  std::string output, errors;
  int status = -1;  // exit status; -1 when the program was ended by a signal
  int signal = 0;   // that ended the program
  bool timed_out = false;
};

/// A program that runs beside the test. It is killed when this ends before the program does. Throws Error when it
/// cannot be started.
class RunningCommand {
 public:
  explicit RunningCommand(const std::vector<std::string>& arguments, const CommandOptions& options = {});
  ~RunningCommand();
  RunningCommand(const RunningCommand&) = delete;
  RunningCommand& operator=(const RunningCommand&) = delete;

  /// True as soon as standard error has this text; false when the program ends, or time runs out, without it.
  bool wait_for_error_text(const std::string& text);
  void send(int signal) const;
  /// Its number; 0 once it was waited for.
  int process() const { return process_; }
  bool running() const;
  /// Reads nothing meanwhile. False: the program was still running when the time had run out.
  bool ends_within(std::chrono::seconds time) const;
  /// Waits for the end of the program; kills it when its time is over.
  CommandResult wait();

 private:
  struct Streams;
  std::unique_ptr<Streams> streams_;
  CommandResult result_;
  int process_ = 0;  // 0: waited for
};

/// Runs arguments[0], looked for in PATH, and waits for its end. Throws Error when it cannot be started.
CommandResult run_command(const std::vector<std::string>& arguments, const CommandOptions& options = {});

/// The tests of this program that `filter` names, in a process whose oneDNN knows no more than `instruction_set` and
/// says what it runs ("exec,cpu,matmul").
CommandResult run_own_tests(const std::string& filter, const std::string& instruction_set);

/// Expects that the tests of this program that `filter` names pass, with a oneDNN that knows no AVX-512 and runs no
/// product.
void expect_passes_without_avx512(const std::string& filter);

/// The `attune` of this build with these arguments.
inline std::vector<std::string> attune_command(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), attune_binary());
  return arguments;
}
/// Runs the `attune` of this build.
inline CommandResult run_attune(std::vector<std::string> arguments, const CommandOptions& options = {}) {
  return run_command(attune_command(std::move(arguments)), options);
}

}  // namespace attune
