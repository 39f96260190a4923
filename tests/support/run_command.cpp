#include "tests/support/run_command.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <thread>

#include "attune/base/fail.h"

extern char** environ;

namespace attune {
namespace {

using Clock = std::chrono::steady_clock;

/// The two ends of a pipe, closed on exec.
struct Pipe {
  Pipe() {
    if (::pipe2(ends, O_CLOEXEC) != 0) fail<Error>("cannot make a pipe: {}", std::strerror(errno));
  }
  ~Pipe() {
    close(0);
    close(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close(int end) {
    if (ends[end] >= 0) ::close(ends[end]);
    ends[end] = -1;
  }
  int ends[2] = {-1, -1};
};

/// A program that ends without reading its input must not end the test.
class IgnoredBrokenPipe {
 public:
  IgnoredBrokenPipe() { previous_ = ::signal(SIGPIPE, SIG_IGN); }
  ~IgnoredBrokenPipe() { ::signal(SIGPIPE, previous_); }
  IgnoredBrokenPipe(const IgnoredBrokenPipe&) = delete;
  IgnoredBrokenPipe& operator=(const IgnoredBrokenPipe&) = delete;

 private:
  void (*previous_)(int);
};

pid_t start(const std::vector<std::string>& arguments, const Pipe& input, const Pipe& output, const Pipe& errors) {
  std::vector<char*> words;
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, input.ends[0], STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output.ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, errors.ends[1], STDERR_FILENO);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t defaults;
  ::sigemptyset(&defaults);
  ::sigaddset(&defaults, SIGPIPE);
  ::sigaddset(&defaults, SIGINT);  // which a script ignores for its jobs in the background
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t process = 0;
  const int error = ::posix_spawnp(&process, words[0], &actions, &attributes, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) fail<Error>("cannot start {}: {}", arguments.at(0), std::strerror(error));
  return process;
}

void read_some(Pipe& pipe, std::string& text, size_t most = 4096) {
  std::array<char, 4096> buffer;
  const ssize_t n = ::read(pipe.ends[0], buffer.data(), std::min(most, buffer.size()));
  if (n > 0) text.append(buffer.data(), static_cast<size_t>(n));
  if (n == 0 || (n < 0 && errno != EINTR)) pipe.close(0);
}

void write_some(Pipe& pipe, const std::string& text, size_t& written) {
  const ssize_t n = ::write(pipe.ends[1], text.data() + written, text.size() - written);
  if (n > 0) written += static_cast<size_t>(n);
  if (written == text.size() || (n < 0 && errno != EINTR && errno != EAGAIN)) pipe.close(1);
}

}  // namespace

struct RunningCommand::Streams {
  explicit Streams(const CommandOptions& o) : options(o), end(Clock::now() + o.timeout) {
    ::fcntl(input.ends[1], F_SETFL, O_NONBLOCK);
    if (options.hold_back)
      for (const Pipe* pipe : {&output, &errors}) ::fcntl(pipe->ends[1], F_SETPIPE_SZ, 4096);
  }

  void close_other_ends() {
    input.close(0);
    output.close(1);
    errors.close(1);
    if (options.input.empty()) input.close(1);
    if (options.close_output) output.close(0);
  }

  /// Feeds and drains the program until standard error has the text, or both outputs are closed; false when time ran
  /// out.
  bool converse(CommandResult& result, const std::string* text) {
    while (output.ends[0] >= 0 || errors.ends[0] >= 0) {
      if (text != nullptr && result.errors.find(*text) != std::string::npos) return true;
      std::array<pollfd, 3> polled = {
          {{output.ends[0], POLLIN, 0}, {errors.ends[0], POLLIN, 0}, {input.ends[1], POLLOUT, 0}}};
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
      if (left <= 0) return false;
      if (::poll(polled.data(), polled.size(), static_cast<int>(left)) < 0 && errno != EINTR) return false;
      if (polled[0].revents != 0) read_some(output, result.output);
      if (polled[1].revents != 0) read_some(errors, result.errors, options.hold_back ? 256 : 4096);
      if (polled[2].revents != 0) write_some(input, options.input, written);
    }
    return true;
  }

  const IgnoredBrokenPipe ignored;
  const CommandOptions options;
  const Clock::time_point end;
  Pipe input, output, errors;
  size_t written = 0;
};

RunningCommand::RunningCommand(const std::vector<std::string>& arguments, const CommandOptions& options)
    : streams_(std::make_unique<Streams>(options)) {
  process_ = start(arguments, streams_->input, streams_->output, streams_->errors);
  streams_->close_other_ends();
}

RunningCommand::~RunningCommand() {
  if (process_ == 0) return;
  send(SIGKILL);
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) continue;
}

bool RunningCommand::wait_for_error_text(const std::string& text) {
  return streams_->converse(result_, &text) && result_.errors.find(text) != std::string::npos;
}

void RunningCommand::send(int signal) const {
  if (process_ != 0) ::kill(process_, signal);
}

bool RunningCommand::running() const {
  siginfo_t info{};
  return process_ != 0 && ::waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == 0;
}

bool RunningCommand::ends_within(std::chrono::seconds time) const {
  const auto until = Clock::now() + time;
  while (running() && Clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return !running();
}

CommandResult RunningCommand::wait() {
  result_.timed_out = !streams_->converse(result_, nullptr);
  if (result_.timed_out) send(SIGKILL);
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) continue;
  process_ = 0;
  if (WIFEXITED(status)) result_.status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result_.signal = WTERMSIG(status);
  return result_;
}

CommandResult run_command(const std::vector<std::string>& arguments, const CommandOptions& options) {
  return RunningCommand(arguments, options).wait();
}

// oneDNN's variables have had two prefixes.
CommandResult run_own_tests(const std::string& filter, const std::string& instruction_set) {
  return run_command({"env", "-u", "GTEST_OUTPUT", "ONEDNN_MAX_CPU_ISA=" + instruction_set,
                      "DNNL_MAX_CPU_ISA=" + instruction_set, "ONEDNN_VERBOSE=1", "DNNL_VERBOSE=1",
                      std::filesystem::read_symlink("/proc/self/exe").string(), "--gtest_filter=" + filter});
}

void expect_passes_without_avx512(const std::string& filter) {
  const CommandResult result = run_own_tests(filter, "AVX2");
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_EQ(result.output.find("Running 0 tests"), std::string::npos) << "no test matches " << filter;
  EXPECT_EQ(result.output.find("exec,cpu,matmul"), std::string::npos) << "oneDNN's products were run";
}

}  // namespace attune
